"""Errors for people: each names the argument, what was given, and the cure."""

from collections.abc import Iterable

from torch import Tensor


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
    if value < least:
        raise ValueError(f"{argument}={value}, but it must be at least {least}.")
