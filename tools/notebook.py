"""What a notebook of the course is: its cells and tags, its exercises and guesses, and
what must hold of each that is stored.

A complaint is a line such as "cell 3: ...", cells counted from 0 with text cells
included, the way JupyterLab's `notebook.cells[3]` counts them.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nbformat import NotebookNode, v4
from nbformat.validator import iter_validate

CHANGE_IT = "change-it"  # an experiment whose knobs the learner turns
COLAB = "colab"  # installs the course where it is not; `save` writes it
HOLDS = "holds"  # expects what the text tells, behind a cell that answers a guess
PREDICT = "predict"  # asks for a guess; one of the next two code cells reveals it
EXERCISE, SOLUTION = "exercise", "solution"  # texts; a stub stands between them
ANSWERS = "answers"  # prints what an exercise asks for, which the stand-in computed
HIDDEN = "outputs_hidden"  # in a cell's `jupyter` metadata
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"

# The one form in which every notebook is stored. No Python version: it would differ
# between machines.
FIXED = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
LINE_WIDTH = 79  # of what is printed: more does not fit a slide
MACHINE_PATH = re.compile(
    r"/(?:home|Users|root|tmp|work|opt|mnt)/[\w.]+|[A-Z]:\\\w+|site-packages|ipykernel_\d"
)
DATA_ADDRESS = re.compile(r"data:image/png;base64,[\w+/=]+")
STATED = re.compile(r"\*\*Exercise (\d+\.\d+)\*\*.*?(\d+) minutes")
REVEAL = re.compile(r"(\w+)\.reveal\(")


def read(path: Path) -> NotebookNode:
    """A notebook as it is stored: nbformat.read would repair it on its way."""
    return v4.reads(path.read_text(encoding="utf-8"))


def tags(cell: NotebookNode) -> list[str]:
    """A cell's tags."""
    return cell.metadata.get("tags", [])


def digest(text: str, length: int) -> str:
    """A short name that depends on `text` alone."""
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def is_behind(cell: NotebookNode) -> bool:
    """Whether a cell stands behind the scenes: folded, on no slide, in no minutes."""
    return not {COLAB, HOLDS}.isdisjoint(tags(cell))


def put_behind(cell: NotebookNode) -> None:
    """Fold a cell in JupyterLab; leave it off the slides and the website."""
    cell.metadata.setdefault("jupyter", {})["source_hidden"] = True
    cell.metadata["slideshow"] = {"slide_type": "skip"}
    if "remove-cell" not in tags(cell):
        cell.metadata["tags"] = [*tags(cell), "remove-cell"]


def code_cells(notebook: NotebookNode) -> list[tuple[int, NotebookNode]]:
    """The code cells, each with its index in the notebook."""
    return [(i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "code"]


# Exercises: a text, a stub that is handed to `check`, a solution. Two small exercises
# may share their three cells.


def triples(cells: list[NotebookNode]) -> list[tuple[NotebookNode, ...]]:
    """The three cells of each exercise; what is behind may stand between them."""
    own = [cell for cell in cells if not is_behind(cell)]
    return [
        (text, stub, solution)
        for text, stub, solution in zip(own, own[1:], own[2:], strict=False)
        if EXERCISE in tags(text)
        and (stub.cell_type == "code" and "check(" in stub.source)
        and SOLUTION in tags(solution)
    ]


def exercises(cells: Iterable[NotebookNode]) -> list[tuple[str, int]]:
    """Number and minutes of every exercise that the cells state."""
    found = [pair for cell in cells for pair in STATED.findall(cell.source)]
    return [(number, int(minutes)) for number, minutes in found]


# Guesses: a code cell that calls `predict("...", ...)`. Nobody reads the answer before:
# from there to the cell that reveals it, stored outputs are closed until they run.


def asked(cell: NotebookNode) -> dict[str, str]:
    """The questions of a cell, by the variable that holds the guess."""
    if cell.cell_type != "code" or PREDICT not in tags(cell):
        return {}
    calls = [
        (ast.unparse(node.targets[0]), node.value)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    ]
    return {
        name: ast.literal_eval(call.args[0])
        for name, call in calls
        if ast.unparse(call.func) == PREDICT
    }


def questions(cells: Iterable[NotebookNode]) -> list[str]:
    """The question of every prediction, as it is typed."""
    return [text for cell in cells for text in asked(cell).values()]


def close(notebook: NotebookNode) -> None:
    """Close the stored outputs that may give an answer away; put behind what holds."""
    waiting: set[str] = set()
    for cell in notebook.cells:
        settings = cell.metadata.setdefault("jupyter", {})
        settings.pop(HIDDEN, None)
        if names := asked(cell):
            waiting |= names.keys()
        elif waiting and cell.cell_type == "code":
            settings[HIDDEN] = True
            waiting -= {*REVEAL.findall(cell.source)}
        elif ANSWERS in tags(cell):
            settings[HIDDEN] = True
        elif "source_hidden" in settings and HOLDS not in tags(cell):
            settings[HIDDEN] = True  # what others found, folded
        if HOLDS in tags(cell):
            put_behind(cell)
        if not settings:
            del cell.metadata["jupyter"]


# What must hold.


def stored(notebook: NotebookNode) -> list[str]:
    """What is wrong with the form in which any notebook is stored. Cure: save."""
    first = next(iter_validate(notebook), None)  # validate() would repair the ids
    if first:
        return [f"not a valid notebook: {str(first).splitlines()[0]}"]
    found = [
        f"metadata.{key} is not the fixed one"
        for key, value in FIXED.items()
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
        data = output.get("data", {})
        told = [text for kind, text in data.items() if not kind.startswith("image/")]
        for text in (output.get("text", ""), *output.get("traceback", []), *told):
            text = DATA_ADDRESS.sub("", str(text))
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
    inside = {id(cell) for three in triples(notebook.cells) for cell in three}
    for index, cell in enumerate(notebook.cells):
        source, text = cell.source, cell.cell_type == "markdown"
        stub = text and ("**Exercise " in source or SOLUTION in tags(cell))
        if stub and id(cell) not in inside:
            found.append(f"cell {index}: an exercise is a text, a stub, a solution")
        if text and "**Exercise " in source and not exercises([cell]):
            found.append(f"cell {index}: '**Exercise 3.1** · ... · 5 minutes'")
        if CHANGE_IT in tags(cell) and "verdict(" not in source:
            found.append(f"cell {index}: tagged {CHANGE_IT!r}, it gives a verdict")
        if not text and "assert " in source:  # a learner's change would stop it
            found.append(f"cell {index}: it asserts; expect() says what moved")
    return found + unanswered(notebook)


def unanswered(notebook: NotebookNode) -> list[str]:
    """A question is not tagged, or none of the next two code cells answers it."""
    code = [(i, c) for i, c in code_cells(notebook) if not is_behind(c)]
    found = []
    for index, cell in code:
        names = asked(cell)
        if not names and ("= predict(" in cell.source or PREDICT in tags(cell)):
            found.append(f"cell {index}: write name = predict(...), tag it {PREDICT!r}")
        after = [c.source for i, c in code if i > index and not asked(c)]
        found += [
            f"cell {index}: none of the next two code cells calls {name}.reveal(...)"
            for name in names
            if f"{name}.reveal(" not in "".join(after[:2])
        ]
    return found
