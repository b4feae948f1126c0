"""Put cells on slides: a title on each, a picture beside what to see in it."""

import ast
import math
import re
from dataclasses import dataclass, field

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells, prediction_cells
from grpo_course.workshop.cells import CHANGE_IT, tags
from grpo_course.workshop.deck import fold
from grpo_course.workshop.deck.heights import (
    ALONE,
    BESIDE,
    BESIDE_COLUMNS,
    FRAME,
    HEADINGS,
    HEIGHT,
    LARGEST,
    PLAYER,
    SMALLER,
    SMALLEST,
    SPARSE,
    STEP,
    TIGHT,
    WIDTH,
    WITH_PICTURE,
    code_height,
    cut,
    output_height,
    picture_size,
    smaller_blocks,
    text_height,
    without_widgets,
)

SEE = re.compile(r"What to see:")
NEW_IDEA = re.compile(r"\*\*|#|\||[-\d]|!\[|<|Guess|Predict")


@dataclass
class Slide:
    """A slide while it fills."""

    title: str
    level: int
    cells: list[NotebookNode] = field(default_factory=list)
    used: int = 0
    closed: bool = False  # a guess waits for its answer, or a picture fills the rest

    def __post_init__(self) -> None:
        self.used = HEADINGS[self.level]

    @property
    def room(self) -> int:
        """Pixels that are left."""
        return 0 if self.closed else HEIGHT - self.used

    @property
    def empty(self) -> bool:
        """Whether its title is all there is."""
        return self.used == HEADINGS[self.level]


class Stage:
    """Slides one after the other."""

    def __init__(self) -> None:
        self.slides: list[Slide] = []

    @property
    def now(self) -> Slide:
        """The slide that fills."""
        return self.slides[-1]

    def begin(self, title: str, level: int) -> None:
        """A slide with a title of its own."""
        self.slides.append(Slide(title, level))

    def go_on(self) -> None:
        """A further slide under the same title, unless this one is empty."""
        if not self.now.empty:
            self.slides.append(Slide(self.now.title, 5))

    def tell(self, blocks: list[str], leads: bool = False) -> None:
        """Paragraphs, on as many slides as they need.

        What leads to a guess or to code begins a slide, unless there is room for both.
        """
        if not blocks:
            return
        blocks = [piece for block in blocks for piece in smaller_blocks(block)]
        whole = sum(map(text_height, blocks))
        crowded = leads and self.now.used > SPARSE
        if crowded or whole > self.now.room:
            self.go_on()
        share = whole / math.ceil(whole / (self.now.room or HEIGHT) or 1)
        told = 0
        for block in blocks:
            height = text_height(block)
            if height > self.now.room or told + height / 2 > share:
                self.go_on()
                told = 0
            self.now.cells.append(v4.new_markdown_cell(block))
            self.now.used += height
            told += height

    def ask(self, cell: NotebookNode) -> None:
        """A guess: the question and its choices, large; the cell runs unseen."""
        text, height = question(cell)
        if height > self.now.room:
            self.go_on()
        self.now.cells += [v4.new_markdown_cell(text), fold.skipped(cell.source)]
        self.now.used += height
        self.now.closed = True

    def run(self, cell: NotebookNode, see: str) -> None:
        """Code with what it shows and what to see in it."""
        shown = Shown(cell, see)
        if not shown.anything:
            self.now.cells.append(fold.skipped(cell.source))
            return self.tell([see] if see else [], leads=True)
        # A picture rather shrinks than that it leaves two lines alone on a slide.
        least = SMALLER if self.now.used < SPARSE else SMALLEST
        for way in shown.ways():
            fits = shown.picture(way, self.now.room, least)
            if not fits and not self.now.empty:
                fits = shown.picture(way, HEIGHT - HEADINGS[5], SMALLEST)
                if fits or way.last:
                    self.go_on()
            if fits or way.last:
                break
        over = shown.height(way) + max(fits, 0) - self.now.room
        if over > 0:
            printed = sum(map(output_height, cell.outputs))
            cell.outputs = cut(cell.outputs, printed - over)
        self.now.cells += shown.cells(way, fits)
        self.now.used += shown.height(way) + max(fits, 0)
        self.now.closed = bool(shown.pictures)


@dataclass
class Way:
    """How much of a cell's code is shown, and where the text about it stands."""

    lines: int  # the most that are shown, 0 for none
    beside: bool
    last: bool = False


class Shown:
    """A code cell, measured."""

    def __init__(self, cell: NotebookNode, see: str) -> None:
        self.cell, self.see = cell, see
        lost = len(cell.outputs)
        cell.outputs = without_widgets(cell.outputs)
        self.pictures = [size for o in cell.outputs if (size := picture_size(o))]
        self.film = fold.moves(cell)
        self.anything = cell.outputs or not lost

    def ways(self) -> list[Way]:
        """From the one that shows most to the one that always works."""
        most = WITH_PICTURE if self.pictures else ALONE
        sizes = [40] if CHANGE_IT in tags(self.cell) else [most, TIGHT]
        if self.cell.outputs:
            silent = self.film or fold.only_draws(self.folded(most).shown)
            sizes = [0] if silent else [*sizes, 0]
        sides = [False, True] if self.see and self.pictures else [False]
        ways = [Way(size, beside) for size in sizes for beside in sides]
        listed = any("text/markdown" in o.get("data", {}) for o in self.cell.outputs)
        return [*ways, Way(sizes[-1], sides[-1] and not listed, last=True)]

    def folded(self, lines: int) -> fold.Folded:
        """The cell for a number of lines."""
        return fold.fold(self.cell.source, lines)

    def height(self, way: Way) -> int:
        """Pixels without the picture."""
        lines = self.folded(way.lines).shown.count("\n") + 1 if way.lines else 0
        printed = sum(map(output_height, self.cell.outputs))
        see = 0 if way.beside else text_height(self.see)
        return code_height(lines) + printed + see + (PLAYER if self.film else 0)

    def picture(self, way: Way, room: int, least: float) -> int:
        """How high pictures may be in a room; 0 where it does not fit, -1 for none."""
        left = room - self.height(way)
        if not self.pictures:
            return -1 if left >= 0 else 0
        left -= FRAME
        width = WIDTH - (BESIDE + 15 if way.beside else 0)
        if way.beside and text_height(self.see, BESIDE_COLUMNS) > left:
            return 0
        tall = sum(high for _, high in self.pictures)
        scale = min(left / tall, *(width / wide for wide, _ in self.pictures), LARGEST)
        if scale < least and not way.last:
            return 0
        return max(math.floor(scale * tall / len(self.pictures) / STEP) * STEP, 120)

    def cells(self, way: Way, height: int) -> list[NotebookNode]:
        """The cells of the slide; a mark in a text says how high its pictures are."""
        code = self.folded(way.lines).cells(self.cell, not way.lines)
        mark = f'<span class="picture-{height}"></span>' if height > 0 else ""
        side = "see beside" if way.beside else "see"
        see = f'<div class="{side}">{mark}\n\n{self.see}\n\n</div>'
        text = [v4.new_markdown_cell(see if self.see else mark)]
        place = len(code) - (way.beside and len(code) > 1 and fold.tells(code[-1]))
        return [*code[:place], *(text if self.see or mark else []), *code[place:]]


def arrange(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells on slides, each slide with a title, and no solution among them."""
    stage = Stage()
    pending: list[str] = []
    for place, cell in enumerate(cells):
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if kind in ("skip", "notes"):
            solution = exercise_cells.SOLUTION in tags(cell)
            stage.now.cells += [] if solution else [cell]
        elif cell.cell_type == "markdown":
            leads = place + 1 < len(cells) and cells[place + 1].cell_type == "code"
            stage_text(stage, pending or blocks_of(cell.source), leads)
            pending = []
        elif prediction_cells.asks(cell):
            stage.ask(cell)
        else:
            after = cells[place + 1] if place + 1 < len(cells) else None
            see, pending = parted(after)
            stage.run(cell, see)
    return [cell for slide in stage.slides for cell in finished(slide)]


def stage_text(stage: Stage, blocks: list[str], leads: bool) -> None:
    """A text cell: a heading begins a slide."""
    told: list[str] = []
    for block in filter(None, blocks):
        heading = re.match(r"(#+) (.*)", block)
        if heading:
            stage.tell(told)
            told = []
            stage.begin(heading[2], min(len(heading[1]), 3))
        else:
            told.append(block)
    stage.tell(told, leads)


def parted(cell: NotebookNode | None) -> tuple[str, list[str]]:
    """A text below a result: what explains it, and what leads on (never nothing)."""
    if cell is None or cell.cell_type != "markdown" or tags(cell):
        return "", []
    first, *rest = blocks_of(cell.source)
    explains = SEE.match(first) or not NEW_IDEA.match(first)
    return (first, rest or [""]) if explains else ("", [])


def finished(slide: Slide) -> list[NotebookNode]:
    """The cells of a slide with their slide types; the title comes first."""
    told = [c for c in slide.cells if c.cell_type == "code" and c.outputs]
    large = not told and slide.used < SPARSE and not slide.closed
    mark = ' <span class="large"></span>' if large else ""
    title = v4.new_markdown_cell(f"{'#' * slide.level} {slide.title}{mark}")
    title.metadata["slideshow"] = {"slide_type": "subslide"}
    if slide.level < 5:
        title.metadata["slideshow"] = {"slide_type": "slide"}
    for cell in slide.cells:
        cell.metadata.setdefault("slideshow", {}).setdefault("slide_type", "-")
        if cell.metadata["slideshow"]["slide_type"] not in ("skip", "notes"):
            cell.metadata["slideshow"]["slide_type"] = "-"
    return [title, *slide.cells]


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


def question(cell: NotebookNode) -> tuple[str, int]:
    """A prediction as text, and its height."""
    lines = []
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "predict":
            asked, *choices = [ast.literal_eval(each) for each in node.args]
            lines.append(f"**{asked}**\n")
            lines += [f"- {choice}" for choice in choices]
    text = "\n".join(lines)
    return f'<div class="guess">\n\n{text}\n\n</div>', len(lines) * 31 + 30
