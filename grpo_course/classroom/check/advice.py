"""General advice, for mistakes that no exercise lists by name."""

import traceback
from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.classroom.check.exercise import Case, Outcome, agrees, as_number


def advise_error(error: BaseException) -> str:
    """General advice for an exception in the learner's function."""
    text = str(error).lower()
    if isinstance(error, NameError):
        return "A name is misspelt, or the cell that defines it has not been run."
    if "positional argument" in text:
        return "Keep the stub's signature: the check passes its arguments in order."
    if "size" in text or "shape" in text or "dimension" in text:
        return (
            "The shapes do not line up. Name each axis; keepdim=True or [..., None] "
            "keeps an axis of size 1, which broadcasts."
        )
    return "Run your function by hand on the input above, and print what it makes."


def error_line(error: BaseException, function: Callable) -> str:
    """The learner's own line that failed; none of the course's frames."""
    code = getattr(function, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.line for f in frames if code and f.filename == code.co_filename]
    return (lines[-1] or "") if lines else ""


def advise_form(problem: str, given: object, expected: object) -> str:
    """What to change in a result of another "type", "shape" or "dtype" (`problem`)."""
    if problem == "type" and isinstance(expected, Tensor):
        return (
            f"The result must be a tensor, but is a {type(given).__name__}. "
            "torch.stack makes one from tensors; .tolist() and .item() unmake it."
        )
    if problem == "type":
        return f"The result must be one number, but is a {type(given).__name__}."
    if problem == "shape":
        return _advise_shape(given, expected)
    return f"The result's dtype must be {_short(expected)}, not {_short(given)}."


def _advise_shape(given: Tensor, expected: Tensor) -> str:
    """A leftover axis of size 1 is told from a reduction along the wrong one."""
    left = [
        axis - given.ndim
        for axis in range(given.ndim)
        if given.numel() == expected.numel()
        and (*given.shape[:axis], *given.shape[axis + 1 :]) == expected.shape
    ]
    if left:
        return (
            f"The numbers may be right; an axis of size 1 is left: squeeze({left[-1]})."
        )
    return "Your result has the wrong shape: along which axis do you reduce?"


def _short(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def advise_gradient(their: Outcome, our: Outcome) -> str:
    """What is wrong with the gradient where the values are right; empty if nothing."""
    for name, expected in our.gradients.items():
        given = their.gradients.get(name)
        if given is None or (not given.any() and expected.any()):
            return (
                f"The values are right, but no gradient reaches `{name}`. detach(), "
                "item(), no_grad() and torch.tensor(...) cut it."
            )
        if given.any() and not expected.any():
            return (
                f"The values are right, but a gradient flows into `{name}`, where "
                "none may: detach() it."
            )
        if not agrees(given, expected):
            return f"The values are right, but the gradient of `{name}` is not."
    return ""


def advise_values(case: Case, first: int, theirs: list, ours: list) -> str:
    """General advice for wrong numbers; empty if there is none.

    `theirs` and `ours` are the outcomes of all cases; the first wrong one is at place
    `first`, and `case` is the input there.
    """
    together = _side_by_side(theirs, ours)
    alone = _side_by_side(theirs[first : first + 1], ours[first : first + 1])
    for given, expected in (together, alone):
        if relation := _relation(given, expected):
            return relation
    given, expected = alone
    if case.hint:
        return case.hint
    if expected.isfinite().all() and not given.isfinite().all():
        return "NaN or infinity came out: look for 0/0, log(0) or a huge exp."
    return "" if first == 0 else "Simpler input came out right: what is new here?"


def _side_by_side(theirs: list, ours: list) -> tuple[Tensor, Tensor]:
    """All numbers of several results as two flat tensors; empty if they do not pair."""
    given, expected = torch.zeros(0), torch.zeros(0)
    for their, our in zip(theirs, ours, strict=True):
        a, b = _flat(their.value), _flat(our.value)
        if a.shape != b.shape:
            return torch.zeros(0), torch.zeros(0)
        given, expected = torch.cat([given, a]), torch.cat([expected, b])
    return given, expected


def _flat(value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().double().flatten()
    number = as_number(value)
    return torch.zeros(0) if number is None else torch.tensor([number]).double()


def _relation(given: Tensor, expected: Tensor) -> str:
    """Minus sign, constant factor or constant offset, if one explains everything."""
    finite = (given.isfinite() & expected.isfinite()).all()
    if expected.count_nonzero() < 2 or not finite:
        return ""
    factor = ((given @ expected) / (expected @ expected)).item()
    if abs(factor) > 1e-6 and agrees(given, factor * expected):
        if abs(factor + 1) < 1e-5:
            return "Exactly the negative of the expected: a minus sign is wrong."
        return f"Always {factor:.6g} times the expected: a constant factor is wrong."
    offset = (given - expected).mean().item()
    if expected.unique().numel() > 1 and agrees(given, expected + offset):
        return f"Always {abs(offset):.4g} too {'large' if offset > 0 else 'small'}."
    return ""
