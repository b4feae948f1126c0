"""Every stub and every shown solution in the notebooks, executed and judged."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

import nbformat
import pytest

from grpo_course.classroom import check as checking
from grpo_course.classroom.exercises import EXERCISES
from grpo_course.workshop import exercise_cells

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NAMES = {exercise.name for exercise in EXERCISES}
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
# A code cell with this tag shows how check works; it is no exercise.
EXAMPLE = "exercise-example"


def read(path: Path):
    return nbformat.read(path, as_version=4)


def tree(source: str) -> ast.Module:
    """The syntax of a cell, without magics and shell lines."""
    lines = [line for line in source.splitlines() if not line.startswith(("%", "!"))]
    return ast.parse("\n".join(lines))


def checked_names(source: str) -> list[str]:
    """The names a cell hands to check."""
    return [
        ast.unparse(node.args[0])
        for node in ast.walk(tree(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "check"
        and node.args
    ]


def import_names(notebook) -> dict:
    """A namespace with what the notebook's code cells import, and nothing else."""
    names = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for node in tree(cell.source).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    exec(ast.unparse(node), names)
    return names


def tags(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def stubs(notebook) -> list[tuple[str, str]]:
    """(name, source) of each exercise cell."""
    return [
        (name, cell.source)
        for cell in notebook.cells
        if cell.cell_type == "code" and EXAMPLE not in tags(cell)
        for name in checked_names(cell.source)
    ]


def solutions(notebook) -> list[tuple[str, str]]:
    """(name, source) of each exercise's function in the shown solutions.

    A solution that defines no exercise's function is listed under the name "".
    """
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "markdown" or "solution" not in tags(cell):
            continue
        blocks = PYTHON_BLOCK.findall(cell.source)
        named = [(name, block) for block in blocks for name in defined(block)]
        found += named or [("", cell.source)]
    return found


def defined(block: str) -> list[str]:
    functions = [n for n in tree(block).body if isinstance(n, ast.FunctionDef)]
    return [node.name for node in functions if node.name in NAMES]


def cases(pick) -> list:
    """One case for each exercise in the notebooks; one that skips if there is none."""
    found = [
        pytest.param(path, name, source, id=f"{path.stem}-{name or 'unnamed'}")
        for path in sorted(NOTEBOOKS.glob("*.ipynb"))
        for name, source in pick(read(path))
    ]
    reason = "no exercises in notebooks/ yet"
    skip = pytest.param(None, "", "", marks=pytest.mark.skip(reason=reason), id="none")
    return found or [skip]


def verdict(path: Path, name: str, source: str, capsys, monkeypatch) -> str:
    """What check prints when the source is executed after the notebook's imports."""
    monkeypatch.setattr(checking, "_session", {})
    names = import_names(read(path))
    names["check"] = lambda function: function
    capsys.readouterr()
    exec(compile(source, f"<{path.name} {name}>", "exec"), names)
    checking.check(names[name])
    return capsys.readouterr().out


@pytest.mark.parametrize(("path", "name", "source"), cases(stubs))
def test_every_stub_is_untouched(path, name, source, capsys, monkeypatch):
    assert name in NAMES, f"{path.name} checks {name}, which no exercise is called"
    printed = verdict(path, name, source, capsys, monkeypatch)
    assert printed.startswith("[ ]"), printed


@pytest.mark.parametrize(("path", "name", "source"), cases(solutions))
def test_every_shown_solution_is_right(path, name, source, capsys, monkeypatch):
    assert name, f"a solution in {path.name} defines no exercise's function:\n{source}"
    printed = verdict(path, name, source, capsys, monkeypatch)
    assert printed.startswith("[v]"), printed


def code_of(source: str, name: str) -> str:
    """A function's code, without what it says about itself."""
    for node in tree(textwrap.dedent(source)).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            if ast.get_docstring(node):
                node.body = node.body[1:]
            return ast.unparse(node)
    return ""


@pytest.mark.parametrize(("path", "name", "source"), cases(solutions))
def test_a_shown_solution_is_the_one_that_answers_are_compared_with(path, name, source):
    """Its mutants are what learners' answers are recognised by."""
    own = next(each.solution for each in EXERCISES if each.name == name)
    assert code_of(source, name) == code_of(inspect.getsource(own), name) != ""


CHAPTERS = sorted({exercise.key.split(".")[0] for exercise in EXERCISES}, key=int)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_notebook_holds_its_exercises_each_with_a_solution(chapter):
    paths = list(NOTEBOOKS.glob(f"{int(chapter):02d}_*.ipynb"))
    if not paths:
        pytest.skip(f"no notebook {int(chapter):02d} yet")
    notebook = read(paths[0])
    wanted = {e.name for e in EXERCISES if e.key.split(".")[0] == chapter}
    assert {name for name, _ in stubs(notebook)} == wanted
    assert {name for name, _ in solutions(notebook)} == wanted


@pytest.mark.parametrize(
    "path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda p: p.stem
)
def test_an_exercise_bears_the_number_of_its_key(path):
    keys = {exercise.name: exercise.key for exercise in EXERCISES}
    for task, stub, _ in exercise_cells.triples(read(path).cells):
        numbers = [number for number, _ in exercise_cells.stated([task])]
        assert numbers == [keys[name] for name in checked_names(stub.source)]


STUB = (
    "def center_by_group(rewards):\n    {}\n\ncenter_by_group = check(center_by_group)"
)
SOLUTION = "```python\ndef center_by_group(rewards):\n    {}\n```\n"


def test_the_helpers_find_stub_and_solution(tmp_path, capsys, monkeypatch):
    answer = "return rewards - einops.reduce(rewards, 'b t -> b 1', 'mean')"
    text = "<details><summary>Solution</summary>\n\n" + SOLUTION.format(answer)
    cells = [
        nbformat.v4.new_code_cell("%matplotlib inline\nimport einops"),
        nbformat.v4.new_code_cell(STUB.format("raise NotImplementedError")),
        nbformat.v4.new_markdown_cell(text, metadata={"tags": ["solution"]}),
        nbformat.v4.new_markdown_cell("a lost one", metadata={"tags": ["solution"]}),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    path = tmp_path / "03_x.ipynb"
    nbformat.write(notebook, path)
    ((name, source),) = stubs(notebook)
    assert verdict(path, name, source, capsys, monkeypatch).startswith("[ ]")
    (shown, lost) = solutions(notebook)
    assert verdict(path, *shown, capsys, monkeypatch).startswith("[v]")
    assert lost[0] == ""
