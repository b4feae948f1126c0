"""The cells of a notebook on slides, in their order."""

import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode

from grpo_course.workshop import exercise_cells, prediction_cells
from grpo_course.workshop.cells import tags
from grpo_course.workshop.deck.noted import noted
from grpo_course.workshop.deck.shown import blocks_of, parted
from grpo_course.workshop.deck.slide import Slide, finished, is_seen, unfolded
from grpo_course.workshop.deck.stage import Stage

NUMBERED = re.compile(r"\d+\. ")  # the title of a part
AT_THE_DESK = ("Guess first: run the next cell", "Now ask your own")  # not for a room


def arrange(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells on slides, each slide with a title, and no solution among them."""
    stage = Stage()
    pending: list[str] = []
    # A solution is not seen either, but ends what is said of its exercise.
    told = [c for c in cells if is_seen(c) or exercise_cells.SOLUTION in tags(c)]
    following = dict(zip(map(id, told), [*told[1:], None], strict=True))
    for cell in cells:
        after = following.get(id(cell))
        if not is_seen(cell):
            if exercise_cells.SOLUTION not in tags(cell):
                stage.now.cells.append(cell)
        elif cell.cell_type == "markdown":
            leads = after is not None and after.cell_type == "code"
            tell(stage, pending or blocks_of(unfolded(cell)), leads)
            pending = []
        elif prediction_cells.asks(cell):
            stage.ask(cell)
        else:
            see, pending = parted(after)
            stage.run(cell, see)
    slides = noted(stage.slides)
    told_in = zip(slides, parts(slides), strict=True)
    return [cell for slide, part in told_in for cell in finished(slide, part)]


def parts(slides: Sequence[Slide]) -> Iterator[str]:
    """The part of the deck in which each slide is; none for the title of a part."""
    part = ""
    for slide in slides:
        begins = slide.level == 1
        yield "" if begins else part
        if begins:
            part = slide.title if NUMBERED.match(slide.title) else ""


def tell(stage: Stage, blocks: list[str], leads: bool) -> None:
    """A text cell: a heading begins a slide."""
    told: list[str] = []
    for block in blocks:
        if not block or block.startswith(AT_THE_DESK):
            continue
        heading = re.match(r"(#+) (.*)", block)
        if heading:
            stage.tell(told)
            told = []
            stage.begin(heading[2], min(len(heading[1]), 3))
        else:
            told.append(block)
    stage.tell(told, leads)
