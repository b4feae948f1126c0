"""A code cell or a text as a room sees it: how much of it, and how high."""

import math
import re
from dataclasses import dataclass, replace

from nbformat import NotebookNode, v4

from grpo_course.workshop.cells import CHANGE_IT, RESULT, tags
from grpo_course.workshop.deck import fold
from grpo_course.workshop.deck.heights import (
    ALONE,
    BESIDE,
    BESIDE_COLUMNS,
    FILLS,
    FRAME,
    HEADINGS,
    HEIGHT,
    KNOB,
    LARGEST,
    LINE,
    LOWEST,
    PLAYER,
    PRINT_BESIDE,
    PRINT_COLUMNS,
    STEP,
    TIGHT,
    WIDTH,
    WITH_PICTURE,
    asks,
    code_height,
    knobs,
    output_height,
    picture_size,
    take_question,
    text_height,
    without_widgets,
)

SEE = re.compile(r"What to see:")
NEW_IDEA = re.compile(r"\*\*|#|\||[-\d]|!\[|<|Guess|Predict")


@dataclass
class Way:
    """How much of a cell's code is shown, and where the text about it stands."""

    lines: int  # the most that are shown, 0 for none
    beside: bool
    last: bool = False


class Shown:
    """A code cell, measured."""

    def __init__(self, cell: NotebookNode, see: str) -> None:
        told = SEE.sub("", see).strip()  # a room is not told to look
        self.cell, self.see = cell, f"{told[:1].upper()}{told[1:]}"
        lost = len(cell.outputs)
        cell.outputs = without_widgets(cell.outputs)
        self.pictures = [size for o in cell.outputs if (size := picture_size(o))]
        self.knobs = sum(map(knobs, cell.outputs))
        # Pixels of a film beside its picture and its knobs.
        self.player = PLAYER - LINE * (not any(map(asks, cell.outputs)))
        self.anything = cell.outputs or not lost

    def take_question(self) -> str:
        """What stands above a film, taken out: it is the title of its slide."""
        self.player -= LINE
        return "".join(map(take_question, self.cell.outputs))

    def ways(self) -> list[Way]:
        """From the one that shows most to the one that always works."""
        most = WITH_PICTURE if self.pictures else ALONE
        sizes = [40] if CHANGE_IT in tags(self.cell) else [most, TIGHT]
        if self.cell.outputs:
            silent = bool(self.knobs) or fold.only_draws(self.folded(most).shown)
            silent |= RESULT in tags(self.cell)
            sizes = [0] if silent else [*sizes, 0]
        sides = [False, True] if self.see and self.pictures else [False]
        ways = [way for size in sizes for way in self.larger_first(size, sides)]
        listed = any("text/markdown" in o.get("data", {}) for o in self.cell.outputs)
        end = self.larger_first(sizes[-1], [False] if listed else sides)[0]
        return [*ways, replace(end, last=True)]

    def larger_first(self, lines: int, sides: list[bool]) -> list[Way]:
        """The text below or beside the picture: first where the picture is larger.

        One that is about as large beside its text fills the slide better.
        """
        ways = [Way(lines, beside) for beside in sides]
        room = HEIGHT - HEADINGS[5]
        size = {w.beside: self.scale(w, self.picture(w, room, 0)) for w in ways}
        return sorted(ways, key=lambda w: -size[w.beside] * (FILLS if w.beside else 1))

    def folded(self, lines: int) -> fold.Folded:
        """The cell for a number of lines."""
        return fold.fold(self.cell.source, lines)

    def height(self, way: Way) -> int:
        """Pixels without the picture."""
        lines = self.folded(way.lines).shown.count("\n") + 1 if way.lines else 0
        see = 0 if way.beside else text_height(self.see)
        rows = self.knobs if way.beside else math.ceil(self.knobs / 2)
        player = self.player + KNOB * rows if self.knobs else 0
        return code_height(lines) + self.printed(way) + see + player

    def printed(self, way: Way) -> int:
        """Pixels of what the cell prints."""
        columns = PRINT_BESIDE if way.beside else PRINT_COLUMNS
        return sum(output_height(each, columns) for each in self.cell.outputs)

    def beside(self, way: Way) -> int:
        """Pixels of the text beside the picture."""
        return text_height(self.see, BESIDE_COLUMNS) if way.beside else 0

    def whole(self, way: Way, picture: int) -> int:
        """Pixels with each picture up to a height."""
        drawn = math.ceil(sum(self.drawn(way, picture))) if picture > 0 else 0
        return self.height(way) + max(drawn, self.beside(way))

    def drawn(self, way: Way, most: int) -> list[float]:
        """How high each picture comes out that may be so high."""
        width = WIDTH - (BESIDE + 15 if way.beside else 0)
        return [
            min(most, high * min(width / wide, LARGEST)) for wide, high in self.pictures
        ]

    def scale(self, way: Way, picture: int) -> float:
        """The size of the picture that comes out smallest, as a share of its own."""
        pairs = zip(self.drawn(way, picture), self.pictures, strict=True)
        return min((drawn / high for drawn, (_, high) in pairs), default=0)

    def picture(self, way: Way, room: int, least: float) -> int:
        """How high pictures may be in a room; 0 where it does not fit, -1 for none."""
        left = room - self.height(way)
        if not self.pictures:
            return -1 if left >= 0 else 0
        left -= FRAME + (FRAME + STEP) * (len(self.pictures) - 1)
        beside = self.beside(way)
        if beside > left and not way.last:
            return 0
        left = max(left, beside)
        tried = range(LOWEST, int(max(self.drawn(way, HEIGHT))) + 1, STEP)
        small = [high for high in tried if sum(self.drawn(way, high)) <= left]
        fits = max(small, default=LOWEST)
        return fits if way.last or self.scale(way, fits) >= least else 0

    def cells(self, way: Way, height: int) -> list[NotebookNode]:
        """The cells of the slide; a mark in a text says how high its pictures are."""
        code = self.folded(way.lines).cells(self.cell, not way.lines)
        grows = " grown" if len(self.pictures) == 1 else ""
        mark = f'<span class="picture-{height}{grows}"></span>' if height > 0 else ""
        side = "see beside" if way.beside else "see"
        see = f'<div class="{side}">{mark}\n\n{self.see}\n\n</div>'
        text = [v4.new_markdown_cell(see if self.see else mark)]
        if self.pictures and self.see:  # a room that reads does not look
            text[0].metadata["later"] = True
        place = len(code) - (way.beside and len(code) > 1 and fold.tells(code[-1]))
        return [*code[:place], *(text if self.see or mark else []), *code[place:]]


def parted(cell: NotebookNode | None) -> tuple[str, list[str]]:
    """A text below a result: what explains it, and what leads on (never nothing)."""
    if cell is None or cell.cell_type != "markdown":
        return "", []
    first, *rest = blocks_of(cell.source)
    if tags(cell) and not first.startswith("What to see"):
        return "", []
    explains = SEE.match(first) or not NEW_IDEA.match(first)
    return (first, rest or [""]) if explains else ("", [])


def blocks_of(source: str) -> list[str]:
    """The paragraphs of a text; fences, formulas and folded parts stay whole."""
    blocks, current, fenced = [], [], False
    for line in source.split("\n"):
        fenced ^= line.startswith("```")
        if line.strip() or fenced:
            current.append(line)
        elif current:
            blocks.append("\n".join(current))
            current = []
    return [*blocks, "\n".join(current)] if current else blocks
