"""The script with one defect, or with two, as a module of its own."""

import linecache
import random
import sys
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType

from grpo_course.classroom.hunt import script
from grpo_course.classroom.hunt.defect import Defect
from grpo_course.classroom.hunt.defects import DEFECTS

HEALTHY = Path(script.__file__).read_text(encoding="utf-8")
running_number = count(1)  # tells modules apart, and nothing else


def broken(*numbers: int) -> ModuleType:
    """The trainer with the defect of this number, or with those of two numbers.

    The module is made as if from a file: `inspect` and tracebacks show its source.
    Raises ValueError for a number that there is not, and for two that change the same
    line.
    """
    return compiled(source_with(*numbers))


def draw(seed: int, how_many: int = 1) -> ModuleType:
    """A trainer with one defect, or with two, drawn by the seed."""
    return broken(*drawn_numbers(seed, how_many))


def drawn_numbers(seed: int, how_many: int = 1) -> tuple[int, ...]:
    """The numbers that `draw` takes; two of them change different lines."""
    rng = random.Random(seed)
    while True:
        numbers = tuple(rng.sample(sorted(DEFECTS), how_many))
        try:
            source_with(*numbers)
        except ValueError:
            continue
        return numbers


def source_with(*numbers: int) -> str:
    """The text of the script with some defects."""
    text = HEALTHY
    for number in numbers:
        defect = require_defect(number)
        for old, new in defect.edits:
            if text.count(old) != 1:
                raise ValueError(
                    f"numbers={numbers}: these two change the same lines. Take others."
                )
            text = text.replace(old, new)
    return text


def require_defect(number: int) -> Defect:
    """The defect of a number."""
    if number not in DEFECTS:
        raise ValueError(
            f"number={number}: there is no such trainer. Choose one of 1 to "
            f"{max(DEFECTS)}."
        )
    return DEFECTS[number]


@cache
def compiled(text: str) -> ModuleType:
    """A source as a module, registered so that its source can be shown."""
    name = f"trainer_{next(running_number)}"
    path = f"{name}.py"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(text, path, "exec"), module.__dict__)
    return module
