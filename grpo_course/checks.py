"""Errors for people: each names the argument, what was given, and the cure."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

import torch
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from torch import Tensor

# A range of numbers is a dict, {"above": 0, "at most": 1} say. NaN is in none of them.
Range = Mapping[str, float]


ENDS = {
    "at least": operator.ge,
    "above": operator.gt,
    "at most": operator.le,
    "below": operator.lt,
}


CERTAIN = 0.01  # nats by which a row of log-probabilities may miss a sum of one


def choices(allowed: Iterable[object], given: object = None) -> str:
    """The end of an error for a name that is not on a list; the nearest that is."""
    known = list(allowed)
    names = ", ".join(repr(name) for name in known)
    texts = [name for name in known if isinstance(name, str)]
    near = get_close_matches(given, texts, n=1) if isinstance(given, str) else []
    advice = f" Did you mean {near[0]!r}?" if near else ""
    return f"is not known.{advice} Choose one of: {names}."


def unknown_name(argument: str, given: object, allowed: Iterable[object]) -> ValueError:
    """The error for a name that is not on the list; lists the names that are."""
    return ValueError(f"{argument}={given!r} {choices(allowed, given)}")


def require_known(argument: str, given: object, allowed: Iterable[str]) -> None:
    """Check that a name is on the list."""
    if not isinstance(given, str) or given not in allowed:
        raise unknown_name(argument, given, allowed)


def require_tensor(argument: str, value: object, axes: str) -> None:
    """Check that a value is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{argument} is a {type(value).__name__}, not a tensor. "
            f"Pass torch.tensor(...) with axes [{axes}]."
        )


def require_axes(argument: str, tensor: Tensor, axes: str) -> None:
    """Check that `tensor` has at least the named axes.

    Further axes in front (a seed axis, say) are allowed: every function of the
    algorithm works on the last axes and leaves the ones before them alone.
    """
    require_tensor(argument, tensor, axes)
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
    require_tensor(argument, tensor, "...")
    require_tensor(other, like, "...")
    if tensor.shape != like.shape:
        raise ValueError(
            f"{argument} has shape {list(tensor.shape)}, but {other} has shape "
            f"{list(like.shape)}. Both must come from the same rollout."
        )


def require_one_each(argument: str, rewards: Tensor, log_probs: Tensor) -> None:
    """Check that there is one entry [... batch trial] for each response."""
    require_tensor(argument, rewards, "batch trial")
    if rewards.shape != log_probs.shape[:-1]:
        raise ValueError(
            f"{argument} has shape {list(rewards.shape)}, but log_probs has shape "
            f"{list(log_probs.shape)}: pass one for each response, "
            f"{list(log_probs.shape[:-1])}."
        )


def require_log_probs(**named: Tensor) -> None:
    """Check that these are logarithms of probabilities: floats, none above zero.

    Logits and probabilities would pass through every formula in silence. Hide the
    padding first: it may hold anything.
    """
    for argument, log_probs in named.items():
        if not log_probs.is_floating_point() or (log_probs > CERTAIN).any():
            raise ValueError(
                f"{argument} holds values up to {log_probs.max().item():.4g} "
                f"({log_probs.dtype}), but log-probabilities are floats that are never "
                "above 0. Apply log_softmax(-1) to logits, log() to probabilities."
            )


def require_frozen(argument: str, log_probs: Tensor, why: str) -> None:
    """Check that no gradient flows into what another policy said."""
    if log_probs.requires_grad:
        raise ValueError(
            f"{argument} carries a gradient. Compute it under torch.no_grad(): "
            f"otherwise {why}."
        )


def require_ref_log_probs(ref: Tensor, log_probs: Tensor) -> None:
    """Check that the reference's log-probs line up and are frozen."""
    require_axes("ref_log_probs", ref, "pos")
    require_same_shape("ref_log_probs", ref, "log_probs", log_probs)
    why = "the reference is pulled towards the policy as well"
    require_frozen("ref_log_probs", ref, why)


def require_old_log_probs(old: Tensor | None, log_probs: Tensor, mode: str) -> Tensor:
    """The old log-probs, if they are there, frozen, and line up."""
    if old is None:
        raise ValueError(
            f"mode={mode!r} needs old_log_probs: the log-probabilities of the same "
            "tokens under the policy that sampled them. Compute them once, before "
            "the first inner step, under torch.no_grad()."
        )
    require_axes("old_log_probs", old, "pos")
    require_same_shape("old_log_probs", old, "log_probs", log_probs)
    why = (
        "the gradients of numerator and denominator of the ratio cancel, and nothing "
        "is learned"
    )
    require_frozen("old_log_probs", old, why)
    return old


def require_vocabulary(argument: str, tokens: Tensor, vocab_size: int) -> None:
    """Check that tokens are whole numbers of the vocabulary."""
    require_axes(argument, tokens, "rows pos")
    whole = not tokens.is_floating_point() and tokens.dtype != torch.bool
    if not whole or tokens.min() < 0 or tokens.max() >= vocab_size:
        raise ValueError(
            f"{argument} holds values from {tokens.min().item()} to "
            f"{tokens.max().item()} ({tokens.dtype}), but the vocabulary is the whole "
            f"numbers 0 to {vocab_size - 1}. Use those, or a larger vocab_size."
        )


def require_finite(
    argument: str, tensor: Tensor, cure: str = "look at what made it"
) -> None:
    """Check that no entry is NaN or infinite; name the first one that is."""
    # One such entry makes the sum NaN or infinite, and a sum is quick.
    if not tensor.sum().isfinite() and not tensor.isfinite().all():
        index = (~tensor.isfinite()).nonzero()[0].tolist()
        raise ValueError(
            f"{argument}{index or ''} is {tensor[tuple(index)].item()}. "
            f"Every entry must be a finite number: {cure}."
        )


def require_number(argument: str, value: object) -> None:
    """Check that a value is a number, or a tensor of numbers."""
    if not isinstance(value, Real | Tensor):
        raise TypeError(
            f"{argument}={value!r} is a {type(value).__name__}, not a number."
        )


def require_at_least(argument: str, value: int, least: int) -> None:
    """Check that a count is a whole number, and not below its least sensible value."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(
            f"{argument}={value!r} is a {type(value).__name__}, but it must be a whole "
            f"number, at least {least}."
        )
    require_inside(argument, value, {"at least": least})


def require_sizes(**sizes: int) -> None:
    """Check that the sizes of a model are whole numbers from 1 on."""
    for argument, size in sizes.items():
        require_at_least(argument, size, 1)


def require_inside(argument: str, value: float, allowed: Range, also: str = "") -> None:
    """Check that a number is in a range; `also` ends the sentence."""
    require_number(argument, value)
    if not all(ENDS[word](value, end) for word, end in allowed.items()):
        wanted = " and ".join(f"{word} {end}" for word, end in allowed.items())
        raise ValueError(f"{argument}={value}, but it must be {wanted}{also}.")


Made = TypeVar("Made", bound=type)


# No "1" for 1 and no 1 for True, no name that nobody reads, no NaN.
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(Field,)
)
def settings(*, kw_only: bool = True) -> Callable[[Made], Made]:
    """A class of annotated fields as checked, frozen settings, passed by name.

    A name that is not known, a wrong type and a value out of range are refused with a
    ValueError. The comment beside a field is its help on the command line.
    """
    make: Any = dataclass(frozen=True, kw_only=kw_only, config=STRICT)

    def checked(kind: Made) -> Made:
        made = make(kind)
        init = made.__init__

        @wraps(init)
        def init_in_words(self: object, *args: object, **kwargs: object) -> None:
            try:
                init(self, *args, **kwargs)
            except ValidationError as error:
                known = [field.name for field in fields(made)]
                why = [in_words(each, known) for each in error.errors()]
                raise ValueError("; ".join(why)) from None

        made.__init__ = init_in_words
        return made

    return checked


def in_words(error: Any, known: Sequence[str]) -> str:
    """One of pydantic's errors as this course puts it; `known` are the settings."""
    name, kind = ".".join(map(str, error["loc"])), error["type"]
    if kind == "unexpected_keyword_argument":
        return unknown_setting(name, known)
    if kind == "missing":
        return f"{name} is missing: it has no default"
    reason = error["msg"].replace("Input should", "but it must")
    if kind == "value_error":  # of our own, in words already
        reason = str(error["ctx"]["error"])
        return f"{name}={error['input']!r} {reason}" if name else reason
    return f"{name}={error['input']!r}, {reason}."


def unknown_setting(name: str, known: Sequence[str]) -> str:
    """The words for a setting that there is not, with the nearest that there are."""
    near = " or ".join(get_close_matches(name, known))
    advice = f"Did you mean {near}?" if near else f"Those known are {', '.join(known)}."
    return f"there is no setting {name!r}. {advice}"


def one_of(known: Iterable[str]) -> BeforeValidator:
    """For a field that is one of some names: Annotated[str, one_of(known)]."""

    def check(name: object) -> object:
        if not isinstance(name, str) or name not in known:
            raise ValueError(choices(known, name))
        return name

    return BeforeValidator(check)
