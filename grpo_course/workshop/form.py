"""What a stored notebook must look like; each check returns its complaints.

CHECKS are of how it is stored: ids, counts, outputs. LESSON is what the course's own
notebooks have besides: how they open and close, exercises, guesses, slides. Nothing
here says how long a notebook or a cell may be.

A check takes a notebook and returns lines such as "cell 3: ...", cells counted from
0 with text cells included, the way JupyterLab's `notebook.cells[3]` counts them.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from nbformat import NotebookNode, v4
from nbformat.validator import iter_validate

from grpo_course.workshop import exercise_cells, prediction_cells, tidy
from grpo_course.workshop.cells import CHANGE_IT, is_behind, tags

LINE_WIDTH = 79
IGNORED = "nbval-ignore-output"
MACHINE_PATH = re.compile(
    r"/(?:home|Users|root|tmp|work|opt|mnt)/[\w.]+|[A-Z]:\\\w+|site-packages|ipykernel_\d"
)
DATA_ADDRESS = re.compile(r"data:image/png;base64,[\w+/=]+")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
BINARY = ("image/png", "image/jpeg")
HEADING = re.compile(r"^(#{1,6}) +(.+)$", re.MULTILINE)
LISTING = re.compile(r"```.*?```", re.DOTALL)
CLOSING = "What you saw"
SLIDE_TYPES = {"slide", "subslide", "fragment", "skip", "notes", "-"}


def read(path: Path) -> NotebookNode:
    """A notebook as it is stored: nbformat.read would repair it on its way."""
    return v4.reads(path.read_text(encoding="utf-8"))


def code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The code cells, each with its index in the notebook."""
    return [(i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "code"]


def outputs(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode, NotebookNode]]:
    """Every output, with its cell's index and its cell."""
    for index, cell in code_cells(notebook):
        for output in cell.outputs:
            yield index, cell, output


def texts(output: NotebookNode) -> list[str]:
    """The texts that an output shows: a stream, a traceback, text and HTML."""
    data = output.get("data", {})
    shown = [text for kind, text in data.items() if kind not in BINARY]
    pieces = [output.get("text", ""), *output.get("traceback", []), *shown]
    return [piece if isinstance(piece, str) else str(piece) for piece in pieces]


def invalid(notebook: NotebookNode) -> list[str]:
    """The notebook is not a notebook by Jupyter's own schema."""
    # Not validate(), which repairs repeated ids on its way.
    first = next(iter_validate(notebook), None)
    return [f"not a valid notebook: {str(first).splitlines()[0]}"] if first else []


def repeated_ids(notebook: NotebookNode) -> list[str]:
    """Two cells share an id, or a cell has none."""
    ids = [cell.get("id") for cell in notebook.cells]
    return [
        f"cell {index}: its id {identity!r} is missing or taken. Run save."
        for index, identity in enumerate(ids)
        if not identity or identity in ids[:index]
    ]


def other_kernel(notebook: NotebookNode) -> list[str]:
    """The metadata names another kernel, or a Python version."""
    fixed = tidy.FIXED
    return [
        f"metadata.{key} is not the fixed one. Run save."
        for key, value in fixed.items()
        if notebook.metadata.get(key) != value
    ]


def count_gaps(notebook: NotebookNode) -> list[str]:
    """The code cells are not numbered 1, 2, 3, ...; nbval passes a cell never run."""
    return [
        f"cell {index}: its execution count is {cell.execution_count}, not {count}. "
        "Run save."
        for count, (index, cell) in enumerate(code_cells(notebook), start=1)
        if cell.execution_count != count
    ]


def silent_cells(notebook: NotebookNode) -> list[str]:
    """A code cell that is seen shows nothing."""
    return [
        f"cell {index}: it prints and plots nothing. Print what it found."
        for index, cell in code_cells(notebook)
        if not cell.outputs and not is_behind(cell)
    ]


def standard_error(notebook: NotebookNode) -> list[str]:
    """A warning or a log line is stored."""
    return [
        f"cell {index}: it writes to stderr: {output.text.strip()[:200]!r}"
        for index, _, output in outputs(notebook)
        if output.get("name") == "stderr"
    ]


def errors(notebook: NotebookNode) -> list[str]:
    """A cell stops with an error that it does not announce."""
    return [
        f"cell {index}: {output.ename}: {output.evalue[:200]}"
        for index, cell, output in outputs(notebook)
        if output.output_type == "error" and "raises-exception" not in tags(cell)
    ]


def machine_paths(notebook: NotebookNode, folders: tuple[str, ...] = ()) -> list[str]:
    """An output names a folder of the machine it was made on."""
    found = []
    for index, _, output in outputs(notebook):
        # The bytes of a picture, written as letters, may read like a path.
        for text in (DATA_ADDRESS.sub("", text) for text in texts(output)):
            match = MACHINE_PATH.search(text)
            named = [folder for folder in folders if folder in text]
            path = named[0] if named else match and match.group()
            if path:
                found.append(f"cell {index}: its output shows the path {path!r}")
    return found


def live_widgets(notebook: NotebookNode) -> list[str]:
    """A widget is stored, which shows nothing where no kernel runs."""
    return [
        f"cell {index}: a widget needs a kernel; a slider made with slide() does not."
        for index, _, output in outputs(notebook)
        if WIDGET_VIEW in output.get("data", {})
    ]


def marker_comments(notebook: NotebookNode) -> list[str]:
    """An nbval marker stands in a learner's cell instead of in its tags."""
    return [
        f"cell {index}: move the NBVAL_ comment into the cell's tags"
        for index, cell in code_cells(notebook)
        if "NBVAL_" in cell.source
    ]


def long_lines(notebook: NotebookNode) -> list[str]:
    """A printed line is wider than a slide."""
    found = []
    for index, _, output in outputs(notebook):
        data = output.get("data", {})
        drawn = set(data) - {"text/plain"}  # then its text is never seen
        text = output.get("text", "") + ("" if drawn else data.get("text/plain", ""))
        width = max(map(len, text.splitlines()), default=0)
        if width > LINE_WIDTH:
            found.append(f"cell {index}: prints {width} characters in a line")
    return found


def unchecked_ignored(notebook: NotebookNode) -> list[str]:
    """No compared cell comes after a cell whose output is ignored."""
    last = max(
        (i for i, c in code_cells(notebook) if IGNORED not in tags(c)), default=-1
    )
    return [
        f"cell {index}: no checked cell follows it; expect() what was to be seen"
        for index, cell in code_cells(notebook)
        if IGNORED in tags(cell) and CHANGE_IT not in tags(cell) and index > last
    ]


def untold_pictures(notebook: NotebookNode) -> list[str]:
    """A picture has no alternative text."""
    return [
        f"cell {index}: its picture has no alternative text. Call setup(), run save."
        for index, _, output in outputs(notebook)
        if "image/png" in output.get("data", {})
        and len(output.metadata.get("image/png", {}).get("alt", "")) < 15
    ]


# What follows is asked of the course's own notebooks, not of all that `save` stores.


def headings(notebook: NotebookNode) -> list[tuple[int, int, str]]:
    """Every heading: its cell's index, its level, its text."""
    return [
        (index, len(marks), text.strip())
        for index, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown"
        for marks, text in HEADING.findall(LISTING.sub("", cell.source))
    ]


def opening(notebook: NotebookNode) -> list[str]:
    """The first cell is no title, or does not say how long and for whom."""
    source = notebook.cells[0].source if notebook.cells else ""
    found = [] if source.startswith("# ") else ["cell 0: it must start with '# '"]
    if "You need" not in source:
        found.append("cell 0: it does not say 'You need'")
    if not re.search(r"\*\*Minutes:\*\* \d", source):
        found.append("cell 0: it does not say '**Minutes:** 30.' (without exercises)")
    return found


def closing(notebook: NotebookNode) -> list[str]:
    """The last section does not say what was seen and what comes next."""
    found = [h for h in headings(notebook) if h[1] == 2]
    while found and found[-1][2].startswith("Next"):
        found.pop()
    if not found or found[-1][2] != CLOSING:
        return [f"its last section must be '## {CLOSING}' (then '## Next', if wanted)"]
    start = found[-1][0]
    texts = [c.source for c in notebook.cells[start:] if c.cell_type == "markdown"]
    named = "Next" in "".join(texts) or ".ipynb" in "".join(texts)
    return [] if named else [f"cell {start}: name the next notebook after it"]


def heading_jumps(notebook: NotebookNode) -> list[str]:
    """A heading is more than one level below the one above it."""
    found, above = [], 0
    for index, level, text in headings(notebook):
        if level > above + 1:
            marks = "#" * level
            found.append(f"cell {index}: '{marks} {text}' skips a level of headings")
        above = level
    return found


def slide_types(notebook: NotebookNode) -> list[str]:
    """A cell has no place among the slides."""
    return [
        f"cell {index}: metadata.slideshow.slide_type is {kind!r}; "
        f"choose one of {', '.join(sorted(SLIDE_TYPES))}"
        for index, cell in enumerate(notebook.cells)
        if (kind := cell.metadata.get("slideshow", {}).get("slide_type"))
        not in SLIDE_TYPES
    ]


def exercises(notebook: NotebookNode) -> list[str]:
    """An exercise is not three cells in a row, or does not state its minutes."""
    threes = exercise_cells.triples(notebook.cells)
    right = {id(cell) for three in threes for cell in three}
    silent = {id(three[0]) for three in threes if not exercise_cells.stated(three[:1])}
    texts = [(i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "markdown"]
    found = [
        f"cell {index}: an exercise is three cells in a row: a text tagged 'exercise', "
        "a stub with check(...), a text tagged 'solution'"
        for index, cell in texts
        if "**Exercise " in cell.source or exercise_cells.SOLUTION in tags(cell)
        if id(cell) not in right
    ]
    return found + [
        f"cell {index}: it does not say '**Exercise 3.1** · ... · 5 minutes'"
        for index, cell in texts
        if id(cell) in silent
    ]


def experiments_to_change(notebook: NotebookNode) -> list[str]:
    """A cell whose knobs a learner turns gives no verdict."""
    return [
        f"cell {index}: tagged '{CHANGE_IT}', it gives a verdict(...)"
        for index, cell in code_cells(notebook)
        if CHANGE_IT in tags(cell) and "verdict(" not in cell.source
    ]


def bare_assertions(notebook: NotebookNode) -> list[str]:
    """A cell stops with a red error where a learner has changed something."""
    return [
        f"cell {index}: it asserts; use expect(), which says in words what moved"
        for index, cell in code_cells(notebook)
        if "assert " in cell.source
    ]


Check = Callable[[NotebookNode], list[str]]
CHECKS: tuple[Check, ...] = (
    invalid,
    repeated_ids,
    other_kernel,
    count_gaps,
    silent_cells,
    standard_error,
    errors,
    machine_paths,
    live_widgets,
    marker_comments,
    long_lines,
    unchecked_ignored,
    untold_pictures,
)
LESSON: tuple[Check, ...] = (
    opening,
    closing,
    heading_jumps,
    slide_types,
    exercises,
    experiments_to_change,
    bare_assertions,
    prediction_cells.complaints,
    prediction_cells.given_away,
)
