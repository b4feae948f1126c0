"""What is wrong with an answer, and which misconception explains it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import CodeType

from torch import Tensor

from grpo_course.classroom.old_check.advice import advise
from grpo_course.classroom.old_check.exercise import Case, Exercise
from grpo_course.classroom.old_check.misconception import (
    name_mistake,
    name_two_mistakes,
)
from grpo_course.classroom.old_check.outcome import (
    Outcome,
    Pair,
    agrees,
    as_number,
    run,
    same_gradients,
    same_kind,
    tolerance_of,
)
from grpo_course.classroom.old_check.probes import probe


@dataclass(frozen=True)
class Problem:
    """The first case that goes wrong, in which way, and what helps.

    `kind` is "untouched", "error", "none", "changed", "type", "shape", "dtype",
    "values" or "gradient".
    """

    kind: str
    pair: Pair
    hint: str


def diagnose(exercise: Exercise, function: Callable) -> Problem | None:
    """Judge an answer on all cases: the first problem, or None if it is right."""
    kind, first, pairs = judged(exercise, function)
    if not kind:
        return None
    if kind == "untouched":
        return Problem(kind, pairs[0], hint="")
    return Problem(kind, pairs[first], _hint(exercise, function, kind, pairs, first))


def judged(exercise: Exercise, function: Callable) -> tuple[str, int, list[Pair]]:
    """(what kind of problem, or "", and where; the outcomes of all cases)."""
    pairs = [
        Pair(case, run(function, exercise, case), ours(exercise, case))
        for case in exercise.cases
    ]
    untouched = any(_is_stub(pair.theirs.error) for pair in pairs)
    if untouched or (exercise.draft and same_code(function, exercise.draft)):
        return "untouched", 0, pairs
    # Gradients are looked at only once every value is right.
    for find in (_value_problem, _gradient_problem):
        for first, pair in enumerate(pairs):
            if kind := find(pair, exercise):
                return kind, first, pairs
    return "", 0, pairs


@cache
def ours(exercise: Exercise, case: Case) -> Outcome:
    """What the course's own answer makes of a case, worked out once."""
    return run(exercise.solution, exercise, case)


def _is_stub(error: BaseException | None) -> bool:
    # torch raises NotImplementedError too, but always with a message.
    return isinstance(error, NotImplementedError) and not error.args


def same_code(function: Callable, draft: Callable) -> bool:
    """Whether a function does, step for step, what the draft in the stub does."""
    one, two = (getattr(each, "__code__", None) for each in (function, draft))
    if one is None or two is None:
        return False
    return _steps(one) == _steps(two)


def _steps(code: CodeType) -> tuple:
    """What is executed, without the lines and the file that it stands in."""
    parts = (_steps(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.co_code, code.co_names, *parts


def _value_problem(pair: Pair, exercise: Exercise) -> str:
    their, our = pair.theirs, pair.ours
    if their.error is not None:
        return "error"
    if their.value is None and our.value is not None:
        return "none"
    if their.changed:
        return "changed"
    if exercise.plain_number and isinstance(their.value, Tensor):
        return "type"
    if agrees(their.value, our.value, tolerance_of(exercise, pair.case)):
        return ""
    if not isinstance(our.value, Tensor):
        is_number = as_number(our.value) is not None
        return "type" if is_number and as_number(their.value) is None else "values"
    if not isinstance(their.value, Tensor):
        return "type"
    if their.value.shape != our.value.shape:
        return "shape"
    return "values" if same_kind(their.value, our.value) else "dtype"


def _gradient_problem(pair: Pair, exercise: Exercise) -> str:
    tolerance = tolerance_of(exercise, pair.case)
    same = same_gradients(pair.theirs.gradients, pair.ours.gradients, tolerance)
    return "" if same else "gradient"


def _hint(
    exercise: Exercise, function: Callable, kind: str, pairs: list[Pair], first: int
) -> str:
    """The misconception by name if one is known, else general advice."""
    # An input that is changed, or no value anywhere, says enough by itself.
    if kind == "changed" or all(pair.theirs.value is None for pair in pairs):
        return advise(kind, pairs, first)
    with_gradient = kind == "gradient"
    return (
        name_mistake(exercise, pairs, with_gradient)
        or advise(kind, pairs, first)
        or (kind != "shape" and name_two_mistakes(exercise, pairs, with_gradient))
        or (kind == "values" and probe(exercise, function, pairs))
        or ("Simpler input came out right: what is new here?" if first else "")
    )
