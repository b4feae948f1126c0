"""What is wrong with an answer, and which misconception explains it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from grpo_course.classroom.check.advice import (
    advise_error,
    advise_form,
    advise_gradient,
    advise_values,
)
from grpo_course.classroom.check.exercise import (
    TOLERANCE,
    Case,
    Exercise,
    Outcome,
    agrees,
    as_number,
    run,
    same_kind,
)


@dataclass(frozen=True)
class Finding:
    """A verdict: state " " untouched, "x" wrong, "v" right. The rest is for "x"."""

    state: str
    problem: str = ""
    case: Case | None = None
    theirs: Outcome | None = None
    ours: Outcome | None = None
    hint: str = ""


def diagnose(exercise: Exercise, function: Callable) -> Finding:
    """Judge an answer on all cases; the first case that fails is reported."""
    theirs = [run(function, exercise, case) for case in exercise.cases]
    if any(_is_stub(outcome.error) for outcome in theirs):
        return Finding(" ")
    ours = [run(exercise.solution, exercise, case) for case in exercise.cases]
    # Gradients are looked at only once every value is right.
    for find in (_value_problem, _gradient_problem):
        for first, (their, our) in enumerate(zip(theirs, ours, strict=True)):
            if problem := find(their, our, exercise.tolerance):
                hint = _hint(exercise, function, problem, first, theirs, ours)
                case = exercise.cases[first]
                return Finding("x", problem, case, their, our, hint)
    return Finding("v")


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
    if not our.gradients:
        return ""
    zeros = {name: torch.zeros_like(grad) for name, grad in our.gradients.items()}
    gradients = their.gradients or zeros
    return "" if _same_gradients(gradients, our.gradients, tolerance) else "gradient"


def _same_gradients(given: dict, expected: dict, tolerance: float = TOLERANCE) -> bool:
    return given.keys() == expected.keys() and all(
        agrees(given[name], expected[name], tolerance) for name in expected
    )


def _hint(exercise, function, problem, first, theirs, ours) -> str:
    """The misconception by name if the catalogue has it, else general advice."""
    if problem == "none" and all(their.value is None for their in theirs):
        return "Your function returns None: is the `return` missing?"
    if problem == "changed":
        name = theirs[first].changed
        return (
            f"Your function changes its input `{name}` in place (as .sort() and += "
            "do). Others still use it: work on a copy, as sorted() does."
        )
    known = _known_mistake(exercise, theirs, ours, problem == "gradient")
    if known:
        return known
    their, our = theirs[first], ours[first]
    if problem == "none":
        return exercise.cases[first].hint or (
            "Here your function returns None, and elsewhere a value: does each branch "
            "end with a `return`?"
        )
    if problem == "error":
        return advise_error(their.error)
    if problem == "gradient":
        return advise_gradient(their, our)
    if problem != "values":
        return advise_form(problem, their.value, our.value)
    return advise_values(exercise.cases[first], first, theirs, ours)


def _known_mistake(exercise, theirs, ours, with_gradient) -> str:
    """A mistake that explains every case; else the one that explains most wrong ones.

    One of several is not enough: a wrong name for a mistake misleads more than none.
    """
    wrong = [
        index
        for index, (their, our) in enumerate(zip(theirs, ours, strict=True))
        if not _same_outcome(their, our, with_gradient, exercise.tolerance)
    ]
    partial, most = "", 0
    for mistake in exercise.mistakes:
        runs = [run(mistake.answer, exercise, case) for case in exercise.cases]
        pairs = list(zip(theirs, runs, strict=True))
        same = [_same_outcome(their, other, with_gradient) for their, other in pairs]
        if all(same) and any(other.error is None for other in runs):
            return mistake.hint
        explained = sum(same[index] for index in wrong)
        # One of several numbers may agree by chance; a picked name does not.
        needed = 1 if exercise.choice else min(2, len(wrong))
        first = wrong[0]
        names_it = same[first] and theirs[first].error is None
        if names_it and explained >= needed and explained > most:
            partial, most = mistake.hint, explained
    # A single wrong case that has a hint of its own needs no other name.
    return "" if len(wrong) == 1 and exercise.cases[wrong[0]].hint else partial


def _same_outcome(
    their: Outcome, other: Outcome, with_gradient: bool, tolerance: float = TOLERANCE
) -> bool:
    if their.error is not None or other.error is not None:
        return type(their.error) is type(other.error)
    if not agrees(their.value, other.value, tolerance):
        return False
    return not with_gradient or _same_gradients(their.gradients, other.gradients)
