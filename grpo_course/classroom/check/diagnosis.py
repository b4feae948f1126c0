"""What is wrong with an answer, and which misconception explains it."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from grpo_course.classroom.check.advice import advise
from grpo_course.classroom.check.exercise import Exercise
from grpo_course.classroom.check.misconception import name_mistake
from grpo_course.classroom.check.outcome import (
    Outcome,
    Pair,
    agrees,
    as_number,
    run,
    same_gradients,
    same_kind,
)


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
    pairs = [
        Pair(
            case, run(function, exercise, case), run(exercise.solution, exercise, case)
        )
        for case in exercise.cases
    ]
    if any(_is_stub(pair.theirs.error) for pair in pairs):
        return Problem("untouched", pairs[0], hint="")
    # Gradients are looked at only once every value is right.
    for find in (_value_problem, _gradient_problem):
        for first, pair in enumerate(pairs):
            if kind := find(pair.theirs, pair.ours, exercise.tolerance):
                return Problem(kind, pair, _hint(exercise, kind, pairs, first))
    return None


def _is_stub(error: BaseException | None) -> bool:
    # torch raises NotImplementedError too, but always with a message.
    return isinstance(error, NotImplementedError) and not error.args


def _value_problem(their: Outcome, our: Outcome, tolerance: float) -> str:
    if their.error is not None:
        return "error"
    if their.value is None and our.value is not None:
        return "none"
    if their.changed:
        return "changed"
    if agrees(their.value, our.value, tolerance):
        return ""
    if not isinstance(our.value, Tensor):
        is_number = as_number(our.value) is not None
        return "type" if is_number and as_number(their.value) is None else "values"
    if not isinstance(their.value, Tensor):
        return "type"
    if their.value.shape != our.value.shape:
        return "shape"
    return "values" if same_kind(their.value, our.value) else "dtype"


def _gradient_problem(their: Outcome, our: Outcome, tolerance: float) -> str:
    same = same_gradients(their.gradients, our.gradients, tolerance)
    return "" if same else "gradient"


def _hint(exercise: Exercise, kind: str, pairs: list[Pair], first: int) -> str:
    """The misconception by name if the catalogue has it, else general advice."""
    known = ""
    # An input that is changed, or no value anywhere, says enough by itself.
    if kind != "changed" and any(pair.theirs.value is not None for pair in pairs):
        known = name_mistake(exercise, pairs, kind == "gradient")
    return known or advise(kind, pairs, first)
