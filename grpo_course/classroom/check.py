"""`check` judges the answer to an exercise by what it does; `progress` lists them all.

An exercise is a solution, the cases on which an answer is compared with it, and the
mistakes that people make, written as edits of the solution, one a line with its hint:

    @exercise("3.1", gradient="rewards")
    def center_by_group(rewards):
        \"""float [batch trial] -> float [batch trial]\"""
        return rewards - rewards.mean(dim=-1, keepdim=True)

    center_by_group.cases = (case("two groups", rewards=[[0.0, 1.0], [3.0, 5.0]]),)
    center_by_group.insight = "What you know once it is right."
    center_by_group.mistakes = '''
    .mean(dim=-1, keepdim=True) => .mean() | You subtract the mean of the whole batch.
    rewards - => rewards + && dim=-1 => dim=0 | Two edits at once are one mistake.
    return rewards | Nothing is subtracted. (What begins with return is the whole body.)
    '''

A wrong answer that behaves like an edit gets that edit's hint. Else come slips that are
made everywhere, and are found by making them in the solution: another axis, .sum() for
.mean(), two arguments exchanged, a number from the first case written down. Else what
the result shows: a shape, a sign, a factor, a lost gradient. Behind the hint stand what
came out, what was expected, what was given. No answer is judged by how it is written.
"""

import ast
import copy
import difflib
import dis
import inspect
import math
import re
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from html import escape
from importlib import import_module
from importlib.resources import files
from itertools import combinations, permutations
from numbers import Real
from types import CodeType
from typing import Any

import torch
from torch import Tensor, nn

from grpo_course.classroom import record
from grpo_course.classroom.screen import WIDTH

LESSONS = "grpo_course.lessons.exercises"
TOLERANCE = 1e-5  # relative to the largest entry: room for float32 rounding
LONGEST = 150  # characters of a value; of a longer one the form is told
FEW = 4  # lines of what was given; where there is no room, shapes stand for numbers
STATES = {" ": "not attempted yet", "x": "not right yet", "v": "right"}


# An exercise


@dataclass(frozen=True, eq=False)
class Case:
    """One call of the function; its arguments in the order of the stub.

    `hint` is for a case whose failure alone names the misconception (ties, say).
    `within` replaces the tolerance of the exercise.
    """

    description: str
    args: Mapping[str, Any]
    hint: str = ""
    within: float | None = None


def case(
    description: str, hint: str = "", *, within: float | None = None, **args: object
) -> Case:
    """A Case; a list among the arguments becomes a tensor."""
    made = {n: torch.tensor(x) if isinstance(x, list) else x for n, x in args.items()}
    return Case(description, made, hint, within)


@dataclass(eq=False)
class Exercise:
    """A function to write, and everything needed to judge an answer.

    gradient      names of arguments whose gradient is compared as well; where the
                  solution's is zero, the answer's must be zero too
    logs          names of arguments whose last axis is a whole distribution
    tolerance     a wider one lets through what the task leaves open
    choice        the answer picks from a list: the right name is not shown
    exact         the answer says yes or no: a mistake is named only if it does so, too,
                  in every case
    plain_number  a tensor without axes is not taken for a number
    use           `use(function, *args)` is compared: what the answer is good for
    draft         stands in the stub in place of NotImplementedError
    """

    key: str
    solution: Callable
    gradient: str = ""
    logs: str = ""
    tolerance: float = TOLERANCE
    choice: bool = False
    exact: bool = False
    plain_number: bool = False
    use: Callable | None = None
    draft: Callable | None = None
    cases: Sequence[Case] = ()
    insight: str = ""
    mistakes: str = ""

    @property
    def name(self) -> str:
        """That of the function."""
        return self.solution.__name__

    @property
    def hints(self) -> dict[str, str]:
        """Each edit of the solution, with the hint for who made it."""
        lines = filter(None, map(str.strip, self.mistakes.splitlines()))
        pairs = (line.rpartition(" | ") for line in lines)
        return {edit.strip(): hint.strip() for edit, _, hint in pairs}

    @cached_property
    def slips(self) -> dict[str, Callable]:
        """Each edit of the solution, as a function."""
        return {edit: self.edited(edit) for edit in self.hints}

    @cached_property
    def usual_slips(self) -> dict[str, Callable]:
        """The solution with a slip that is made everywhere, in words and as a function.

        Not where the answer trains or says yes or no: too slow, and too easily met.
        """
        if self.use or self.exact or self.choice or not is_written_out(self.solution):
            return {}
        found = written(self) | exchanged(self) | misread(self) | spoilt(self.solution)
        for slip, source in turned(self.source, self.like):
            while slip in found:  # the same slip at another place
                slip += " "
            try:
                found[slip] = self.made(source)
            except SyntaxError:  # an f-string, whose pieces have no place of their own
                continue
        return found

    @property
    def like(self) -> dict[str, list[str]]:
        """For each argument, the others of its kind, which may be taken for it."""

        def kind(value: object) -> object:
            if isinstance(value, Tensor):
                return kind_of(value)
            return float if type(value) is int else type(value)

        kinds = [{n: kind(x) for n, x in each.args.items()} for each in self.cases]
        names = list(inspect.signature(self.solution).parameters)
        return {
            one: [
                n
                for n in names
                if n != one and any(k.get(n) is k.get(one) for k in kinds)
            ]
            for one in names
        }

    @property
    def source(self) -> str:
        """The code of the solution, without its decorator."""
        source = textwrap.dedent(inspect.getsource(self.solution))
        return source[re.search(r"^def ", source, re.MULTILINE).start() :]  # type: ignore[union-attr]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What the solution gives: a later exercise may use an earlier one."""
        return self.solution(*args, **named)

    def made(self, source: str) -> Callable:
        """The function of a changed source, where the solution stands."""
        space = dict(self.solution.__globals__)
        exec(source, space)
        return space[self.name]

    def edited(self, edit: str) -> Callable:
        """The solution after an edit. Raises ValueError where it does not fit."""
        source = self.source
        if edit.startswith("return"):
            (function,) = ast.parse(source).body
            assert isinstance(function, ast.FunctionDef)
            first = function.body[bool(ast.get_docstring(function))]
            head = source.splitlines()[: first.lineno - 1]
            source = "\n".join([*head, "    " + edit])
        else:
            for each in edit.split(" && "):
                old, _, new = map(str.strip, each.partition("=>"))
                if source.count(old) != 1:
                    raise ValueError(f"{self.key}: {old!r} must stand there once")
                source = source.replace(old, new)
        return self.made(source)

    @property
    def axes(self) -> dict[str, str]:
        """Those of each argument and of the result ("return"), from the docstring."""
        given, _, result = (self.solution.__doc__ or "").partition("->")
        pieces = []
        for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", given):
            axes = re.search(r"\[([^\]]*)\]", part)
            pieces += [axes[1] if axes else ""] * (2 if " twice" in part else 1)
        names = list(inspect.signature(self.solution).parameters)
        found = (
            dict(zip(names, pieces, strict=False)) if len(pieces) == len(names) else {}
        )
        axes = re.search(r"\[([^\]]*)\]", result)
        return found | ({"return": axes[1]} if axes else {})


def exercise(key: str, **how: Any) -> Callable[[Callable], Exercise]:
    """Make the function below an Exercise; `how` are the fields of one."""
    return lambda solution: Exercise(key, solution, **how)


# Slips that are made everywhere

CONFUSED = {
    "sum": ("mean", "amax"),
    "mean": ("sum",),
    "minimum": ("maximum",),
    "maximum": ("minimum",),
    "amax": ("amin", "sum"),
    "amin": ("amax",),
    "min": ("max",),
    "max": ("min",),
    "all": ("any",),
    "any": ("all",),
    "softmax": ("log_softmax",),
    "log_softmax": ("softmax",),
    "std": ("var",),
    "exp": ("expm1",),
    "expm1": ("exp",),
    "gt": ("lt",),
}
FORGOTTEN = {"detach", "clamp", "abs", "exp", "log", "log_softmax", "square", "sort"}
SIGNS: dict[type, tuple[str, ...]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Gt: (">", "<", ">="),
    ast.GtE: (">=", ">"),
    ast.Lt: ("<", ">", "<="),
    ast.LtE: ("<=", "<"),
    ast.Eq: ("==", "!="),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}


def is_written_out(function: Callable) -> bool:
    """Whether a function has a source with a name: no lambda, nothing built in."""
    return inspect.isfunction(function) and function.__name__ != "<lambda>"


COMMON = (0, 1, 2, 3, 4, 0.1, 0.2, 0.5)


def written(task: Exercise) -> dict[str, Callable]:
    """The solution, with a number written down in place of an argument."""

    def holding(place: int, number: float) -> Callable:
        return lambda *given: task.solution(*given[:place], number, *given[place + 1 :])

    found = {}
    for place, name in enumerate(inspect.signature(task.solution).parameters):
        if all(isinstance(each.args.get(name), Real) for each in task.cases):
            truth = isinstance(task.cases[0].args[name], bool)
            for number in (True, False) if truth else COMMON:
                slip = f"with `{number}` in place of `{name}`"
                found[slip] = holding(place, number)
    return found


def exchanged(task: Exercise) -> dict[str, Callable]:
    """The solution, taking one argument for another of its kind, or exchanging two."""

    def taking(order: list[int]) -> Callable:
        return lambda *given: task.solution(*(given[place] for place in order))

    found = {}
    names = list(task.like)
    for one, two in permutations(range(len(names)), 2):
        if names[two] not in task.like[names[one]]:
            continue
        order = list(range(len(names)))
        order[one] = two
        slip = f"with `{names[two]}` in place of `{names[one]}`"
        found[slip] = taking(order)
        if one < two:
            order = [*order[:two], one, *order[two + 1 :]]
            slip = f"with `{names[one]}` and `{names[two]}` exchanged"
            found[slip] = taking(order)
    return found


def misread(task: Exercise) -> dict[str, Callable]:
    """The solution, of arguments whose axes are taken for others."""
    axes = task.axes
    groups = [n for n, each in axes.items() if each.startswith("batch trial")]

    def of_one_group(*given: Any) -> Any:
        both = dict(zip(names, given, strict=True))
        size = next(both[n].shape[:2] for n in groups if n in both)
        for name in set(groups) & set(both):
            both[name] = both[name].flatten(0, 1)[None]
        value = task.solution(*both.values())
        return value.reshape(*size, *value.shape[2:]) if "return" in groups else value

    def across(*given: Any) -> Any:
        both = dict(zip(names, given, strict=True))
        for name in set(groups) & set(both):
            both[name] = both[name].transpose(0, 1)
        value = task.solution(*both.values())
        return value.transpose(0, 1) if "return" in groups else value

    def of_the_first(name: str) -> Callable:
        def taking(*given: Any) -> Any:
            both = dict(zip(names, given, strict=True))
            both[name] = both[name][:1].expand_as(both[name])
            return task.solution(*both.values())

        return taking

    names = [*inspect.signature(task.solution).parameters]
    found = {
        f"that takes the first entry of `{name}` for all": of_the_first(name)
        for name in names
        if axes.get(name, "").startswith("batch")
    }
    if set(groups) - {"return"}:
        found["that takes the whole batch for one group"] = of_one_group
        found["that compares along batch instead of trial"] = across
    return found


SPOILT: dict[str, Callable[[Tensor], Tensor]] = {
    "with abs() at the end": torch.abs,
    "with a square at the end": torch.square,
    "with a root at the end": torch.sqrt,
    "with exp() at the end": torch.exp,
    "with log() at the end": torch.log,
    "with its last axis the wrong way round": lambda value: value.flip(-1),
    **{
        f"that rounds to {digits} digits": partial(torch.round, decimals=digits)
        for digits in range(4)
    },
}


def spoilt(solution: Callable) -> dict[str, Callable]:
    """The solution, with one step too many behind it."""

    def after(step: Callable[[Tensor], Tensor]) -> Callable:
        return lambda *given: step(solution(*given))

    return {slip: after(step) for slip, step in SPOILT.items()}


def turned(source: str, like: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Each slip that a source has room for: in words, and the source with it."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    text = source.encode()
    for node in (piece for step in function.body for piece in ast.walk(step)):
        if not isinstance(node, ast.expr) or node.end_lineno is None:
            continue
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + (node.end_col_offset or 0)
        for slip, new in instead(node, like):
            yield slip, (text[:begin] + f"({new})".encode() + text[end:]).decode()


def instead(node: ast.expr, like: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """What people write in place of an expression: in words, and as code."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in like.get(node.id, ()):
            yield f"with one `{other}` in place of `{node.id}`", other
    elif isinstance(node, ast.Attribute):
        for other in CONFUSED.get(node.attr, ()):
            slip = f"with `{other}` in place of `{node.attr}`"
            yield slip, f"{ast.unparse(node.value)}.{other}"
    elif isinstance(node, ast.Call):
        yield from other_calls(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield "without a minus sign", ast.unparse(node.operand)
    elif isinstance(node, ast.BinOp):
        yield from other_signs(node.op, node.left, node.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from other_signs(node.ops[0], node.left, node.comparators[0])


def other_signs(
    sign: ast.operator | ast.cmpop, left: ast.expr, right: ast.expr
) -> Iterator[tuple[str, str]]:
    """Two sides with another sign between them, or exchanged."""
    one, two = f"({ast.unparse(left)})", f"({ast.unparse(right)})"
    mine, *others = SIGNS.get(type(sign), ("",))
    for other in others:
        yield f"with `{other}` in place of `{mine}`", f"{one} {other} {two}"
    if mine in ("-", "/"):
        yield f"with the two sides of `{mine}` exchanged", f"{two} {mine} {one}"


def other_calls(node: ast.Call) -> Iterator[tuple[str, str]]:
    """A call along another axis or along none, or forgotten altogether."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FORGOTTEN:
        of_torch = ast.unparse(node.func.value) in ("torch", "F")
        what = node.args[0] if of_torch and node.args else node.func.value
        yield f"without `{node.func.attr}`", ast.unparse(what)
        if node.func.attr == "clamp" and len(node.args) == 2:
            for bound, kept in zip(("max", "min"), reversed(node.args), strict=True):
                code = f"{ast.unparse(what)}.clamp({bound}={ast.unparse(kept)})"
                yield f"with a clamp that has a {bound} alone", code
    for place, keyword in enumerate(node.keywords):
        if keyword.arg == "dim":
            mine = ast.unparse(keyword.value)
            changed = copy.deepcopy(node)
            for other in ("0", "1", "2", "-1", "-2"):
                changed.keywords[place].value = ast.parse(other, mode="eval").body
                if other != mine:
                    slip = f"with dim={other} in place of dim={mine}"
                    yield slip, ast.unparse(changed)
            changed.keywords = [k for k in changed.keywords if "dim" not in str(k.arg)]
            yield f"without dim={mine}", ast.unparse(changed)


# What one call did, and whether two calls did the same


@dataclass(frozen=True)
class Outcome:
    """What one call did: a value or an error, an input changed, gradients."""

    value: Any = None
    error: BaseException | None = None
    changed: str = ""
    gradients: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """What the answer and the solution made of a case."""

    case: Case
    theirs: Outcome
    ours: Outcome


def run(function: Callable, task: Exercise, case: Case) -> Outcome:
    """Call `function` on a fresh copy of the case; nothing it does escapes."""
    leaves = copy.deepcopy(dict(case.args))
    watched = task.gradient.split()
    for name in watched:
        leaves[name].requires_grad_()
    given = dict(leaves)
    for name, leaf in leaves.items():
        if isinstance(leaf, Tensor):
            # Of a distribution only its logits are free: through log_softmax every
            # right form has the same gradient, also one that normalizes again.
            logs = name in task.logs.split()
            given[name] = leaf.log_softmax(dim=-1) if logs else leaf.clone()
    before = {n: x.clone() if isinstance(x, Tensor) else x for n, x in given.items()}
    before |= {n: x for n, x in case.args.items() if not isinstance(x, Tensor)}
    use = task.use or (lambda function, *args: function(*args))
    try:
        with torch.enable_grad(), warnings.catch_warnings(action="ignore"):
            value = use(function, *given.values())
            for name, now in given.items():
                if not unchanged(now, before[name]):
                    return Outcome(value, changed=name)
            tracked = {n: first_weights(leaves[n]) for n in watched}
            return Outcome(value, gradients=gradients(value, tracked))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)


def first_weights(value: Tensor | nn.Module) -> Tensor:
    """A tensor itself; for a model, its first weights stand for all."""
    return value if isinstance(value, Tensor) else next(value.parameters())


def gradients(value: object, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradient of a weighted sum: different weights show a permuted result."""
    if not (leaves and isinstance(value, Tensor) and value.requires_grad):
        return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    weights = torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape)
    total, inputs = (value * weights).sum(), tuple(leaves.values())
    found = torch.autograd.grad(total, inputs, materialize_grads=True)
    return dict(zip(leaves, found, strict=True))


def unchanged(now: Any, before: Any) -> bool:
    """Whether an argument is as it was, NaN for NaN."""
    if not isinstance(before, Tensor):
        return now == before
    return now.shape == before.shape and torch.allclose(
        now.detach().double(), before.detach().double(), 0, 0, equal_nan=True
    )


def as_number(value: object) -> float | None:
    """The number in an int, a float or a tensor without axes; None otherwise."""
    if isinstance(value, Tensor) and value.ndim == 0:
        return float(value.detach())
    return float(value) if isinstance(value, Real) else None


def kind_of(value: Tensor) -> str:
    """Floats of any width are one kind, as integers are; bool is its own."""
    if value.is_floating_point():
        return "float"
    return "bool" if value.dtype == torch.bool else "int"


def agrees(given: object, expected: object, tolerance: float = TOLERANCE) -> bool:
    """Equal in type, shape and kind of number, and in value up to the tolerance."""
    if isinstance(expected, Tensor):
        if not isinstance(given, Tensor) or given.shape != expected.shape:
            return False
        if kind_of(given) != kind_of(expected):
            return False
        one, two = given.detach().double(), expected.detach().double()
        sizes = two[two.isfinite()].abs()
        # Where everything expected is zero, one tenth stands for the largest entry.
        largest = max(sizes.max().item() if sizes.numel() else 0.0, 0.1)
        return torch.allclose(one, two, tolerance, tolerance * largest, equal_nan=True)
    if isinstance(expected, Real) and not isinstance(expected, bool):
        number, wanted = as_number(given), torch.tensor(float(expected))
        return number is not None and agrees(torch.tensor(number), wanted, tolerance)
    if isinstance(expected, dict):
        return isinstance(given, dict) and all(
            name in given and agrees(given[name], value, tolerance)
            for name, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        return (
            isinstance(given, list | tuple)
            and len(given) == len(expected)
            and all(agrees(*both, tolerance) for both in zip(given, expected))  # noqa: B905
        )
    return type(given) is type(expected) and given == expected


def alike(one: Outcome, two: Outcome, tolerance: float, with_gradient: bool) -> bool:
    """Whether two calls did the same: fail alike, or give the same."""
    if one.error is not None or two.error is not None:
        return type(one.error) is type(two.error)
    if one.changed != two.changed or not agrees(one.value, two.value, tolerance):
        return False
    names = two.gradients if with_gradient else ()
    return all(agrees(one.gradients[n], two.gradients[n], tolerance) for n in names)


# What is wrong, and what helps


@dataclass(frozen=True)
class Problem:
    """The first case that goes wrong, in which way, and what helps.

    `kind` is "untouched", "error", "none", "changed", "type", "shape", "dtype",
    "values" or "gradient".
    """

    kind: str
    pair: Pair
    hint: str = ""


def diagnose(task: Exercise, function: Callable) -> Problem | None:
    """Judge an answer on all cases: the first problem, or None if it is right."""
    found = [run(function, task, case) for case in task.cases]
    # torch raises NotImplementedError too, but always with a message.
    errors = [each.error for each in found]
    stub = any(isinstance(e, NotImplementedError) and not e.args for e in errors)
    if stub or (task.draft and same_code(function, task.draft)):
        case = task.cases[0]
        return Problem("untouched", Pair(case, found[0], ours(task, case)))
    return judge(task, found)


def judge(task: Exercise, found: Sequence[Outcome]) -> Problem | None:
    """Judge what an answer has made of each case."""
    both = zip(task.cases, found, strict=True)
    pairs = [Pair(case, theirs, ours(task, case)) for case, theirs in both]
    # Gradients are looked at only once every value is right.
    for with_gradient in (False, True):
        for place, pair in enumerate(pairs):
            if kind := problem_of(pair, task, with_gradient):
                hint = named(task, pairs, with_gradient)
                hint = hint or advise(kind, pairs, place, task)
                return Problem(kind, pair, hint)
    return None


@cache
def ours(task: Exercise, case: Case, edit: str = "") -> Outcome:
    """What the solution, or a slip in it, makes of a case, worked out once."""
    if not edit:
        return run(task.solution, task, case)
    slips = task.slips if edit in task.hints else task.usual_slips
    return run(slips[edit], task, case)


def same_kind(pair: Pair) -> bool:
    """Whether an answer gives what the solution gives: a tensor of floats, say."""
    mine, right = pair.theirs.value, pair.ours.value
    if isinstance(mine, Tensor) and isinstance(right, Tensor):
        return kind_of(mine) == kind_of(right)
    return pair.theirs.error is None and type(mine) is type(right)


JUMPS = {*dis.hasjrel, *dis.hasjabs}


def same_code(function: Callable, draft: Callable) -> bool:
    """Whether a function does, step for step, what the draft in the stub does."""

    def steps(code: CodeType) -> list[tuple]:
        found = []
        for step in dis.get_instructions(code):
            what = step.argval if step.opcode not in JUMPS else None
            # Python 3.11 looks up `torch.sum` in another way if the file imports torch.
            name = step.opname.replace("METHOD", "ATTR")
            found.append((name, steps(what) if isinstance(what, CodeType) else what))
        return found

    codes = [getattr(each, "__code__", None) for each in (function, draft)]
    return None not in codes and steps(codes[0]) == steps(codes[1])  # type: ignore[arg-type]


def problem_of(pair: Pair, task: Exercise, with_gradient: bool) -> str:
    """The kind of what is wrong in a case; empty if nothing is."""
    theirs, ours, value = pair.theirs, pair.ours, pair.theirs.value
    tolerance = pair.case.within or task.tolerance
    if theirs.error is not None:
        return "error"
    if value is None and ours.value is not None:
        return "none"
    if theirs.changed:
        return "changed"
    if task.plain_number and isinstance(value, Tensor):
        return "type"
    if agrees(value, ours.value, tolerance):
        same = not with_gradient or alike(theirs, ours, tolerance, True)
        return "" if same else "gradient"
    if not isinstance(ours.value, Tensor):
        number = as_number(ours.value) is not None and as_number(value) is None
        return "type" if number else "values"
    if not isinstance(value, Tensor):
        return "type"
    if value.shape != ours.value.shape:
        return "shape"
    return "values" if kind_of(value) == kind_of(ours.value) else "dtype"


def named(task: Exercise, pairs: Sequence[Pair], with_gradient: bool) -> str:
    """The hint of the mistake that does what the answer does.

    In every case if there is one, first of the exercise's own, then of the usual ones;
    else in two thirds of those that are wrong, unless a single case is wrong and has
    words of its own.
    """

    def same(edit: str, pair: Pair) -> bool:
        # As strictly as can be: near the right value every mistake would look alike.
        other = ours(task, pair.case, edit)
        return alike(pair.theirs, other, task.tolerance, with_gradient)

    wrong = [
        not alike(p.theirs, p.ours, p.case.within or task.tolerance, with_gradient)
        for p in pairs
    ]
    if True not in wrong:  # only the type is
        return ""
    first, best, most = wrong.index(True), "", 0
    if all(pair.theirs.error is not None for pair in pairs):
        return ""  # that both fail says little
    for edit, hint in task.hints.items():
        if not same(edit, pairs[first]):  # most differ here already
            continue
        explained = [same(edit, pair) for pair in pairs]
        if all(explained):
            return hint
        hits = sum(e for e, bad in zip(explained, wrong, strict=True) if bad)
        enough = 3 * hits >= 2 * sum(wrong) and 3 * sum(explained) >= 2 * len(pairs)
        worked = pairs[first].theirs.error is None and not task.exact
        if worked and (enough or task.choice) and hits > most:
            best, most = hint, hits
    own_words = sum(wrong) == 1 and bool(pairs[first].case.hint)
    values = [pair.theirs.value for pair in pairs]
    if all(isinstance(x, Tensor) and x.dtype == torch.bool for x in values):
        found = torch.cat([x.flatten() for x in values])
        if found.all() or not found.any():
            return best or f"Your result is {bool(found.any())} everywhere."
    if not with_gradient and same_kind(pairs[first]) and not own_words:
        # A case with words of its own may show a second mistake.
        slips = [
            slip
            for slip in task.usual_slips
            if same(slip, pairs[first])
            and all(pair.case.hint or same(slip, pair) for pair in pairs)
        ]
        if slips:  # several may look alike
            once = dict.fromkeys(x.replace("one `", "`").strip() for x in slips)
            return f"This comes out of a right answer {', or '.join([*once][:2])}."
    return "" if own_words else best


ERRORS = {  # pattern of an error's kind or message -> what helps; the first one counts
    "nameerror": "A name is misspelt, or what defines it (a cell, a line) has not run.",
    "graph a second time|modified by an inplace": "Each backward uses up what was "
    "computed for it, and each step changes the weights it came from. Compute the "
    "log-probabilities and the loss anew in each step; what is noted once belongs "
    "under torch.no_grad().",
    "does not require grad|object has no attribute 'backward'": "Nothing that can be "
    "trained leads to this number: detach(), item(), no_grad() or torch.tensor(...) "
    "has cut its gradient.",
    "scalar outputs": "backward() begins at one number, and here is one for each "
    "entry: is a mean missing?",
    "expected tensor as element": "torch.stack takes tensors; torch.tensor makes one "
    "from plain numbers.",
    "ambiguous": "A tensor of several numbers is neither true nor false. Compare entry "
    "by entry with torch.where, & and |, or ask for .all() or .any().",
    "bitwise_and|bitwise_or": "& and | bind more tightly than a comparison: put each "
    "comparison in brackets.",
    "tuple indices|'tuple' object|torch.return_types": "sort, max, min and topk along "
    "an axis return two tensors, values and indices: take .values or .indices.",
    "'nonetype' object": "What should be a value here is None: .sort() and .append() "
    "change a list and return nothing.",
    "(list|string) index out of": "A list or text is empty here, or shorter than the "
    "index wants.",
    "out of (bounds|range)": "An index points past the end of an axis. Which axis does "
    "it count along, and how long is that one?",
    "expected index .* to be|index tensor must have|gather": "gather does not "
    "broadcast: its index needs as many axes as the tensor, each as long as there or "
    "shorter, but for the axis that it picks along. Repeat or expand first.",
    "carries a gradient": "What carries a gradient is the policy that is trained. Are "
    "two arguments exchanged? Else note the others under torch.no_grad().",
    "'(float|int)' object (has no|is not subs|is not iter|does not supp)": "This is a "
    "plain number here, which has no entries and none of a tensor's methods. What the "
    "task calls a number may be one; arithmetic works with both.",
    "keyerror": "The dictionary lacks this key: spell each as the task does.",
    "output dtype|floating point": "A mean wants floats: .float() makes them of bools.",
    "only one element|converted to scalar": "float() and .item() take a single number, "
    "and here is one for each entry: leave the tensor a tensor.",
    r"must be tensor, not|(min|max)\(\) received": "torch.min and its like take two "
    "tensors. A plain number bounds as clamp(max=...) or clamp(min=...).",
    "substring not found": "index and rindex raise an error where nothing is found. "
    "find gives -1 there, and partition an empty text.",
    "simplex": "Categorical takes what you give it for probabilities, unless you say "
    "logits= before it.",
    "size|shape|dimension": "The shapes do not line up. Name each axis; keepdim=True "
    "or [..., None] keeps an axis of size 1, which broadcasts.",
    "not callable|has no attribute": "Something is used as what it is not: a tensor as "
    "a function or a model, say. Are two arguments exchanged, or is a name used twice?",
    "": "Run your function by hand on such an input, and print what it makes.",
}


def cure_for(error: BaseException) -> str:
    """What helps against an error; the package's own says it in its text."""
    where = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = where.startswith(str(files("grpo_course")))
    text = f"{error} {type(error).__mro__}".lower()
    if ours and "positional argument" in text:  # the call itself failed
        return "Keep the stub's signature: the check passes its arguments in order."
    if ours and isinstance(error, ValueError) and "carries a gradient" not in text:
        question = "Does each argument stand in its place, or are two exchanged?"
        return question if "has shape" in text else ""
    found = next(cure for part, cure in ERRORS.items() if re.search(part, text))
    return "" if ours and found == ERRORS[""] else found


def advise(kind: str, pairs: Sequence[Pair], first: int, task: Exercise) -> str:
    """What helps against a slip that any function can have; empty if nothing does."""
    theirs, ours, case = pairs[first].theirs, pairs[first].ours, pairs[first].case
    if theirs.error is not None:
        return cure_for(theirs.error) or written_down(task, pairs)
    if kind == "none":
        if all(pair.theirs.value is None for pair in pairs):
            return "Your function returns None: is the `return` missing?"
        return case.hint or "Here your function returns None: is there a branch " + (
            "without a `return`?"
        )
    if kind == "changed":
        return (
            f"Your function changes its input `{theirs.changed}` in place (as .sort() "
            "and += do). Others still use it: work on a copy, as sorted() does."
        )
    if kind == "gradient":
        return lost_or_leaking(theirs.gradients, ours.gradients)
    if kind == "values":
        found = sign_or_factor(pairs) or sum_or_mean(task, pairs) or case.hint
        found = found or other_entries(theirs.value, ours.value)
        found = found or written_down(task, pairs)
        return found or not_finite(pairs[first]) or nearly(pairs)
    if kind == "shape":
        return wrong_axes(pairs, task)
    if kind == "dtype":
        mine, right = name(theirs.value), name(ours.value)
        return f"The result's dtype must be {right}, not {mine}."
    return wrong_type(theirs.value, ours.value)


def wrong_type(value: object, expected: object) -> str:
    """What to do about a list, a number or an array where something else is wanted."""
    came = f"but is a {type(value).__name__}"
    if isinstance(expected, Tensor):
        if isinstance(value, Real):
            cure = "leave out .item() and its like, which cut the gradient as well"
        elif isinstance(value, list | tuple):
            cure = (
                "torch.stack makes one from tensors, and keeps their gradient; "
                "torch.tensor makes one from plain numbers"
            )
        else:
            cure = "stay with torch throughout, as numpy keeps no gradient"
        return f"The result must be a tensor, {came}: {cure}."
    wanted = "The result must be one plain number"
    if isinstance(value, Tensor) and value.numel() == 1:
        return f"{wanted}, but is a tensor: .item() takes the number out."
    if isinstance(value, list | tuple | Tensor):
        return f"{wanted}, {came}: put its entries together, with sum() for instance."
    return f"{wanted}, {came}."


def written_down(task: Exercise, pairs: Sequence[Pair]) -> str:
    """A number or a size of the first case that stands in the code as it is."""

    def known(case: Case) -> dict[str, float]:
        found = {f"`{n}`": x for n, x in case.args.items() if type(x) in (int, float)}
        lists = {n: len(x) for n, x in case.args.items() if isinstance(x, list)}
        lengths = sizes(task, case) | {f"`{name}`": n for name, n in lists.items()}
        return found | {f"the length of {a}": n for a, n in lengths.items()}

    wrong = [not alike(p.theirs, p.ours, task.tolerance, False) for p in pairs]
    each = [known(pair.case) for pair in pairs]
    reasons = []
    for what, value in each[0].items():
        seen = [found.get(what) for found in each]
        bad = {x for x, no in zip(seen, wrong, strict=True) if no}
        good = {x for x, no in zip(seen, wrong, strict=True) if not no}
        alone = len(good) == 1 or sum(wrong) > 1
        # Where it is 1, something may have broadcast that should not.
        if (
            value != 1
            and value in good
            and bad
            and not good & bad
            and alone
            and None not in bad
        ):
            others = " or ".join(f"{x:g}" for x in sorted(bad))  # type: ignore[type-var]
            reasons.append(f"{what} is {value:g}, and wrong where it is {others}")
    if not reasons:
        return ""
    return (
        f"Your answer is right where {', or '.join(reasons[:2])}. Is that number "
        "written down in your function? Take it from the arguments."
    )


def nearly(pairs: Sequence[Pair]) -> str:
    """A result that is close everywhere, and not close enough."""
    if all(agrees(pair.theirs.value, pair.ours.value, 0.02) for pair in pairs):
        return (
            "Close, but not the same: is something rounded, clamped, or divided by a "
            "little too much?"
        )
    return ""


def name(tensor: Tensor) -> str:
    """A dtype as people write it."""
    return str(tensor.dtype).removeprefix("torch.")


def lost_or_leaking(given: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str:
    """Which gradient is missing, is one too many, or is another."""
    wrong = (n for n, right in expected.items() if not agrees(given[n], right))
    argument = next(wrong)
    if given[argument].isnan().any() and not expected[argument].isnan().any():
        return (
            f"The values are right, but the gradient of `{argument}` is NaN. "
            "torch.where hides a 0/0 from the values, and not from the gradient: "
            "keep it from being computed, with clamp for instance."
        )
    if not given[argument].any():
        return (
            f"The values are right, but no gradient reaches `{argument}`. "
            "detach(), item(), no_grad() and torch.tensor(...) cut it."
        )
    if not expected[argument].any():
        return (
            f"The values are right, but a gradient flows into `{argument}`, where "
            "none may: detach() it."
        )
    return (
        f"The values are right, but the gradient of `{argument}` is not: is only a "
        "part of the way to it detached, or one that should be detached left open?"
    )


def wrong_axes(pairs: Sequence[Pair], task: Exercise) -> str:
    """Tell an axis of size 1 left over, or gone, in every case from other shapes."""

    def shape(value: object) -> tuple[int, ...]:
        return tuple(value.shape) if isinstance(value, Tensor) else ()

    both = [(shape(pair.theirs.value), shape(pair.ours.value)) for pair in pairs]
    for axis in (-1, -2, -3):
        if all(
            mine[axis:][:1] == (1,) and mine[:axis] + mine[axis:][1:] == right
            for mine, right in both
        ):
            return (
                f"The numbers may be right; an axis of size 1 is left: squeeze({axis})."
            )
    for place, gone in enumerate(reversed(task.axes.get("return", "").split())):
        # Counted from the end, for there may be dots in front.
        if gone != "..." and all(
            len(right) > place
            and mine == right[: len(right) - 1 - place] + right[len(right) - place :]
            and right[-1 - place] > 1
            for mine, right in both
        ):
            return f"The axis {gone} is gone, and it has to stay."
    wrong = [(mine, right) for mine, right in both if mine != right]
    if all(mine == tuple(n for n in right if n != 1) for mine, right in wrong):
        return (
            "An axis of size 1 is gone that has to stay. squeeze() without an axis "
            "drops batch, trial or pos as well, where there is one of them."
        )
    for axes, found in other_axes(pairs, task).items():
        if all(mine == shape for (mine, _), shape in zip(both, found, strict=True)):
            wanted = task.axes.get("return")
            asked = f"[{wanted}] are" if wanted else "one number is"
            given = f"has the axes [{axes}]" if axes else "is one number"
            return f"Your result {given}, and {asked} asked for."
    mine, right = wrong[0]
    what = "the right number of axes, not of entries"
    if len(mine) != len(right):
        what = "an axis too few" if len(mine) < len(right) else "an axis too many"
    return f"Your result has the wrong shape: {what}."


def sizes(task: Exercise, case: Case) -> dict[str, int]:
    """How long each axis is in a case, by the names in the docstring."""
    found: dict[str, int] = {}
    for name, value in case.args.items():
        axes = task.axes.get(name, "").split()
        if isinstance(value, Tensor) and len(axes) == value.ndim:
            found |= dict(zip(axes, value.shape, strict=True))
    return found


def other_axes(
    pairs: Sequence[Pair], task: Exercise
) -> dict[str, list[tuple[int, ...]]]:
    """Shapes in each case of what has other axes of the arguments than it should."""
    each = [sizes(task, pair.case) for pair in pairs]
    axes = [axis for axis in each[0] if all(axis in found for found in each)]
    found = {}
    for number in range(min(len(axes), 4) + 1):
        for some in permutations(axes, number):
            found[" ".join(some)] = [tuple(one[a] for a in some) for one in each]
    wanted = task.axes.get("return", "")
    return {} if "..." in wanted else {n: x for n, x in found.items() if n != wanted}


def flat(value: object) -> Tensor:
    """All numbers of a result -> float [number]; of what has none, none."""
    if isinstance(value, Tensor):
        return value.detach().float().flatten()
    number = as_number(value)
    return torch.tensor([] if number is None else [number])


def sum_or_mean(task: Exercise, pairs: Sequence[Pair]) -> str:
    """A sum where a mean should be or the other way round, in all cases alike."""
    each = [(flat(pair.theirs.value), flat(pair.ours.value)) for pair in pairs]
    long = [sizes(task, pair.case) for pair in pairs]
    axes = [axis for axis in long[0] if all(axis in found for found in long)]
    if any(one.shape != two.shape or not one.numel() for one, two in each):
        return ""
    for many in range(1, len(axes) + 1):
        for some in combinations(axes, many):
            counts = [math.prod(found[axis] for axis in some) for found in long]
            if len({*counts}) < 2:  # a constant factor, of which all is said
                continue
            both = [(*pair, n) for pair, n in zip(each, counts, strict=True)]
            over = f"{' '.join(some)} where"
            if all(agrees(one, n * two) for one, two, n in both):
                return f"You sum over {over} a mean is asked for."
            if all(agrees(n * one, two) for one, two, n in both):
                return f"You average over {over} a sum is asked for."
    return ""


def other_entries(value: object, expected: object) -> str:
    """A generator for a list, numbers for texts: what comes is of another kind."""
    if isinstance(expected, list) and not isinstance(value, list | tuple):
        return f"A list is asked for, but this is a {type(value).__name__}."
    if isinstance(expected, list) and isinstance(value, list | tuple):
        came, right = (
            {type(x).__name__ for x in xs if x is not None} for xs in (value, expected)
        )
        if came and right and not came & right:
            return (
                f"Your list holds entries of type {min(came)}, and {min(right)} is "
                "asked for: leave them as they are."
            )
    return ""


def sign_or_factor(pairs: Sequence[Pair]) -> str:
    """A minus sign, or one number added or multiplied, if it explains all cases."""

    each = [(flat(pair.theirs.value), flat(pair.ours.value)) for pair in pairs]
    mine, right = (torch.cat(side) for side in zip(*each, strict=True))
    if mine.shape != right.shape or right.count_nonzero() < 2:
        return ""
    # Of 0 or 1, true or false, a constant explains anything.
    more = (mine - right).mean().item()
    apart = abs(more) > 1e-3 and right.unique().numel() > 2
    if apart and all(agrees(one - more, two) for one, two in each):
        which = "more" if more > 0 else "less"
        return (
            f"Always {abs(more):.6g} {which} than expected: a number is added or "
            "subtracted that should not be, or is left out."
        )
    factor = ((mine @ right) / (right @ right)).item()
    # Of NaN neither holds.
    other = abs(factor) > 1e-12 and abs(factor - 1) > 1e-3
    if not other or not all(agrees(one, factor * two) for one, two in each):
        return ""
    if abs(factor + 1) < 1e-5:
        return "Exactly the negative of the expected: a minus sign is wrong."
    return f"Always {factor:.6g} times the expected: a constant factor is wrong."


def not_finite(pair: Pair) -> str:
    """NaN or infinity where a number is expected."""
    values = (pair.theirs.value, pair.ours.value)
    both = [torch.as_tensor(x) for x in values if isinstance(x, Tensor | float)]
    if len(both) == 2 and both[1].isfinite().all() and not both[0].isfinite().all():
        return "NaN or infinity came out: look for 0/0, log(0) or a huge exp."
    return ""


# What the learner reads


def check(function: Callable, keep: bool = True) -> Callable:
    """Judge your function and print the verdict; never raise.

    The exercise is found by the function's name. Returns your function if it is right
    and the course's own if it is not yet, so that
    `center_by_group = check(center_by_group)` lets the rest of the notebook run.
    With keep=False, for an example, nothing is noted in your progress.
    """
    task = None
    try:
        task = find(function)
        if task is None:
            lines = wrap(unknown(function))
        elif function in (task, task.solution):
            text = "is the course's own here: run the cell that defines yours."
            lines, function = wrap(f"[ ] {task.key} {task.name} {text}"), task.solution
        else:
            problem = diagnose(task, function)
            lines = report(task, function, problem)
            if keep:
                note(task.key, mark(problem))
            function = task.solution if problem else function
    except Exception as error:  # the rest of the notebook must run
        text = f"[!] The check itself broke ({type(error).__name__}: {error}). "
        lines = wrap(text + "Your function may be right: please report this.")
        function = task.solution if task else function
    show_verdict(lines)
    return function


@cache
def index() -> dict[str, str]:
    """The name of each exercise and its key, in the order of the course.

    Read off the text of the lessons, so that a notebook loads its own alone.
    """
    found: dict[str, str] = {}
    for path in files(LESSONS).iterdir():
        if path.name.startswith("nb"):
            text = path.read_text(encoding="utf-8")
            below = r'@exercise\(\s*"([\d.]+)"[^@]*?\ndef (\w+)'
            found |= {name: key for key, name in re.findall(below, text)}
            elsewhere = r'\n(\w+) = exercise\(\s*"([\d.]+)"'  # defined in another file
            found |= dict(re.findall(elsewhere, text))
    return dict(sorted(found.items(), key=lambda x: [int(n) for n in x[1].split(".")]))


def lesson(key: str) -> list[Exercise]:
    """The exercises of the notebook to which a key belongs."""
    module = import_module(f"{LESSONS}.nb{int(key.split('.')[0]):02d}")
    found = [x for x in vars(module).values() if isinstance(x, Exercise)]
    return sorted(found, key=lambda x: int(x.key.split(".")[1]))


def find(function: object) -> Exercise | None:
    """The exercise that a function answers, by its name."""
    name = getattr(function, "__name__", getattr(function, "name", None))
    if not callable(function) and not isinstance(function, Exercise):
        return None
    key = index().get(str(name))
    return next((x for x in lesson(key) if x.name == name), None) if key else None


def unknown(function: object) -> str:
    """What to say of a function that answers no exercise."""
    if not callable(function):
        return (
            "[!] check wants the function itself, without calling it: "
            "check(name), not check(name(...))."
        )
    name = getattr(function, "__name__", type(function).__name__)
    near = difflib.get_close_matches(name, index(), n=3, cutoff=0.4)
    question = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        f"[!] No exercise is called {name}.{question} "
        "Keep the name that the notebook gave the function."
    )


# Key of each exercise checked in this session -> its latest state.
_session: dict[str, str] = {}


def note(key: str, state: str) -> None:
    """Remember a state. A stub that was not touched leaves what was there before."""
    if state == " ":
        state = record.kept("exercises").get(key, state)
    else:
        record.keep("exercises", key, state)
    _session[key] = state


def progress() -> None:
    """Print the exercises of this notebook as a small table.

    Those are the notebook's from which one was checked in this session; before the
    first, all that were kept from the sessions before.
    """
    states = record.kept("exercises") | _session
    chapters = {key.split(".")[0] for key in _session or states}
    rows = [(k, n) for n, k in index().items() if k.split(".")[0] in chapters]
    if not rows:
        print("No exercise has been checked yet.")
        return
    margin = max(5, *(len(key) + 1 for key, _ in rows))
    width = max(len(name) for _, name in rows)
    for key, name in rows:
        state = states.get(key, " ")
        print(f"{key:<{margin}}{name:<{width}}  [{state}] {STATES[state]}")
    right = sum(states.get(key) == "v" for key, _ in rows)
    print(f"{right} of {len(rows)} right.")


STUB = "Your code replaces `raise NotImplementedError`; the course's own stands in."
DRAFT = "What stands there is a draft with mistakes in it: mend it."


def mark(problem: Problem | None) -> str:
    """The state of an exercise: "v" right, " " untouched, "x" wrong."""
    if problem is None:
        return "v"
    return " " if problem.kind == "untouched" else "x"


def report(task: Exercise, function: Callable, problem: Problem | None) -> list[str]:
    """The verdict as lines of at most WIDTH characters."""
    title = f"[{mark(problem)}] {task.key} {task.name}"
    if problem is None:
        return wrap(f"{title} is right. {task.insight}")
    if problem.kind == "untouched":
        return wrap(f"{title}: not attempted yet. {DRAFT if task.draft else STUB}")
    lines = wrap(f"{title} is not right yet: {problem.pair.case.description}")
    lines += wrap(problem.hint, "    ")
    return lines + results(task, function, problem) + given(task, problem)


def given(task: Exercise, problem: Problem) -> list[str]:
    """What the function was given: small things whole, of the others the sizes.

    Where the values are right, nothing: a gradient is not worked out by hand.
    """
    if problem.kind == "gradient":
        return []
    room = FEW if problem.kind in ("values", "error", "none", "type") else 0
    whole: list[str] = []
    short = []
    for name, value in problem.pair.case.args.items():
        label = f"{name}{brackets(task.axes.get(name))}"
        lines = row(f"given {label}", in_short(value))
        is_short = len(lines) == 1 and len(in_short(value)) < 20
        if is_short and not isinstance(value, Tensor):
            short.append(f"{name}: {in_short(value)}")
        elif len(lines) <= room - len(whole) or not isinstance(value, Tensor):
            whole += lines
        else:
            short.append(f"{label}: shape {list(value.shape)}")
    return whole + wrap(f"given {', '.join(short)}" if short else "", "    ", "      ")


def results(task: Exercise, function: Callable, problem: Problem) -> list[str]:
    """What came out, and what was expected."""
    theirs, ours = problem.pair.theirs, problem.pair.ours.value
    if theirs.error is not None:
        code = getattr(function, "__code__", None)
        frames = traceback.extract_tb(theirs.error.__traceback__)
        mine = [f.line for f in frames if code and f.filename == code.co_filename]
        text = str(theirs.error).strip().split("\n\n")[0]  # torch adds its own stack
        error = wrap(f"{type(theirs.error).__name__}: {text}", "    ", "      ")
        return (row("your line", mine[-1]) if mine and mine[-1] else []) + error
    value, axes = theirs.value, task.axes.get("return", "")
    if problem.kind in ("none", "changed", "gradient"):
        return []
    if problem.kind in ("shape", "dtype"):
        right = row(f"expected{brackets(axes)}", form(ours))
        return row("yours", form(value)) + right
    if task.choice:
        return row("yours", in_short(value))
    both = isinstance(value, Tensor) and isinstance(ours, Tensor)
    if both and problem.kind == "values" and in_short(ours) == form(ours):
        # NaN first: it is the one to look at.
        gap = (value.detach().double() - ours.detach().double()).abs()
        place = torch.unravel_index(gap.nan_to_num(float("inf")).argmax(), ours.shape)
        named = zip(axes.split(), map(int, place), strict=False)
        where = ", ".join(f"{axis} {number}" for axis, number in named)
        one, two = compact(value[place]), compact(ours[place])
        return row(f"at {where}", f"yours {one}, expected {two}")
    if isinstance(value, dict) and isinstance(ours, dict):  # what differs is enough
        wrong = [x for x in ours if not agrees(value.get(x), ours[x], task.tolerance)]
        value, ours = ({x: each.get(x) for x in wrong} for each in (value, ours))
    shown = [in_short(value), in_short(ours)]
    if shown[0] == shown[1]:  # what four digits hide
        shown = [
            repr(x.tolist() if isinstance(x, Tensor) else x) for x in (value, ours)
        ]
        if isinstance(value, Tensor) and value.ndim == 0:
            shown[0] = f"tensor({shown[0]})"
    return row("yours", shown[0]) + row("expected", shown[1])


def row(label: str, text: str) -> list[str]:
    """`label: text`, the texts of yours and expected one below the other."""
    label = "yours:   " if label == "yours" else f"{label}:"
    return wrap(f"{label} {text}", "    ", "      ")


def brackets(axes: str | None) -> str:
    """The names of axes behind the name of a tensor."""
    return f" [{axes}]" if axes else ""


def in_short(value: object) -> str:
    """A value with its numbers if there is room, else its form."""
    text = compact(value)
    return form(value) if isinstance(value, Tensor) and len(text) > LONGEST else text


def form(value: Tensor) -> str:
    """Shape and dtype."""
    return f"shape {list(value.shape)}, {name(value)}"


def compact(value: object) -> str:
    """All numbers, to four digits; of a function its name."""
    if isinstance(value, Tensor):
        return compact(value.detach().tolist())
    if isinstance(value, list):
        return "[" + ", ".join(map(compact, value)) + "]"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {compact(each)}" for name, each in value.items())
    if isinstance(value, float):
        return f"{value + 0.0:.4g}"
    return getattr(value, "__name__", None) or repr(value)


def wrap(text: str, first: str = "", other: str = "    ") -> list[str]:
    """Lines of at most WIDTH characters; a short list stays in one piece."""
    kept = "\N{NO-BREAK SPACE}"
    text = re.sub(r"\[[^][]{1,30}\]", lambda found: found[0].replace(" ", kept), text)
    lines = [
        line
        for part in text.splitlines()
        for line in textwrap.wrap(
            part.strip(),
            WIDTH,
            initial_indent=first,
            subsequent_indent=other,
            break_on_hyphens=False,
        )
    ]
    return [line.replace(kept, " ") for line in lines]


# JupyterLab's own colours follow its theme; others see the second.
WRONG, RIGHT = "var(--jp-error-color1, #b71c1c)", "var(--jp-success-color0, #1b5e20)"
COLOURS = {
    "[v]": RIGHT,
    "[x]": WRONG,
    "[!]": WRONG,
    "    yours": WRONG,
    "    your line": WRONG,
    "    expected": RIGHT,
}
STYLE = "white-space: pre-wrap; margin: 0; padding: 0"


def show_verdict(lines: Sequence[str]) -> None:
    """Print the lines; in colour where a learner looks on."""
    if not record.learner_is_here():
        print("\n".join(lines))
        return
    from IPython.display import display

    rows = []
    for line in lines:
        colour = next((c for x, c in COLOURS.items() if line.startswith(x)), "")
        text = escape(line)
        rows.append(f'<span style="color: {colour}">{text}</span>' if colour else text)
    html = f'<pre style="{STYLE}">{"<br>".join(rows)}</pre>'
    display({"text/html": html, "text/plain": "\n".join(lines)}, raw=True)
