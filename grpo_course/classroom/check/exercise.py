"""An exercise as data: its cases, the course's answer, the known misconceptions."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real

import torch
from torch import Tensor, nn

TOLERANCE = 1e-5  # relative to the largest entry: room for float32 rounding


@dataclass(frozen=True)
class Mistake:
    """A misconception: what somebody who has it writes, and the words that help."""

    answer: Callable
    hint: str


@dataclass(frozen=True)
class Case:
    """One call of the function. `args` are in the order of the stub's parameters.

    `hint` is for a case whose failure alone names the misconception (ties, say).
    """

    description: str
    args: Mapping[str, object]
    hint: str = ""


@dataclass(frozen=True)
class Exercise:
    """A function to write, and everything needed to judge an answer.

    `axes` names the axes of each argument and of the result ("return").
    `gradient_to` lists the arguments (tensors, or a model) whose gradient is compared
    as well; where the course's own gradient is zero, the learner's must be zero too.
    A wider `tolerance` lets through what the task leaves open (a small epsilon, say).
    A `choice` picks from a list: a wrong pick gets its own hint, not the right name.
    """

    key: str
    name: str
    solution: Callable
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...]
    insight: str
    axes: Mapping[str, str] = field(default_factory=dict)
    gradient_to: tuple[str, ...] = ()
    tolerance: float = TOLERANCE
    choice: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one call did: a value or an error, an input changed, gradients.

    `gradients` is empty if no gradient reaches the result at all.
    """

    value: object = None
    error: BaseException | None = None
    changed: str = ""
    gradients: Mapping[str, Tensor] = field(default_factory=dict)


def run(function: Callable, exercise: Exercise, case: Case) -> Outcome:
    """Call `function` on a fresh copy of the case; nothing it does escapes."""
    leaves = copy.deepcopy(dict(case.args))
    for name in exercise.gradient_to:
        leaves[name].requires_grad_()
    # A copy of each leaf is handed out: torch forbids changing a leaf in place,
    # and that mistake shall be reported as such.
    given = {n: v.clone() if isinstance(v, Tensor) else v for n, v in leaves.items()}
    try:
        with torch.enable_grad():
            value = function(*given.values())
            changed = [n for n in given if not _unchanged(given[n], case.args[n])]
            if changed:
                return Outcome(value, changed=changed[0])
            tracked = {name: _leaf(leaves[name]) for name in exercise.gradient_to}
            return Outcome(value, gradients=_gradients(value, tracked))
    except (Exception, SystemExit) as error:
        return Outcome(error=error)


def _leaf(value: Tensor | nn.Module) -> Tensor:
    """A tensor itself; for a model, its first weights stand for all."""
    return value if isinstance(value, Tensor) else next(value.parameters())


def _gradients(value: object, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    """The gradient of a weighted sum: different weights show a permuted result."""
    if not (leaves and isinstance(value, Tensor) and value.requires_grad):
        return {}
    weights = torch.linspace(0.5, 1.5, value.numel()).reshape(value.shape)
    grads = torch.autograd.grad(
        (value * weights).sum(), tuple(leaves.values()), allow_unused=True
    )
    return {
        name: torch.zeros_like(leaf) if grad is None else grad
        for (name, leaf), grad in zip(leaves.items(), grads, strict=True)
    }


def _unchanged(now: object, before: object) -> bool:
    if isinstance(before, Tensor):
        return now.shape == before.shape and torch.allclose(
            now.detach().double(), before.double(), rtol=0, atol=0, equal_nan=True
        )
    return now == before


def same_kind(given: Tensor, expected: Tensor) -> bool:
    """Both float (of any width), both integer, or both bool."""
    kinds = [(t.is_floating_point(), t.dtype == torch.bool) for t in (given, expected)]
    return kinds[0] == kinds[1]


def as_number(value: object) -> float | None:
    """The number in an int, a float or a tensor without axes; None otherwise."""
    if isinstance(value, Tensor) and value.ndim == 0:
        return float(value.detach().item())
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
        number = as_number(given)
        return number is not None and _close(
            torch.tensor(number), torch.tensor(float(expected)), tolerance
        )
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
