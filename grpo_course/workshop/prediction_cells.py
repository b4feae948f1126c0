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
CHOICES = re.compile(r"(?:^  \( \) .*\n?)+", re.MULTILINE)
CHOICE = re.compile(r"\( \) (.+?)(?=   \( \)|$)", re.MULTILINE)
CAME_OUT = re.compile(r"^Came out: (.*)$", re.MULTILINE)
HIDDEN = "outputs_hidden"
EXPECTS = re.compile(r"^ *expect\(", re.MULTILINE)
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


def choices(cell: NotebookNode) -> dict[str, list[str]]:
    """What a cell offers for each of its questions, as it is stored, by variable."""
    blocks = [CHOICE.findall(block) for block in CHOICES.findall(printed(cell))]
    return dict(zip(asked(cell), blocks, strict=True))


def single(cell: NotebookNode) -> tuple[str, list[str]]:
    """The one question of a cell, with its choices; empty where it asks several."""
    found = [*zip(asked(cell).values(), choices(cell).values(), strict=True)]
    return found[0] if len(found) == 1 else ("", [])


def lettered(offered: Iterable[str]) -> str:
    """Choices on one line, with the letters that they have on a slide."""
    return "; ".join(f"{chr(65 + k)}. {each}" for k, each in enumerate(offered))


def with_letter(came: str, offered: list[str]) -> str:
    """What came out, with the letter of its choice: "B. half of it."."""
    choice = came.removesuffix(".").rpartition("nearest to ")[2]
    letter = f"{chr(65 + offered.index(choice))}. " if choice in offered else ""
    return f"{letter}{came}"


def printed(cell: NotebookNode) -> str:
    """The text that a cell has printed."""
    return "".join("".join(output.get("text", "")) for output in cell.outputs)


def came_out(cell: NotebookNode, name: str) -> str:
    """What a cell that shows what came out has stored for one of its questions."""
    names = revealed(cell)
    told = CAME_OUT.findall(printed(cell))
    return told[names.index(name)] if len(told) == len(names) else ""


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


def given_away(notebook: NotebookNode) -> list[str]:
    """Code between a question and its answer says what is expected."""
    closed = {id(cell) for cell in unanswered(notebook)}
    return [
        f"cell {index}: a guess waits for its answer, and the code says what is "
        f"expected: move it into a cell tagged {HOLDS!r} below"
        for index, cell in enumerate(notebook.cells)
        if id(cell) in closed and EXPECTS.search(cell.source)
    ]


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
