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


@dataclass(frozen=True, eq=False)
class Case:
    """One call of the function. `args` are in the order of the stub's parameters.

    `hint` is for a case whose failure alone names the misconception (ties, say).
    `tolerance` replaces that of the exercise where this case needs a wider one.
    """

    description: str
    args: Mapping[str, Any]
    hint: str = ""
    tolerance: float | None = None


@dataclass(frozen=True, eq=False)
class Exercise:
    """A function to write, and everything needed to judge an answer.

    `axes` names the axes of each argument and of the result ("return").
    `gradient_to` lists the arguments (tensors, or a model) whose gradient is compared
    as well; where the course's own gradient is zero, the learner's must be zero too.
    A wider `tolerance` lets through what the task leaves open (a small epsilon, say).
    A `choice` picks from a list: a wrong pick gets its own hint, not the right name.

    The solution is a plain function, as a learner writes it. Mistakes that are a
    mutation of it are not listed: `words` gives one words of its own where those of
    the rule say less. It is named by its new piece of code, or by the kind of all such
    mutations. In the same way `equivalent` names those that change nothing, and why.
    `mistakes` are the misconceptions that no mutation expresses.
    `distributions` are arguments whose last axis is a whole distribution.
    With `plain_number` a tensor without axes is not taken for a number.
    With `use` an answer is judged by what it is good for: `use(function, *args)` is
    what is compared. A `draft` stands in the stub instead of NotImplementedError.
    """

    key: str
    name: str
    solution: Callable
    cases: tuple[Case, ...]
    insight: str
    mistakes: tuple[Mistake, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, str] = field(default_factory=dict)
    gradient_to: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    tolerance: float = TOLERANCE
    choice: bool = False
    plain_number: bool = False
    use: Callable | None = None
    draft: Callable | None = None
