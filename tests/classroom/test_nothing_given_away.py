"""No solution stands above its exercise, whatever its variables are called there."""

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode, v4

from grpo_course.classroom.check.mutations import canonical
from grpo_course.classroom.check.patterns import AsMethods
from grpo_course.classroom.exercises import EXERCISES

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PYTHON_BLOCK = re.compile(r"^```+python\n(.*?)^```", re.DOTALL | re.MULTILINE)
DOES_SOMETHING = (ast.Call, ast.BinOp, ast.Subscript, ast.Compare, ast.UnaryOp)
# A choice is written as a table: what it says is the answer, not how.
WRITTEN = [exercise for exercise in EXERCISES if not exercise.choice]


def code_above(notebook: NotebookNode, key: str) -> Iterator[str]:
    """Code that is read before an exercise: in cells, listings and texts.

    Solutions of exercises before it are folded, and steps of one task build on them.
    """
    for cell in notebook.cells:
        if f"**Exercise {key}**" in cell.source:
            return
        if cell.cell_type == "code":
            yield cell.source
        elif "solution" not in cell.metadata.get("tags", []):
            yield from PYTHON_BLOCK.findall(cell.source)
        for output in cell.get("outputs", []):
            listing = output.get("data", {}).get("text/markdown", "")
            yield from PYTHON_BLOCK.findall(listing)
    raise AssertionError(f"exercise {key} is in no notebook")


def tree(source: str) -> ast.Module:
    """The syntax of a cell, without magics; nothing of what is no Python."""
    lines = [line for line in source.splitlines() if not line.startswith(("%", "!"))]
    try:
        return AsMethods().visit(ast.parse("\n".join(lines)))
    except SyntaxError:
        return ast.Module([], [])


class WithoutNames(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("_", ast.Load())


def shape(node: ast.AST) -> str:
    return ast.dump(WithoutNames().visit(copy.deepcopy(node)))


def given_away(notebook: NotebookNode, key: str, solution: ast.Module) -> list[str]:
    """The pieces of a solution that stand above it, if all do."""
    pieces = [
        node.value
        for node in ast.walk(solution)
        if isinstance(node, ast.Return | ast.Assign | ast.AugAssign | ast.Expr)
        if any(isinstance(each, DOES_SOMETHING) for each in ast.walk(node))
    ]
    above = {
        shape(node)
        for source in code_above(notebook, key)
        for node in ast.walk(tree(source))
        if isinstance(node, ast.expr)
    }
    seen = [piece for piece in pieces if shape(piece) in above]
    return [ast.unparse(each) for each in seen] if len(seen) == len(pieces) else []


@pytest.mark.parametrize("exercise", WRITTEN, ids=lambda exercise: exercise.name)
def test_no_solution_stands_above_its_exercise(exercise):
    number = exercise.key.split(".")[0]
    (path,) = NOTEBOOKS.glob(f"{number.zfill(2)}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    found = given_away(notebook, exercise.key, canonical(exercise.solution))
    assert not found


SOLUTION = tree("def f(a):\n    b = a.sum(dim=-1)\n    return b.exp() * a")
TASK = v4.new_markdown_cell("**Exercise 9.9** · 5 minutes")
LISTING = "```python\nx.sum(-1)\ntorch.exp(x) * y\n```"
SHOWN_LISTING = v4.new_output("display_data", {"text/markdown": LISTING})


@pytest.mark.parametrize(
    "cell, given",
    [
        (v4.new_code_cell("%matplotlib inline\nx = y.sum(-1)\nprint(x.exp() * y)"), 2),
        (v4.new_code_cell("x = y.sum(-1)\nprint(x.log() * y)"), 0),
        (v4.new_markdown_cell(LISTING), 2),
        (v4.new_code_cell("show(f)", outputs=[SHOWN_LISTING]), 2),
    ],
)
def test_a_solution_is_found_under_other_names(cell, given):
    notebook = v4.new_notebook(cells=[cell, TASK])
    assert len(given_away(notebook, "9.9", SOLUTION)) == given
    below = v4.new_notebook(cells=[TASK, cell])
    assert given_away(below, "9.9", SOLUTION) == []
