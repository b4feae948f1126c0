"""What one call of an answer did, and whether two calls did the same."""

import copy
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from grpo_course.classroom.old_check.exercise import TOLERANCE, Case, Exercise


@dataclass(frozen=True)
class Outcome:
    """What one call did: a value or an error, an input changed, gradients.

    `gradients` is empty where none are looked at; one that reaches nothing is zero.
    """

    value: Any = None
    error: BaseException | None = None
    changed: str = ""
    gradients: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """What the learner's answer and the course's own made of a case."""

    case: Case
    theirs: Outcome
    ours: Outcome


def run(function: Callable, exercise: Exercise, case: Case) -> Outcome:
    """Call `function` on a fresh copy of the case; nothing it does escapes."""
    leaves = copy.deepcopy(dict(case.args))
    for name in exercise.gradient_to:
        leaves[name].requires_grad_()
    given = {name: _handed_out(name, leaves[name], exercise) for name in leaves}
    copies = {n: v.clone() for n, v in given.items() if isinstance(v, Tensor)}
    before = {**case.args, **copies}
    try:
        # A mutant may do what torch warns of; a verdict says what matters.
        with torch.enable_grad(), warnings.catch_warnings(action="ignore"):
            value = (exercise.use or _called)(function, *given.values())
            changed = [n for n in given if not _unchanged(given[n], before[n])]
            if changed:
                return Outcome(value, changed=changed[0])
            tracked = {name: _leaf(leaves[name]) for name in exercise.gradient_to}
            return Outcome(value, gradients=_gradients(value, tracked))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)


def _called(function: Callable, *args: Any) -> Any:
    return function(*args)


def _handed_out(name: str, leaf: Any, exercise: Exercise) -> Any:
    """A copy of a leaf: torch forbids changing a leaf in place.

    Of a distribution only its logits are free: through log_softmax every right form
    has the same gradient, also one that normalizes again.
    """
    if name in exercise.distributions:
        return leaf.log_softmax(dim=-1)
    return leaf.clone() if isinstance(leaf, Tensor) else leaf


def _leaf(value: Tensor | nn.Module) -> Tensor:
    """A tensor itself; for a model, its first weights stand for all."""
    return value if isinstance(value, Tensor) else next(value.parameters())


def _gradients(value: object, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradient of a weighted sum: different weights show a permuted result."""
    if not (leaves and isinstance(value, Tensor) and value.requires_grad):
        return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    weights = torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape)
    total, inputs = (value * weights).sum(), tuple(leaves.values())
    found = torch.autograd.grad(total, inputs, materialize_grads=True)
    return dict(zip(leaves, found, strict=True))


def _unchanged(now: Any, before: Any) -> bool:
    if isinstance(before, Tensor):
        return now.shape == before.shape and torch.allclose(
            now.detach().double(), before.double(), rtol=0, atol=0, equal_nan=True
        )
    return now == before


def tolerance_of(exercise: Exercise, case: Case) -> float:
    """That of the case if it has one of its own, else that of the exercise."""
    return exercise.tolerance if case.tolerance is None else case.tolerance


def same_kind(given: Tensor, expected: Tensor) -> bool:
    """Both float (of any width), both integer, or both bool."""
    kinds = [(t.is_floating_point(), t.dtype == torch.bool) for t in (given, expected)]
    return kinds[0] == kinds[1]


def as_number(value: object) -> float | None:
    """The number in an int, a float or a tensor without axes; None otherwise."""
    if isinstance(value, Tensor) and value.ndim == 0:
        return float(value.detach())
    return float(value) if isinstance(value, Real) else None


def agrees(given: object, expected: object, tolerance: float = TOLERANCE) -> bool:
    """Equal in type, shape and kind of number, and in value up to the tolerance."""
    if isinstance(expected, Tensor):
        return (
            isinstance(given, Tensor)
            and given.shape == expected.shape
            and same_kind(given, expected)
            and _close(given, expected, tolerance)
        )
    if isinstance(expected, Real) and not isinstance(expected, bool):
        number, wanted = as_number(given), torch.tensor(float(expected))
        return number is not None and _close(torch.tensor(number), wanted, tolerance)
    if isinstance(expected, list | tuple):
        return (
            isinstance(given, list | tuple)
            and len(given) == len(expected)
            and all(
                agrees(a, b, tolerance) for a, b in zip(given, expected, strict=True)
            )
        )
    return type(given) is type(expected) and given == expected


def _close(given: Tensor, expected: Tensor, tolerance: float) -> bool:
    given, expected = given.detach().double(), expected.detach().double()
    sizes = expected[expected.isfinite()].abs()
    # Where everything expected is zero, one tenth stands in for the largest entry.
    largest = max(sizes.max().item() if sizes.numel() else 0.0, 0.1)
    return torch.allclose(
        given, expected, rtol=tolerance, atol=tolerance * largest, equal_nan=True
    )


def same_gradients(
    given: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    tolerance: float = TOLERANCE,
) -> bool:
    """Whether the same arguments have the same gradients."""
    return given.keys() == expected.keys() and all(
        agrees(given[name], expected[name], tolerance) for name in expected
    )
