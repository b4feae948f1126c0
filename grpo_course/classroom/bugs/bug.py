"""A bug as data: what you see, what to measure, what is wrong, what repairs it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """One row of the debugging sheet, and the two functions behind it.

    `healthy` runs the probe on a function: False for `broken`, True for `repaired`.
    `repaired_line` stands in the module of `repaired`, and not in `broken`.
    """

    name: str
    symptom: str
    probe: str
    cause: str
    repaired_line: str
    broken: Callable
    repaired: Callable
    healthy: Callable[[Callable], bool]
