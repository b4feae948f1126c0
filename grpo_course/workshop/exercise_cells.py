"""What a learner does: exercises with their minutes.

An exercise is three cells in a row: a text tagged `exercise`, a stub that is handed to
`check`, and a text tagged `solution`. Two small exercises may share their three cells.
"""

import re
from collections.abc import Iterable

from nbformat import NotebookNode

from grpo_course.workshop.cells import is_behind, tags

EXERCISE, SOLUTION = "exercise", "solution"
STATED = re.compile(r"\*\*Exercise (\d+\.\d+)\*\*.*?(\d+) minutes")


def triples(cells: list[NotebookNode]) -> list[tuple[NotebookNode, ...]]:
    """The three cells of each exercise; what is behind may stand between them."""
    own = [cell for cell in cells if not is_behind(cell)]
    return [three for three in zip(own, own[1:], own[2:], strict=False) if fits(*three)]


def fits(text: NotebookNode, stub: NotebookNode, solution: NotebookNode) -> bool:
    """Whether three cells in a row are an exercise."""
    is_stub = stub.cell_type == "code" and "check(" in stub.source
    return EXERCISE in tags(text) and is_stub and SOLUTION in tags(solution)


def stated(cells: Iterable[NotebookNode]) -> list[tuple[str, int]]:
    """Number and minutes of every exercise that the cells state."""
    found = [pair for cell in cells for pair in STATED.findall(cell.source)]
    return [(number, int(minutes)) for number, minutes in found]
