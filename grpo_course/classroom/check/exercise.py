"""An exercise as data: its cases, the course's answer, the known misconceptions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

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
    args: Mapping[str, Any]
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
