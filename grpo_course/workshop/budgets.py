"""How long a notebook and its cells may be, and how it opens and closes.

Each check takes a notebook and returns its complaints, as in `form`.
"""

import statistics
from collections.abc import Callable

from nbformat import NotebookNode

from grpo_course.workshop import exercise_cells, form, minutes, prediction_cells
from grpo_course.workshop.cells import is_behind, tags
from grpo_course.workshop.measure import HEADING, NOT_PROSE, line_count, word_count

CELLS = (40, 70)
CODE_MEDIAN, CODE_RULE, CODE_MOST = 8, 20, 30
CODE_RUN = 2
WORDS = (10, 60)
DERIVATION_WORDS = (10, 150)
UNLIMITED = exercise_cells.ANSWERS
FIRST_CODE = 4
SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}
CLOSING = "What you saw"


def text_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The text cells, each with its index in the notebook."""
    return [
        (index, cell)
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown" and not is_behind(cell)
    ]


def code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The code cells of the author that do something, each with its index."""
    return [
        (index, cell)
        for index, cell in form.code_cells(notebook)
        if not is_behind(cell) and not prediction_cells.asks(cell)
    ]


def headings(notebook: NotebookNode) -> list[tuple[int, int, str]]:
    """Every heading: its cell's index, its level, its text."""
    return [
        (index, len(marks), text.strip())
        for index, cell in text_cells(notebook)
        for marks, text in HEADING.findall(NOT_PROSE.sub("", cell.source))
    ]


def cell_number(notebook: NotebookNode) -> list[str]:
    """Too few or too many cells, exercises and questions not counted."""
    own = [cell for cell in notebook.cells if not is_behind(cell)]
    count = sum(not prediction_cells.asks(cell) for cell in own)
    count -= 3 * len(exercise_cells.triples(notebook.cells))
    if CELLS[0] <= count <= CELLS[1]:
        return []
    rule = f"a notebook has {CELLS[0]} to {CELLS[1]}"
    return [f"it has {count} cells beside its exercises; {rule}"]


def exercises(notebook: NotebookNode) -> list[str]:
    """An exercise is not three cells in a row, or does not state its minutes."""
    threes = exercise_cells.triples(notebook.cells)
    right = {id(cell) for three in threes for cell in three}
    found = [
        f"cell {index}: an exercise is three cells in a row: a text tagged 'exercise', "
        "a stub with check(...), a text tagged 'solution'"
        for index, cell in text_cells(notebook)
        if "**Exercise " in cell.source or exercise_cells.SOLUTION in tags(cell)
        if id(cell) not in right
    ]
    silent = {id(three[0]) for three in threes if not exercise_cells.stated(three[:1])}
    return found + [
        f"cell {index}: it does not say '**Exercise 3.1** · ... · 5 minutes'"
        for index, cell in text_cells(notebook)
        if id(cell) in silent
    ]


def code_lengths(notebook: NotebookNode) -> list[str]:
    """Code cells too long for a slide."""
    cells = [
        (index, line_count(cell))
        for index, cell in form.code_cells(notebook)
        if not is_behind(cell)
    ]
    found = [
        f"cell {index}: {lines} lines of code; {CODE_MOST} at most"
        for index, lines in cells
        if lines > CODE_MOST
    ]
    median = statistics.median(lines for _, lines in cells) if cells else 0
    if median > CODE_MEDIAN:
        found.append(f"its median code cell has {median:g} lines, over {CODE_MEDIAN}")
    long = [index for index, lines in cells if lines > CODE_RULE]
    if len(long) > len(cells) / 10:
        found.append(f"cells {long}: over {CODE_RULE} lines; one cell in ten may be")
    return found


def code_runs(notebook: NotebookNode) -> list[str]:
    """More than two code cells without a word between them."""
    own = [(i, c) for i, c in enumerate(notebook.cells) if not is_behind(c)]
    kinds = ["text" if prediction_cells.asks(c) else c.cell_type for _, c in own]
    return [
        f"cell {own[place][0]}: the third code cell in a row; put a text cell before it"
        for place in range(CODE_RUN, len(kinds))
        if set(kinds[place - CODE_RUN : place + 1]) == {"code"}
    ]


def text_lengths(notebook: NotebookNode) -> list[str]:
    """Text cells too short to say something or too long to read."""
    found = []
    for index, cell in text_cells(notebook):
        words, cell_tags = word_count(cell), set(tags(cell))
        heading_only = words == 0 and HEADING.search(cell.source)
        if heading_only or cell_tags & UNLIMITED:
            continue
        least, most = DERIVATION_WORDS if "derivation" in cell_tags else WORDS
        if not least <= words <= most:
            found.append(f"cell {index}: {words} words; a text has {least} to {most}")
    return found


def late_code(notebook: NotebookNode) -> list[str]:
    """Nothing runs within the first four cells."""
    if any(index < FIRST_CODE for index, _ in code_cells(notebook)):
        return []
    return [f"no code among its first {FIRST_CODE} cells; let something run at once"]


def opening(notebook: NotebookNode) -> list[str]:
    """The first cell is no title, or does not say how long and for whom."""
    source = notebook.cells[0].source if notebook.cells else ""
    found = [] if source.startswith("# ") else ["cell 0: it must start with '# '"]
    if "You need" not in source:
        found.append("cell 0: it does not say 'You need'")
    if minutes.of(notebook) is None:
        found.append("cell 0: it does not say '**Minutes:** 30.' (without exercises)")
    return found


def closing(notebook: NotebookNode) -> list[str]:
    """The last section does not say what was seen and what comes next."""
    sections = [h for h in headings(notebook) if h[1] == 2]
    while sections and sections[-1][2].startswith("Next"):
        sections.pop()
    if not sections or sections[-1][2] != CLOSING:
        return [f"its last section must be '## {CLOSING}' (then '## Next', if wanted)"]
    start = sections[-1][0]
    after = "".join(cell.source for i, cell in text_cells(notebook) if i >= start)
    named = "Next" in after or ".ipynb" in after
    return [] if named else [f"cell {start}: name the next notebook after it"]


def slide_types(notebook: NotebookNode) -> list[str]:
    """A cell has no place among the slides."""
    return [
        f"cell {index}: metadata.slideshow.slide_type is {kind!r}; "
        f"choose one of {', '.join(sorted(SLIDE_TYPES))}"
        for index, cell in enumerate(notebook.cells)
        if (kind := cell.metadata.get("slideshow", {}).get("slide_type"))
        not in SLIDE_TYPES
    ]


def heading_jumps(notebook: NotebookNode) -> list[str]:
    """A heading is more than one level below the one above it."""
    found, above = [], 0
    for index, level, text in headings(notebook):
        if level > above + 1:
            marks = "#" * level
            found.append(f"cell {index}: '{marks} {text}' skips a level of headings")
        above = level
    return found


CHECKS: tuple[Callable[[NotebookNode], list[str]], ...] = (
    cell_number,
    exercises,
    code_lengths,
    code_runs,
    text_lengths,
    exercise_cells.experiments_to_change,
    exercise_cells.bare_assertions,
    late_code,
    opening,
    closing,
    slide_types,
    heading_jumps,
    prediction_cells.complaints,
    prediction_cells.given_away,
)
