"""A right answer of an unusual type is accepted, and later cells take it, too.

Where `check` refuses one, it says which type is asked for.
"""

import ast
import re
import runpy
import shutil
from pathlib import Path

import pytest
from torch import Tensor

from grpo_course.classroom.check.outcome import run
from grpo_course.classroom.exercises import EXERCISES
from grpo_course.workshop import cells, exercise_cells, form, kernels, notebooks

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
UNUSUAL = runpy.run_path(str(Path(__file__).parent / "unusual.py"))
FORMS, answer_in = UNUSUAL["FORMS"], UNUSUAL["answer_in"]
# These train for half a minute or more below their exercises.
LONG = ("06", "09", "10", "12", "13", "14", "15")
PATHS = [p for p in sorted(NOTEBOOKS.glob("*.ipynb")) if p.stem[:2] not in LONG]
NAMES_THE_TYPE = ("dtype must be", "must be a tensor", "must be a plain number")


def has_form(value, changed):
    """Whether a form has changed anything."""
    if isinstance(value, Tensor) and isinstance(changed, Tensor):
        return value is not changed
    return type(value) is not type(changed)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_a_right_answer_is_accepted_or_the_type_is_named(exercise, judge):
    value = run(exercise.solution, exercise, exercise.cases[0]).value
    for each in FORMS:
        if has_form(value, each(value)):
            verdict = judge(exercise.name, answer_in(each, exercise))
            refused = any(words in verdict.advice for words in NAMES_THE_TYPE)
            assert refused or verdict.text.startswith("[v]"), verdict.text


CHECKED = re.compile(r"check\((\w+)\)")


def filled(source):
    """A stub's cell, with the most unusual right answer in place of each stub."""
    names, tree = CHECKED.findall(source), ast.parse(source)
    tree.body = [each for each in tree.body if getattr(each, "name", "") not in names]
    folder = str(Path(__file__).parent)
    lines = ["import sys", f"sys.path.insert(0, {folder!r})", "import unusual"]
    lines += [f"{name} = unusual.most_unusual({name!r})" for name in names]
    return "\n".join([*lines, ast.unparse(tree)])


def names_in(source):
    """(names that a cell needs, names that it makes or changes)."""
    nodes = list(ast.walk(ast.parse(source)))
    used = {n.id for n in nodes if isinstance(n, ast.Name)}
    made = {n.id for n in nodes if isinstance(n, ast.Name) and storing(n)}
    made |= {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    imported = [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]
    made |= {each.asname or each.name for n in imported for each in n.names}
    parts = [n for n in nodes if isinstance(n, ast.Subscript | ast.Attribute)]
    changed = {root(n) for n in parts if storing(n)}
    return used - made | changed, made | changed


def storing(node):
    return isinstance(node.ctx, ast.Store)


def root(node):
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def below_and_before(cells, stubs):
    """The cells that use what a stub's cell makes, and all that they need."""
    names = [names_in(cell.source) for cell in cells]
    kept, below = set(), set()
    for index, (needed, made) in enumerate(names):
        if cells[index] in stubs or needed & below:
            kept.add(index)
            below |= made
    wanted = set()
    for index, (needed, made) in reversed(list(enumerate(names))):
        if index in kept or made & wanted:
            kept.add(index)
            wanted |= needed
    return [cells[index] for index in sorted(kept)]


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_cells_below_take_an_unusual_answer(path, tmp_path):
    kernels.use()
    folder = tmp_path / "notebooks"
    shutil.copytree(path.parent, folder)
    notebook = form.read(path)
    stubs = [stub for _, stub, _ in exercise_cells.triples(notebook.cells)]
    code = [c for _, c in form.code_cells(notebook) if not cells.is_behind(c)]
    notebook.cells = below_and_before(code, stubs)
    for stub in stubs:
        stub.source = filled(stub.source)
    for cell in notebook.cells:  # go on behind one that fails, to name them all
        cell.metadata["tags"] = ["raises-exception"]
    notebooks.execute(notebook, folder)
    outputs = [(cell, each) for cell in notebook.cells for each in cell.outputs]
    assert "[x]" not in "".join(output.get("text", "") for _, output in outputs)
    failed = [(c.source, o.evalue) for c, o in outputs if o.output_type == "error"]
    assert not failed
