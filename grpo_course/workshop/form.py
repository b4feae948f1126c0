"""What a stored notebook must look like, and what a lesson has besides.

Each check takes a notebook and returns lines such as "cell 3: ...", cells counted from
0 with text cells included, the way JupyterLab's `notebook.cells[3]` counts them.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode, v4
from nbformat.validator import iter_validate

from grpo_course.workshop import exercise_cells, prediction_cells, tidy
from grpo_course.workshop.cells import CHANGE_IT, is_behind, tags

LINE_WIDTH = 79  # of what is printed: more does not fit a slide
MACHINE_PATH = re.compile(
    r"/(?:home|Users|root|tmp|work|opt|mnt)/[\w.]+|[A-Z]:\\\w+|site-packages|ipykernel_\d"
)
DATA_ADDRESS = re.compile(r"data:image/png;base64,[\w+/=]+")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def read(path: Path) -> NotebookNode:
    """A notebook as it is stored: nbformat.read would repair it on its way."""
    return v4.reads(path.read_text(encoding="utf-8"))


def code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The code cells, each with its index in the notebook."""
    return [(i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "code"]


def stored(notebook: NotebookNode) -> list[str]:
    """What is wrong with the form in which any notebook is stored. Cure: save."""
    first = next(iter_validate(notebook), None)  # validate() would repair the ids
    if first:
        return [f"not a valid notebook: {str(first).splitlines()[0]}"]
    found = [
        f"metadata.{key} is not the fixed one"
        for key, value in tidy.FIXED.items()
        if notebook.metadata.get(key) != value
    ]
    ids = [cell.get("id") for cell in notebook.cells]
    found += [
        f"cell {index}: its id {identity!r} is missing or taken"
        for index, identity in enumerate(ids)
        if not identity or identity in ids[:index]
    ]
    for count, (index, cell) in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != count:  # nbval passes a cell that has never run
            found.append(f"cell {index}: its count is {cell.execution_count}")
        if not cell.outputs and not is_behind(cell):
            found.append(f"cell {index}: it prints and plots nothing")
    return [*found, *accidents(notebook), *shown(notebook)]


def accidents(notebook: NotebookNode, folders: tuple[str, ...] = ()) -> list[str]:
    """Errors, warnings, and paths of the machine, among them `folders`."""
    found = []
    for index, cell, output in outputs(notebook):
        if output.get("name") == "stderr":
            found.append(f"cell {index}: it writes to stderr: {output.text[:200]!r}")
        announced = "raises-exception" in tags(cell)
        if output.output_type == "error" and not announced:
            found.append(f"cell {index}: {output.ename}: {output.evalue[:200]}")
        for text in texts(output):
            named = [folder for folder in folders if folder in text]
            match = MACHINE_PATH.search(text)
            if path := named[0] if named else match and match.group():
                found.append(f"cell {index}: its output shows the path {path!r}")
    return found


def shown(notebook: NotebookNode) -> list[str]:
    """Widgets without a kernel, lines too wide, pictures without a text."""
    found = []
    for index, _, output in outputs(notebook):
        data = output.get("data", {})
        if WIDGET_VIEW in data:
            found.append(f"cell {index}: a widget needs a kernel; slide() needs none")
        drawn = set(data) - {"text/plain"}  # then its text is never seen
        text = output.get("text", "") + ("" if drawn else data.get("text/plain", ""))
        width = max(map(len, text.splitlines()), default=0)
        if width > LINE_WIDTH:
            found.append(f"cell {index}: prints {width} characters in a line")
        told = output.get("metadata", {}).get("image/png", {}).get("alt", "")
        if "image/png" in data and len(told) < 15:
            found.append(f"cell {index}: its picture has no alternative text")
    return found


def outputs(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode, NotebookNode]]:
    """Every output, with its cell's index and its cell."""
    for index, cell in code_cells(notebook):
        for output in cell.outputs:
            yield index, cell, output


def texts(output: NotebookNode) -> list[str]:
    """The texts that an output shows, without the bytes of pictures."""
    data = output.get("data", {})
    told = [text for kind, text in data.items() if not kind.startswith("image/")]
    pieces = [output.get("text", ""), *output.get("traceback", []), *told]
    return [DATA_ADDRESS.sub("", str(piece)) for piece in pieces]


def lesson(notebook: NotebookNode) -> list[str]:
    """What the course's own notebooks have besides, and this one has not."""
    first, last = (notebook.cells[place].source for place in (0, -1))
    found = [
        f"cell 0: it does not say {words!r}"
        for words in ("# ", "You need", "**Minutes:** ")
        if words not in first
    ]
    if "## What you saw" not in last or not re.search(r"Next|\.ipynb", last):
        found.append("its last cell must be '## What you saw', and name the next one")
    triples = exercise_cells.triples(notebook.cells)
    inside = {id(cell) for three in triples for cell in three}
    for index, cell in enumerate(notebook.cells):
        source, text = cell.source, cell.cell_type == "markdown"
        stub = text and ("**Exercise " in source or "solution" in tags(cell))
        if stub and id(cell) not in inside:
            found.append(f"cell {index}: an exercise is a text, a stub, a solution")
        if text and "**Exercise " in source and not exercise_cells.stated([cell]):
            found.append(f"cell {index}: '**Exercise 3.1** · ... · 5 minutes'")
        if CHANGE_IT in tags(cell) and "verdict(" not in source:
            found.append(f"cell {index}: tagged {CHANGE_IT!r}, it gives a verdict")
        if not text and "assert " in source:  # a learner's change would stop it
            found.append(f"cell {index}: it asserts; expect() says what moved")
    return found + prediction_cells.complaints(notebook)
