"""From one number per token to one number: the means that papers use."""

import torch
from torch import Tensor

from grpo_course.algorithm.validation import (
    require_at_least,
    require_axes,
    require_known,
    require_same_shape,
)

TOKEN_AXES = (-3, -2, -1)


def sequence_mean(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Mean over the tokens of each response, then over the responses.

    [... batch trial pos] -> [...].
    Every response weighs the same, so a token of a long response weighs less.
    GRPO: Shao et al. 2024, arXiv 2402.03300.
    """
    lengths = mask.sum(-1).clamp(min=1)  # an empty response is 0/1, not 0/0
    return (kept.sum(-1) / lengths).mean((-2, -1))


def token_mean(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Mean over all tokens: every token weighs the same.

    [... batch trial pos] -> [...]. DAPO: Yu et al. 2025, arXiv 2503.14476.
    """
    return kept.sum(TOKEN_AXES) / mask.sum(TOKEN_AXES).clamp(min=1)


def constant(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Sum over all tokens, divided by a number that no response can change.

    [... batch trial pos] -> [...]. Dr. GRPO: Liu et al. 2025, arXiv 2503.20783.
    """
    num_responses = mask.shape[-3] * mask.shape[-2]
    return kept.sum(TOKEN_AXES) / (num_responses * max_length)


def sequence_sum(kept: Tensor, mask: Tensor, max_length: int) -> Tensor:
    """Sum over the tokens of each response, then mean over the responses.

    [... batch trial pos] -> [...].
    "constant" without its divisor, so the loss grows with the length. LUSPO is this
    with one ratio a response: arXiv 2602.05261.
    """
    return kept.sum(-1).mean((-2, -1))


AGGREGATIONS = {
    "sequence_mean": sequence_mean,
    "token_mean": token_mean,
    "constant": constant,
    "sequence_sum": sequence_sum,
}


def aggregate(
    per_token: Tensor,
    mask: Tensor | None = None,
    aggregation: str = "sequence_mean",
    *,
    max_length: int | None = None,
) -> Tensor:
    """Reduce [... batch trial pos] to [...]: a scalar without leading axes.

    `mask` is True (or 1) on the tokens that count. Without it all count, and the
    modes are the plain mean, but for "sequence_sum". `max_length` is the divisor of
    "constant" in tokens; it is the pos axis unless given, and no other mode reads it.

    A response whose mask is empty adds zero. It stays in the number of responses
    ("sequence_mean", "constant"): leaving it out would make the weight of the
    others depend on it. TRL counts it too, verl leaves it out.

    Sums are taken in float32 at least. Raises ValueError for an unknown mode, for
    shapes that do not line up, for a mask that is not 0/1 and for a max_length below 1.
    """
    require_known("aggregation", aggregation, AGGREGATIONS)
    require_axes("per_token", per_token, "batch trial pos")
    mask = as_bool_mask(mask, per_token)
    max_length = per_token.shape[-1] if max_length is None else max_length
    require_at_least("max_length", max_length, 1)
    kept = hide(as_floats(per_token), mask)
    return AGGREGATIONS[aggregation](kept, mask, max_length)


def as_floats(values: Tensor) -> Tensor:
    """Half precision, whole numbers and booleans as float32; the rest as it is.

    In half precision a sum overflows at 65504, and its mean is infinite.
    """
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def hide(values: Tensor, mask: Tensor | None) -> Tensor:
    """Zero in value and in gradient where the mask is False.

    [... batch trial pos] -> the same.
    Not `values * mask`: padding may hold inf or NaN, and 0 * NaN is NaN.
    """
    return values if mask is None else torch.where(mask, values, values.new_zeros(()))


def as_bool_mask(mask: Tensor | None, like: Tensor) -> Tensor:
    """The mask as booleans; all True when it is None. -> bool [... batch trial pos]

    Raises ValueError if it has not the shape of `like`, and if it is not 0/1.
    """
    if mask is None:
        return torch.ones_like(like, dtype=torch.bool)
    require_axes("mask", mask, "batch trial pos")
    require_same_shape("mask", mask, "what it masks", like)
    if mask.dtype != torch.bool and not ((mask == 0) | (mask == 1)).all():
        raise ValueError(
            f"mask holds values from {mask.min().item():g} to {mask.max().item():g}, "
            "but it says which tokens count: pass booleans, or 0 and 1."
        )
    return mask.bool()
