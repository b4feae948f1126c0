"""Errors for people: each names the argument, what was given, and the cure."""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any, get_args

from torch import Tensor

# A range of numbers is a dict, {"above": 0, "at most": 1} say. NaN is in none of them.
Range = Mapping[str, float]
ENDS = {
    "at least": operator.ge,
    "above": operator.gt,
    "at most": operator.le,
    "below": operator.lt,
}
COUNT: Range = {"at least": 1}
NOT_NEGATIVE: Range = {"at least": 0, "below": float("inf")}
POSITIVE: Range = {"above": 0, "below": float("inf")}
SHARE: Range = {"at least": 0, "at most": 1}


def unknown_name(argument: str, given: object, allowed: Iterable[str]) -> ValueError:
    """The error for a name that is not on the list; lists the names that are."""
    names = ", ".join(repr(name) for name in allowed)
    return ValueError(f"{argument}={given!r} is not known. Choose one of: {names}.")


def require_axes(argument: str, tensor: Tensor, axes: str) -> None:
    """Check that `tensor` has at least the named axes.

    Further axes in front (a seed axis, say) are allowed: every function of the
    algorithm works on the last axes and leaves the ones before them alone.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{argument} is a {type(tensor).__name__}, not a tensor. "
            f"Pass torch.tensor(...) with axes [{axes}]."
        )
    if tensor.ndim < len(axes.split()):
        raise ValueError(
            f"{argument} has shape {list(tensor.shape)}, but its axes are [{axes}]. "
            f"Add the missing axis, for example with {argument}[None]."
        )
    if 0 in tensor.shape:
        raise ValueError(
            f"{argument} has shape {list(tensor.shape)}: an axis of [{axes}] is empty. "
            "Pass at least one prompt, one response and one position."
        )


def require_same_shape(argument: str, tensor: Tensor, other: str, like: Tensor) -> None:
    """Check that two tensors line up."""
    if tensor.shape != like.shape:
        raise ValueError(
            f"{argument} has shape {list(tensor.shape)}, but {other} has shape "
            f"{list(like.shape)}. Both must come from the same rollout."
        )


def require_vocabulary(argument: str, tokens: Tensor, vocab_size: int) -> None:
    """Check that tokens are whole numbers of the vocabulary."""
    require_axes(argument, tokens, "rows pos")
    if tokens.is_floating_point() or tokens.min() < 0 or tokens.max() >= vocab_size:
        raise ValueError(
            f"{argument} holds values from {tokens.min().item()} to "
            f"{tokens.max().item()} ({tokens.dtype}), but the vocabulary is the whole "
            f"numbers 0 to {vocab_size - 1}. Use those, or a larger vocab_size."
        )


def require_finite(
    argument: str, tensor: Tensor, cure: str = "look at what made it"
) -> None:
    """Check that no entry is NaN or infinite; name the first one that is."""
    if not tensor.isfinite().all():
        index = (~tensor.isfinite()).nonzero()[0].tolist()
        raise ValueError(
            f"{argument}{index or ''} is {tensor[tuple(index)].item()}. "
            f"Every entry must be a finite number: {cure}."
        )


def require_at_least(argument: str, value: float, least: float) -> None:
    """Check that a number is not below its least sensible value."""
    require_inside(argument, value, {"at least": least})


def require_inside(argument: str, value: float, allowed: Range, also: str = "") -> None:
    """Check that a number is in a range; `also` says what else would do."""
    if not all(ENDS[word](value, end) for word, end in allowed.items()):
        words = " and ".join(f"{word} {end}" for word, end in allowed.items())
        raise ValueError(f"{argument}={value}, but it must be {words}{also}.")


def check_types(config: Any) -> None:
    """Check each field of a dataclass against the type it is declared with.

    A whole number passes for a float. Raises ValueError that names the field.
    """
    for field in fields(config):
        value = getattr(config, field.name)
        if not fits(value, field.type):
            raise ValueError(
                f"{field.name}={value!r}, but it must be of the type "
                f"{type_name(field.type)}."
            )


def check_choices(config: Any, choices: Mapping[str, Iterable[str]]) -> None:
    """Check the fields that hold a name from a list. Raises ValueError."""
    for name, known in choices.items():
        if getattr(config, name) not in known:
            raise unknown_name(name, getattr(config, name), known)


def check_ranges(config: Any, ranges: Mapping[str, Range]) -> None:
    """Check the fields that hold a number; None passes. Raises ValueError.

    Call `check_types` first: it refuses None where there must be a number.
    """
    types = {field.name: field.type for field in fields(config)}
    for name, allowed in ranges.items():
        value = getattr(config, name)
        if value is not None:
            or_none = ", or None" if NoneType in get_args(types[name]) else ""
            require_inside(name, value, allowed, or_none)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a field's type; lists pass for tuples, as JSON has them."""
    if isinstance(kind, UnionType):
        return any(fits(value, option) for option in get_args(kind))
    if get_args(kind):  # tuple[int, ...]
        listed = isinstance(value, list | tuple)
        return listed and all(fits(entry, get_args(kind)[0]) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def type_name(kind: Any) -> str:
    """A type in plain words."""
    names = {str: "text", NoneType: "None", bool: "True or False", int: "whole number"}
    if isinstance(kind, UnionType):
        return " or ".join(type_name(option) for option in get_args(kind))
    if get_args(kind):
        return f"list of {type_name(get_args(kind)[0])}s"
    return names.get(kind, "number")
