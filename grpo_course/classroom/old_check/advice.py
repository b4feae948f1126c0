"""General advice, for mistakes that no exercise lists by name."""

import re
from typing import Any

import torch
from torch import Tensor

from grpo_course.classroom.old_check.outcome import Outcome, Pair, agrees, as_number

ERRORS = {  # pattern of an error's kind or message -> what helps; the first one counts
    "nameerror": "A name is misspelt, or what defines it (a cell, a line) has not run.",
    "positional argument": "Keep the stub's signature: the check passes its arguments "
    "in order.",
    "graph a second time": "Each backward uses up what was computed for it. Compute "
    "the log-probabilities and the loss anew in each step.",
    "size|shape|dimension": "The shapes do not line up. Name each axis; keepdim=True "
    "or [..., None] keeps an axis of size 1, which broadcasts.",
    "": "Run your function by hand on the input above, and print what it makes.",
}


def advise(kind: str, pairs: list[Pair], first: int) -> str:
    """What helps against a problem of this kind; empty if nothing general does.

    `pairs` are the outcomes of all cases; the first wrong one is at place `first`.
    """
    their, our = pairs[first].theirs, pairs[first].ours
    if their.error is not None:
        return _advise_error(their.error)
    if kind == "none":
        return _advise_none(pairs, first)
    if kind == "changed":
        return (
            f"Your function changes its input `{their.changed}` in place (as .sort() "
            "and += do). Others still use it: work on a copy, as sorted() does."
        )
    if kind == "gradient":
        return _advise_gradient(their, our)
    if kind == "values":
        return _advise_values(pairs, first)
    if kind == "shape":
        return _advise_shape(pairs)
    return _advise_form(kind, their.value, our.value)


def _advise_error(error: BaseException) -> str:
    text = f"{type(error).__mro__} {error}".lower()
    return next(words for part, words in ERRORS.items() if re.search(part, text))


def _advise_none(pairs: list[Pair], first: int) -> str:
    if all(pair.theirs.value is None for pair in pairs):
        return "Your function returns None: is the `return` missing?"
    return pairs[first].case.hint or (
        "Here your function returns None, and elsewhere a value: does each branch "
        "end with a `return`?"
    )


def _advise_form(kind: str, given: Any, expected: Any) -> str:
    if kind == "dtype":
        dtypes = [str(t.dtype).removeprefix("torch.") for t in (expected, given)]
        return f"The result's dtype must be {dtypes[0]}, not {dtypes[1]}."
    found = type(given).__name__
    if isinstance(expected, Tensor):
        return (
            f"The result must be a tensor, but is a {found}. torch.stack makes one "
            "from tensors; .tolist() and .item() turn it into plain numbers."
        )
    if as_number(given) is not None:
        return (
            f"The result must be a plain number, but is a {found} of one number: "
            ".item() takes it out."
        )
    return f"The result must be one number, but is a {found}."


def _advise_shape(pairs: list[Pair]) -> str:
    """Tell a leftover axis of size 1 from a reduction along the wrong axis.

    It is left over only if it is in every case: an axis may have size 1 by chance.
    """
    left = [_left_over(pair.theirs.value, pair.ours.value) for pair in pairs]
    if axes := set.intersection(*left):
        axis = max(axes)
        return f"The numbers may be right; an axis of size 1 is left: squeeze({axis})."
    if squeezed := _squeezed(pairs):
        return squeezed
    first = next(pair for pair in pairs if not _right_shape(pair))
    given, expected = _shape(first.theirs.value) or [], list(first.ours.value.shape)
    if len(given) < len(expected):
        return (
            "Your result has the wrong shape, with an axis lost: which one must stay?"
        )
    if len(given) > len(expected):
        return "Your result has the wrong shape: an axis is left that has to go."
    return (
        "Your result has the wrong shape: the right axes, with other numbers in them."
    )


def _right_shape(pair: Pair) -> bool:
    return _shape(pair.theirs.value) == _shape(pair.ours.value)


def _left_over(given: Any, expected: Any) -> set[int]:
    """The axes of `given`, from the end, without which its shape is the expected."""
    if not (isinstance(given, Tensor) and given.numel() == expected.numel()):
        return set()
    return {
        axis - given.ndim
        for axis in range(given.ndim)
        if (*given.shape[:axis], *given.shape[axis + 1 :]) == expected.shape
    }


def _squeezed(pairs: list[Pair]) -> str:
    """Axes of size 1 are gone where all else is right: squeeze() without an axis."""
    shapes = [(pair.theirs.value, pair.ours.value.shape) for pair in pairs]
    wrong = [(value, shape) for value, shape in shapes if _shape(value) != list(shape)]
    if all(_shape(value) == [n for n in shape if n != 1] for value, shape in wrong):
        return (
            "An axis of size 1 is gone that has to stay. squeeze() without an axis "
            "drops batch, trial or pos as well, where there is one of them."
        )
    return ""


def _shape(value: Any) -> list[int] | None:
    return list(value.shape) if isinstance(value, Tensor) else None


def _advise_gradient(their: Outcome, our: Outcome) -> str:
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


def _advise_values(pairs: list[Pair], first: int) -> str:
    """What relates all numbers to the right ones; else what the first wrong case says.

    One case alone proves no relation: in a small one it may hold by chance.
    """
    if relation := _relation(pairs):
        return relation
    if pairs[first].case.hint:
        return pairs[first].case.hint
    given, expected = _side_by_side(pairs[first : first + 1])
    if expected.isfinite().all() and not given.isfinite().all():
        return "NaN or infinity came out: look for 0/0, log(0) or a huge exp."
    return ""


def _side_by_side(pairs: list[Pair]) -> tuple[Tensor, Tensor]:
    """All numbers of several results as two flat tensors; empty if they do not pair."""
    theirs = [_flat(pair.theirs.value) for pair in pairs]
    ours = [_flat(pair.ours.value) for pair in pairs]
    if [len(flat) for flat in theirs] != [len(flat) for flat in ours]:
        return torch.zeros(0), torch.zeros(0)
    return torch.cat(theirs), torch.cat(ours)


def _flat(value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().double().flatten()
    number = as_number(value)
    return torch.zeros(0) if number is None else torch.tensor([number]).double()


def _relation(pairs: list[Pair]) -> str:
    """Minus sign, constant factor or constant offset, if one explains every case."""
    given, expected = _side_by_side(pairs)
    finite = (given.isfinite() & expected.isfinite()).all()
    if expected.count_nonzero() < 2 or not finite:
        return ""
    each = [_side_by_side([pair]) for pair in pairs]
    factor = ((given @ expected) / (expected @ expected)).item()
    scaled = all(agrees(theirs, factor * ours) for theirs, ours in each)
    if abs(factor) > 1e-6 and abs(factor - 1) > 1e-3 and scaled:
        if abs(factor + 1) < 1e-5:
            return "Exactly the negative of the expected: a minus sign is wrong."
        return f"Always {factor:.6g} times the expected: a constant factor is wrong."
    offset = (given - expected).mean().item()
    shifted = all(agrees(theirs, ours + offset) for theirs, ours in each)
    if expected.unique().numel() > 1 and shifted and abs(offset) > 1e-4:
        return f"Always {abs(offset):.4g} too {'large' if offset > 0 else 'small'}."
    return ""
