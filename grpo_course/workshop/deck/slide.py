"""One slide: its title, its cells, and how large it is written."""

import re
from dataclasses import dataclass, field

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells
from grpo_course.workshop.cells import FORMULA, tags
from grpo_course.workshop.deck.heights import (
    ANSWER,
    HEADINGS,
    HEIGHT,
    LARGE_COLUMNS,
    LARGER,
    LINE,
    PRINTS,
    ROOMIER,
    ROOMY_COLUMNS,
    ROOMY_LINE,
    SPARSE,
    TITLE_COLUMNS,
    shown_text,
    text_height,
)

TAG = re.compile(r"\s*<[^>]*>\s*")
LATEX = re.compile(r"\\[a-zA-Z]+|[{}_^\s\\,;]")  # what takes no room in a formula
# A formula with the sign that follows: a browser would begin a line with the sign.
CLINGS = re.compile(r"(?<!\$)\$[^$\n]+\$[.,;:?!)]+")
INDEXED = re.compile(r"(?<![`\w])([πε])_(old|ref|high|low)\b")
LINKED = re.compile(r"\[([^\]]+)\]\(\d\d_\w+\.ipynb[^)]*\)")  # beside a notebook alone
WIDEST = 40  # signs of a formula in the largest type


@dataclass
class Slide:
    """A slide while it fills."""

    title: str
    level: int
    cells: list[NotebookNode] = field(default_factory=list)
    used: int = 0
    closed: bool = False  # a guess waits for its answer, or a picture fills the rest
    pictured: bool = False

    def __post_init__(self) -> None:
        self.used = self.heading

    @property
    def heading(self) -> int:
        """Pixels of its title."""
        return HEADINGS[self.level] + ANSWER * (" **" in self.title)

    def rename(self, title: str) -> None:
        """Say something in the title, on one line or two, instead of naming a place."""
        self.used -= self.heading
        short = len(title.partition(" **")[0]) < TITLE_COLUMNS
        self.title, self.level = title, 6 if short else 4
        self.used += self.heading

    def shorten(self) -> bool:
        """Leave the question out of a title that has its answer, if it has."""
        _, mark, answer = self.title.partition(" **")
        if mark:
            self.rename(f"**{answer}")
        return bool(mark)

    def take_last(self, room: int) -> NotebookNode | None:
        """Its last paragraph, taken out; none if it is alone, or needs more room."""
        told = list(filter(is_seen, self.cells))
        if self.closed or len(told) < 2 or told[-1].cell_type != "markdown":
            return None
        if (height := text_height(told[-1].source)) > room:
            return None
        self.used -= height
        self.cells.remove(told[-1])
        return told[-1]

    @property
    def room(self) -> int:
        """Pixels that are left."""
        return 0 if self.closed else HEIGHT - self.used

    @property
    def has_code(self) -> bool:
        """Whether code stands on it, such as that of an exercise."""
        return any(c.cell_type == "code" and is_seen(c) for c in self.cells)

    @property
    def empty(self) -> bool:
        """Whether its title is all there is."""
        return self.used == self.heading


def finished(slide: Slide, part: str) -> list[NotebookNode]:
    """The cells of a slide with their slide types; the title comes first.

    At its foot stands the part of the deck, if there are parts.
    """
    mark = f' <span class="{size}"></span>' if (size := size_of(slide)) else ""
    mark += f' <span class="part">{on_stage(part)}</span>' if part else ""
    named = on_stage(slide.title)
    title = v4.new_markdown_cell(f"{'#' * slide.level} {named}{mark}")
    begins = "slide" if slide.level < 4 else "subslide"
    title.metadata["slideshow"] = {"slide_type": begins}
    for cell in slide.cells:
        if is_seen(cell):
            later = cell.metadata.pop("later", False)
            cell.metadata["slideshow"] = {"slide_type": "fragment" if later else "-"}
            if cell.cell_type == "markdown":
                cell.source = on_stage(cell.source)
    return [title, *slide.cells]


def unfolded(cell: NotebookNode) -> str:
    """A text without folds: what was found is told, what solves an exercise is not."""
    solves = exercise_cells.ANSWERS & {*tags(cell)}
    return exercise_cells.FOLDED.sub("" if solves else r"**\1.** \2", cell.source)


def on_stage(text: str) -> str:
    """A text as a room reads it: indices are small, and no notebook is a click away."""
    text = INDEXED.sub(r"\1<sub>\2</sub>", LINKED.sub(r"\1", text))
    return CLINGS.sub(r'<span class="whole">\g<0></span>', text)


def size_of(slide: Slide) -> str:
    """How much larger a slide is written that leaves room: `large`, `roomy` or not."""
    code = [c for c in slide.cells if c.cell_type == "code" and type_of(c) != "skip"]
    if code and not slide.pictured and (size := print_size(slide, code)):
        return size
    if not code and slide.used < SPARSE and not slide.closed:
        texts = texts_of(slide)
        tall = sum(text_height(text, LARGE_COLUMNS) for text in texts)
        # A formula does not break into lines.
        wide = any(
            len(LATEX.sub("", f)) > WIDEST for t in texts for f in FORMULA.findall(t)
        )
        fits = slide.heading + LARGER * tall < HEIGHT
        return "large" if fits and not wide else "roomy"
    grown = slide.heading + ROOMIER * (slide.used - slide.heading)
    return "roomy" if grown < HEIGHT and not slide.pictured else ""


def print_size(slide: Slide, code: list[NotebookNode]) -> str:
    """How large a slide is written that shows what is printed, without code."""
    rows = [r for c in code for o in c.outputs for r in shown_text(o).splitlines()]
    shown = any(
        not cell.metadata.get("jupyter", {}).get("source_hidden") for cell in code
    )
    if shown or not rows:
        return ""
    tall = sum(text_height(text, ROOMY_COLUMNS) for text in texts_of(slide))
    for columns, high, name in PRINTS:
        whole = slide.heading + tall * ROOMY_LINE / LINE + high * len(rows)
        if max(map(len, rows)) <= columns and whole < HEIGHT:
            return name
    return ""


def texts_of(slide: Slide) -> list[str]:
    """What a room reads on a slide, beside its title, code and print."""
    seen = filter(is_seen, slide.cells)
    return [TAG.sub("", c.source) for c in seen if c.cell_type == "markdown"]


def is_seen(cell: NotebookNode) -> bool:
    """Whether a room sees a cell: it is neither left out nor a note."""
    return type_of(cell) not in ("skip", "notes")


def type_of(cell: NotebookNode) -> str:
    """A cell's slide type; empty where it has none yet."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")
