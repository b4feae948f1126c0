"""Right answers in a form that the course's own do not have."""

import functools
from collections.abc import Callable
from numbers import Real

import numpy
import torch
from torch import Tensor

from grpo_course.classroom.check.diagnosis import judged
from grpo_course.classroom.check.exercise import Exercise
from grpo_course.classroom.exercises import EXERCISES


def other_width(value: object) -> object:
    """float32 -> float64, int64 -> int32, as other ways to compute them give."""
    widths = {torch.float32: torch.float64, torch.int64: torch.int32}
    is_tensor = isinstance(value, Tensor)
    return value.to(widths.get(value.dtype, value.dtype)) if is_tensor else value


def not_contiguous(value: object) -> object:
    """The same numbers, with others between them in memory."""
    if not isinstance(value, Tensor) or value.ndim == 0:
        return value
    return torch.stack([value, torch.zeros_like(value)], dim=-1)[..., 0]


def as_tensor(value: object) -> object:
    """A number -> a tensor without axes."""
    return torch.tensor(value) if isinstance(value, Real) else value


def as_number(value: object) -> object:
    """A tensor without axes -> a number."""
    is_scalar = isinstance(value, Tensor) and value.ndim == 0
    return value.item() if is_scalar else value


def from_numpy(value: object) -> object:
    """A number -> NumPy's, which is no float."""
    return numpy.float32(value) if isinstance(value, Real) else value


def as_tuple(value: object) -> object:
    """A list -> a tuple."""
    return tuple(value) if isinstance(value, list) else value


def everything(value: object) -> object:
    """As unusual as a right answer can be."""
    return as_tuple(as_tensor(not_contiguous(other_width(value))))


FORMS = (
    everything,
    other_width,
    not_contiguous,
    as_tensor,
    as_number,
    from_numpy,
    as_tuple,
)


def answer_in(form: Callable, exercise: Exercise) -> Callable:
    """The solution, with its result in another form."""

    @functools.wraps(exercise.solution)
    def answer(*given, **named):
        return form(exercise.solution(*given, **named))

    return answer


def most_unusual(name: str) -> Callable:
    """The answer to an exercise in the first of the forms that `check` accepts."""
    exercise = next(each for each in EXERCISES if each.name == name)
    answers = (answer_in(form, exercise) for form in FORMS)
    return next(answer for answer in answers if not judged(exercise, answer)[0])
