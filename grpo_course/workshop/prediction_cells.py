"""The cells of a prediction: one that asks, one that shows what comes out.

The question is a code cell tagged `predict` that calls `predict("...", ...)`. The cell
that computes the result calls `.reveal(...)`. Nobody reads the answer before: from the
question to there, stored outputs are closed until they run, and no code says what is
expected. That stands in a cell below, tagged `holds`, which is folded.
"""

import ast
import re
from collections.abc import Iterable

from nbformat import NotebookNode

from grpo_course.workshop.cells import HOLDS, is_behind, put_behind, tags

PREDICT = "predict"
REVEAL = re.compile(r"(\w+)\.reveal\(")
HIDDEN = "outputs_hidden"
SOON = 2  # one cell may train before the next one shows


def asks(cell: NotebookNode) -> bool:
    """Whether a cell asks for a guess."""
    return cell.cell_type == "code" and PREDICT in tags(cell)


def reveals(cell: NotebookNode) -> bool:
    """Whether a cell shows what came out."""
    return cell.cell_type == "code" and bool(revealed(cell))


def revealed(cell: NotebookNode) -> list[str]:
    """The variables of the guesses whose result a cell shows."""
    return REVEAL.findall(cell.source)


def asked(cell: NotebookNode) -> dict[str, str]:
    """The questions of a cell, by the variable that holds the guess."""
    found = {}
    for node in ast.walk(ast.parse(cell.source)):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if ast.unparse(node.value.func) == PREDICT:
            question = ast.literal_eval(node.value.args[0])
            found[ast.unparse(node.targets[0])] = question
    return found


def questions(cells: Iterable[NotebookNode]) -> list[str]:
    """The question of every prediction, as it is typed."""
    return [text for cell in cells if asks(cell) for text in asked(cell).values()]


def unanswered(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells from a question to its answer, the answering one included."""
    found, waiting = [], set[str]()
    for cell in (c for c in notebook.cells if c.cell_type == "code"):
        if asks(cell):
            waiting |= asked(cell).keys()
        elif waiting:
            found.append(cell)
            waiting -= set(revealed(cell))
    return found


def close(notebook: NotebookNode) -> None:
    """Close the stored outputs that may give an answer away; put behind what holds."""
    closed = {id(cell) for cell in unanswered(notebook)}
    for cell in notebook.cells:
        settings = cell.metadata.setdefault("jupyter", {})
        settings.pop(HIDDEN, None)
        if id(cell) in closed:
            settings[HIDDEN] = True
        if HOLDS in tags(cell):
            put_behind(cell)
        if not settings:
            del cell.metadata["jupyter"]


def complaints(notebook: NotebookNode) -> list[str]:
    """A question is not tagged, or none of the next two code cells answers it."""
    code = [(i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "code"]
    results = [(i, c) for i, c in code if not (asks(c) or is_behind(c))]
    found = [
        f"cell {index}: it asks for a guess; tag it {PREDICT!r}"
        for index, cell in results
        if "= predict(" in cell.source
    ]
    for index, cell in code:
        after = [c.source for i, c in results if i > index][:SOON]
        names = asked(cell) if asks(cell) else {}
        if asks(cell) and not names:
            found.append(f"cell {index}: write name = predict(...), or drop its tag")
        found += [
            f"cell {index}: none of the next {SOON} code cells calls {name}.reveal(...)"
            for name in names
            if f"{name}.reveal(" not in "".join(after)
        ]
    return found
