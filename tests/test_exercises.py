"""Every exercise: its mistakes, right forms, cases without holes, stub and solution."""

import ast
import inspect
import re
from itertools import count
from pathlib import Path

import nbformat
import pytest
import torch

from grpo_course.classroom import check as checking
from grpo_course.classroom.check import (
    Pair,
    check,
    diagnose,
    index,
    judge,
    lesson,
    ours,
    problem_of,
    report,
    run,
)
from grpo_course.lessons.exercises import nb06
from tests import right_forms

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CHAPTERS = sorted({key.split(".")[0] for key in index().values()}, key=int)
EXERCISES = [task for chapter in CHAPTERS for task in lesson(f"{chapter}.1")]
NAMES = {task.name: task for task in EXERCISES}
# Answers that train, or are tried on every trainer of the hunt: over a second each.
LONG = {"6.3", "10.2", "10.4"}
EACH = [
    pytest.param(task, marks=[pytest.mark.slow] * (task.key in LONG), id=task.key)
    for task in EXERCISES
]


@pytest.mark.slow
@pytest.mark.parametrize("task", EACH)
def test_each_mistake_is_refused_with_its_own_hint(task):
    assert len(task.cases) > 1 and task.insight
    assert 2 < len(task.hints) < 10 or task.choice or task.use
    wrong = {}
    for edit, hint in task.hints.items():
        problem = judge(task, [ours(task, case, edit) for case in task.cases])
        if problem is None or problem.hint != hint:
            wrong[edit] = problem and problem.hint
    assert not wrong
    assert diagnose(task, task.solution) is None


FORMS = [*right_forms.RIGHT, *right_forms.PACKAGE.items()]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "answer"), FORMS)
def test_a_right_form_is_accepted(name, answer):
    problem = diagnose(NAMES[name], answer)
    assert problem is None, report(NAMES[name], answer, problem)


@pytest.mark.parametrize(("name", "answer"), right_forms.WRONG)
def test_what_is_wrong_in_rare_cases_only_is_refused(name, answer):
    assert diagnose(NAMES[name], answer) is not None


# Cases without holes: each operator and number of a solution, changed, is noticed.

TURNED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.Gt: ast.Lt,
    ast.Lt: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.And: ast.Or,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
RENAMED = {"sum": "mean", "mean": "sum", "minimum": "maximum", "all": "any"}
RENAMED |= {new: old for old, new in RENAMED.items()}


class Turn(ast.NodeTransformer):
    """Change the piece with a number; `places` counts on."""

    def __init__(self, wanted: int):
        self.wanted, self.places, self.what = wanted, count(), ""

    def here(self, node: ast.AST) -> bool:
        if next(self.places) != self.wanted:
            return False
        self.what = ast.unparse(node)
        return True

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        operator = (
            getattr(node, "op", None) or (getattr(node, "ops", None) or [None])[0]
        )
        turned = TURNED.get(type(operator))
        if turned and self.here(node):
            if hasattr(node, "op"):
                node.op = turned()
            else:
                node.ops[0] = turned()
        signed = isinstance(node, ast.UnaryOp) and not isinstance(
            node.operand, ast.Constant
        )
        if signed and self.here(node):
            return node.operand
        if isinstance(node, ast.Attribute) and node.attr in RENAMED and self.here(node):
            node.attr = RENAMED[node.attr]
        number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
        if number and self.here(node):
            node.value += 1
        return node


def passes(task, function, cases):
    """Whether nothing is wrong in any case; the first that is ends it, and leads."""
    for place, case in enumerate(cases):
        pair = Pair(case, run(function, task, case), ours(task, case))
        if problem_of(pair, task, False) or problem_of(pair, task, True):
            cases.insert(0, cases.pop(place))
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("task", EXERCISES, ids=lambda task: task.key)
def test_no_operator_can_be_turned_unnoticed(task):
    unnoticed, cases = [], [*task.cases]
    for wanted in count():
        turn = Turn(wanted)
        tree = ast.fix_missing_locations(turn.visit(ast.parse(task.source)))
        if not turn.what:
            break
        if passes(task, task.made(ast.unparse(tree)), cases):
            unnoticed.append(turn.what)
    assert {*unnoticed} == right_forms.EQUIVALENT.get(task.key, set())


def holding(task, place):
    """The solution, with what it was first given at a place written down in it."""
    first = []

    def answer(*given):
        first.append(given[place])
        return task.solution(*given[:place], first[0], *given[place + 1 :])

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("task", EXERCISES, ids=lambda task: task.key)
def test_no_argument_can_be_written_down_unnoticed(task):
    parameters = inspect.signature(task.solution).parameters.values()
    names = [
        each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    assert [
        name
        for place, name in enumerate(names)
        if passes(task, holding(task, place), [*task.cases])
    ] == []


# In the notebooks: a stub that is untouched, and a solution that is right.

PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def tags(cell):
    return cell.metadata.get("tags", [])


def tree(source):
    """The syntax of a cell, without magics and shell lines."""
    lines = [line for line in source.splitlines() if not line.startswith(("%", "!"))]
    return ast.parse("\n".join(lines))


def functions(source):
    found = [n for n in tree(source).body if isinstance(n, ast.FunctionDef)]
    return {node.name: node for node in found}


def code_of(node):
    """A function's code, without what it says about itself."""
    node.body = node.body[bool(ast.get_docstring(node)) :]
    node.decorator_list = []
    return ast.unparse(node)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_stub_and_solution_of_each_exercise(chapter, capsys, monkeypatch):
    """The shown solution is the one that answers are compared with."""
    monkeypatch.setattr(checking, "_session", {})
    (path,) = NOTEBOOKS.glob(f"{int(chapter):02d}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    imports = [node for text in code for node in tree(text).body]
    names = {"__name__": "__main__"}
    for node in imports:
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), names)
    names["check"] = lambda function: function
    shown = [c.source for c in cells if "solution" in tags(c)]
    solutions = "\n".join(b for text in shown for b in PYTHON_BLOCK.findall(text))
    for task in lesson(f"{chapter}.1"):
        stub = f"check({task.name});"  # of a draft; the others are named anew
        stub = stub if task.draft else f"{task.name} = {stub[:-1]}"
        (source,) = [text for text in code if stub in text]
        number = [c.source for c in cells if f"Exercise {task.key}**" in c.source]
        assert len(number) == 1, task.key
        exec(source, names)
        check(names[task.name])
        assert capsys.readouterr().out.startswith(f"[ ] {task.key}")
        own = functions(task.source)[task.name]
        assert code_of(functions(solutions)[task.name]) == code_of(own)


def test_a_setting_of_06_hides_the_loops_that_its_hints_name():
    usual = {"num_epochs": 4, "num_steps": 3, "period": 2, "beta": 0.5}
    for setting, hidden in nb06.HIDDEN_AT.items():
        name, value = setting.split("=")
        given = nb06.fresh_start, nb06.PROMPTS
        losses = {
            letter: loop(*given, **usual | {name: int(value)})
            for letter, loop in nb06.colleagues().items()
        }
        right = losses.pop("right")
        same = [x for x, y in losses.items() if torch.allclose(y, right, atol=1e-4)]
        assert same == [*hidden], setting
