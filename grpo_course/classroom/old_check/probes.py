"""What experiments with a wrong answer show, where no mutant behaves like it."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from grpo_course.classroom.old_check.exercise import Case, Exercise
from grpo_course.classroom.old_check.outcome import Pair, agrees, run


def probe(exercise: Exercise, function: Callable, pairs: list[Pair]) -> str:
    """Words for the first thing that an experiment shows; empty if none does."""
    return (
        _unused_argument(exercise, function)
        or _unused_row(exercise, function)
        or _padding(exercise, function)
        or _mixed_rows(exercise, function)
        or _place(exercise, pairs)
        or _sign(pairs)
    )


def _moves(exercise: Exercise, function: Callable, case: Case, other: Case) -> bool:
    """Whether another input changes the value."""
    values = [run(function, exercise, each).value for each in (case, other)]
    return not agrees(values[1], values[0])


def _unused_argument(exercise: Exercise, function: Callable) -> str:
    """An argument is changed: the right value moves with it, and theirs does not."""
    for name in exercise.cases[0].args:
        changed = [
            (case, replace(case, args={**case.args, name: other}))
            for case in exercise.cases
            if (other := _other(case.args[name])) is not None
        ]
        needed = [
            pair for pair in changed if _moves(exercise, exercise.solution, *pair)
        ]
        if needed and not any(_moves(exercise, function, *pair) for pair in needed):
            # A yes or no may stand still by chance.
            if _is_yes_or_no(exercise):
                return ""
            return f"Your result does not depend on `{name}`, and it has to."
    return ""


def _is_yes_or_no(exercise: Exercise) -> bool:
    value = run(exercise.solution, exercise, exercise.cases[0]).value
    return isinstance(value, Tensor) and value.dtype == torch.bool


def _unused_row(exercise: Exercise, function: Callable) -> str:
    """The last row of all tensors is changed: theirs does not see it."""
    changed = [
        (case, replace(case, args=_with_another_last_row(case.args)))
        for case in exercise.cases
    ]
    needed = [pair for pair in changed if _moves(exercise, exercise.solution, *pair)]
    moved = any(_moves(exercise, function, *pair) for pair in needed)
    if needed and not moved and not _is_yes_or_no(exercise):
        return "Your result does not depend on the last row, and it has to."
    return ""


def _with_another_last_row(args: Mapping[str, Any]) -> dict[str, Any]:
    """Only where there are several rows: of one alone the argument says enough."""
    other = {}
    for name, value in args.items():
        rows = isinstance(value, Tensor) and value.ndim and len(value) > 1
        new = _other(value) if rows else None
        other[name] = value if new is None else torch.cat([value[:-1], new[-1:]])
    return other


def _other(value: Any) -> Any:
    """Another value of the same kind; None where there is no obvious one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if isinstance(value, int) else value * 0.5 + 0.05
    if isinstance(value, Tensor) and value.is_floating_point():
        return (
            value * 0.7 - 0.1 * torch.arange(value.numel()).reshape(value.shape) - 0.2
        )
    return None


def _padding(exercise: Exercise, function: Callable) -> str:
    """What stands outside the mask is changed: nothing may happen."""
    for case in exercise.cases:
        mask, hidden = case.args.get("mask"), copy.deepcopy(dict(case.args))
        for name, value in case.args.items():
            if isinstance(mask, Tensor) and name != "mask" and _like(value, mask):
                hidden[name] = torch.where(mask, value, value + 3)
        if _moves(exercise, function, case, replace(case, args=hidden)):
            return "Padding takes part: your result changes with what is masked."
    return ""


def _like(value: Any, mask: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == mask.shape


def _mixed_rows(exercise: Exercise, function: Callable) -> str:
    """The first row alone has to give what it gives beside others."""
    axes = exercise.axes.get("return", "").split()
    for case in exercise.cases if axes else ():
        alone = {
            name: value[:1] if _has_rows(exercise, name, axes[0]) else value
            for name, value in case.args.items()
        }
        one, both = replace(case, args=alone), case
        if _first_row_moves(exercise, exercise.solution, one, both):
            return ""
        if _first_row_moves(exercise, function, one, both):
            return (
                f"The first row of your result changes when there are other rows: it "
                f"mixes what stands along {axes[0]}. Each row is a matter of its own."
            )
    return ""


def _has_rows(exercise: Exercise, name: str, axis: str) -> bool:
    return exercise.axes.get(name, "").split()[:1] == [axis]


def _first_row_moves(
    exercise: Exercise, function: Callable, one: Case, both: Case
) -> bool:
    alone, beside = (run(function, exercise, case).value for case in (one, both))
    if not (isinstance(alone, Tensor) and isinstance(beside, Tensor)):
        return False
    return beside.ndim > 0 and not agrees(alone, beside[:1], 1e-3)


def _wrong_places(pairs: list[Pair]) -> Iterator[tuple[Tensor, Tensor]]:
    """(which entries are wrong, the expected entries) of each case."""
    for pair in pairs:
        theirs, ours = pair.theirs.value, pair.ours.value
        both = isinstance(theirs, Tensor) and isinstance(ours, Tensor)
        if not both or theirs.shape != ours.shape or ours.ndim == 0:
            return
        close = torch.isclose(
            theirs.double(), ours.double(), 1e-4, 1e-5, equal_nan=True
        )
        yield ~close, ours


def _place(exercise: Exercise, pairs: list[Pair]) -> str:
    """Only the first or the last place along an axis is wrong, in all cases."""
    found = list(_wrong_places(pairs))
    if len(found) < len(pairs):
        return ""
    axes = exercise.axes.get("return", "").split()
    for number, axis in enumerate(axes[1:], start=1):
        for place, index in (("first", 0), ("last", -1)):
            if all(_only_at(wrong, number, index) for wrong, _ in found):
                return (
                    f"Only the {place} place along {axis} is wrong. What differs there?"
                )
    return ""


def _only_at(wrong: Tensor, axis: int, index: int) -> bool:
    at = wrong.select(axis, index).sum()
    return bool(wrong.sum() == at) and (wrong.shape[axis] > 1 or not wrong.any())


def _sign(pairs: list[Pair]) -> str:
    """Entries of one sign are right, and those of the other are wrong."""
    found = list(_wrong_places(pairs))
    if len(found) < len(pairs):
        return ""
    wrong = torch.cat([each.flatten() for each, _ in found])
    ours = torch.cat([each.detach().flatten() for _, each in found])
    for name, signed in (("negative", ours < 0), ("positive", ours > 0)):
        several = min(signed.sum(), (~signed & (ours != 0)).sum()) > 2
        if several and wrong[signed].all() and not wrong[~signed].any():
            return (
                f"Right where the expected is not {name}, and wrong where it is: what "
                "happens to the sign?"
            )
    return ""
