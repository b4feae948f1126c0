"""The policy loss: naive, unclipped, clipped; and a report of what clipping did."""

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import TOKEN_AXES, aggregate, as_bool_mask, hide
from grpo_course.algorithm.validation import (
    require_axes,
    require_same_shape,
    unknown_name,
)


def compute_ratio(log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """How much likelier each token is now than when it was sampled: pi / pi_old.

    A quotient of probabilities is the exp of a difference of log-probabilities.
    """
    return torch.exp(log_probs - old_log_probs)


def naive_loss(log_probs: Tensor, deltas: Tensor, **_) -> Tensor:
    """-delta log pi: the policy gradient (Williams 1992, REINFORCE)."""
    return -deltas * log_probs


def unclipped_loss(
    log_probs: Tensor, deltas: Tensor, *, old_log_probs: Tensor, **_
) -> Tensor:
    """-r delta: right for samples of pi_old too, while pi stays close to it."""
    return -compute_ratio(log_probs, old_log_probs) * deltas


def clipped_loss(
    log_probs: Tensor,
    deltas: Tensor,
    *,
    old_log_probs: Tensor,
    epsilon: float,
    epsilon_high: float,
    **_,
) -> Tensor:
    """-min(r delta, clip(r) delta): no gain from moving r out of the clip range.

    PPO: Schulman et al. 2017, arXiv 1707.06347.
    """
    ratio = compute_ratio(log_probs, old_log_probs)
    clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.minimum(ratio * deltas, clipped_ratio * deltas)


# Each takes log_probs and deltas [... batch trial pos] and, by keyword,
# old_log_probs, mask, epsilon, epsilon_high; `**_` swallows what it does not use.
# A loss of your own is one more entry: LOSS_MODES["mine"] = my_loss.
LOSS_MODES = {
    "naive": naive_loss,
    "unclipped": unclipped_loss,
    "clipped": clipped_loss,
}
MODES_WITHOUT_OLD = {"naive"}


def token_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
) -> Tensor:
    """The loss of each token [... batch trial pos]; arguments as `compute_loss`."""
    if mode not in LOSS_MODES:
        raise unknown_name("mode", mode, LOSS_MODES)
    require_axes("log_probs", log_probs, "batch trial pos")
    mask = None if mask is None else as_bool_mask(mask, log_probs)
    if old_log_probs is not None or mode not in MODES_WITHOUT_OLD:
        check_old_log_probs(old_log_probs, log_probs, mode)
        old_log_probs = hide(old_log_probs, mask)
    return LOSS_MODES[mode](
        hide(log_probs, mask),
        hide(deltas_per_token(deltas, log_probs), mask),
        old_log_probs=old_log_probs,
        mask=mask,
        **clip_range(epsilon, epsilon_high),
    )


def compute_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    aggregation: str = "sequence_mean",
    max_length: int | None = None,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
) -> Tensor:
    """The policy loss to minimise: [...], a scalar without leading axes.

    log_probs, old_log_probs and mask are [... batch trial pos] (nats), deltas are
    [... batch trial], or [... batch trial pos] where each token has its own.
    The clip range is [1 - epsilon, 1 + epsilon_high]; epsilon_high is epsilon
    unless given (DAPO: Yu et al. 2025, arXiv 2503.14476).

    Raises ValueError for an unknown mode or aggregation, for missing old log-probs
    or such that carry a gradient, for shapes that do not line up, for a bad clip
    range.
    """
    clip = {"epsilon": epsilon, "epsilon_high": epsilon_high}
    per_token = token_loss(log_probs, deltas, mode, old_log_probs, mask=mask, **clip)
    return aggregate(per_token, mask, aggregation, max_length=max_length)


@torch.no_grad()
def loss_report(
    log_probs: Tensor,
    deltas: Tensor,
    old_log_probs: Tensor,
    *,
    mask: Tensor | None = None,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
) -> dict[str, Tensor]:
    """What the ratio and the clip do, as a flat dict of [...]; shapes as above.

    A token counts as clipped only if clipping takes its gradient: r below the
    range with delta < 0, or above it with delta > 0. `gradient_fraction` are the
    tokens that still pull: delta is not zero and nothing was clipped. Fractions
    are of the tokens under the mask; without any, they are 0 and the range is
    (inf, -inf).
    """
    require_axes("log_probs", log_probs, "batch trial pos")
    check_old_log_probs(old_log_probs, log_probs, "clipped")
    mask = as_bool_mask(mask, log_probs)
    clip = clip_range(epsilon, epsilon_high)
    deltas = deltas_per_token(deltas, log_probs)
    ratio = compute_ratio(hide(log_probs, mask), hide(old_log_probs, mask))
    low = (ratio < 1 - clip["epsilon"]) & (deltas < 0)
    high = (ratio > 1 + clip["epsilon_high"]) & (deltas > 0)
    pulls = (deltas != 0) & ~low & ~high
    return {
        "ratio_min": torch.where(mask, ratio, torch.inf).amin(TOKEN_AXES),
        "ratio_max": torch.where(mask, ratio, -torch.inf).amax(TOKEN_AXES),
        "ratio_mean": aggregate(ratio, mask, "token_mean"),
        "clip_fraction_low": aggregate(low.to(ratio), mask, "token_mean"),
        "clip_fraction_high": aggregate(high.to(ratio), mask, "token_mean"),
        "gradient_fraction": aggregate(pulls.to(ratio), mask, "token_mean"),
    }


def deltas_per_token(deltas: Tensor, log_probs: Tensor) -> Tensor:
    """Deltas [... batch trial] as [... batch trial 1]; per-token ones as they are."""
    require_axes("deltas", deltas, "batch trial")
    if deltas.ndim == log_probs.ndim - 1:
        deltas = deltas.unsqueeze(-1)
    if deltas.shape not in (log_probs.shape, (*log_probs.shape[:-1], 1)):
        raise ValueError(
            f"deltas have shape {list(deltas.shape)}, but log_probs have shape "
            f"{list(log_probs.shape)}. Pass one delta per response "
            f"{list(log_probs.shape[:-1])} or one per token."
        )
    # A delta weighs the gradient of log pi; it sends none of its own back to
    # whatever made it (a reward model, a critic).
    return deltas.detach()


def check_old_log_probs(old: Tensor | None, log_probs: Tensor, mode: str) -> None:
    """Check that the old log-probs are there, frozen, and line up."""
    if old is None:
        raise ValueError(
            f"mode={mode!r} needs old_log_probs: the log-probabilities of the same "
            "tokens under the policy that sampled them. Compute them once, before "
            "the first inner step, under torch.no_grad()."
        )
    require_axes("old_log_probs", old, "pos")
    require_same_shape("old_log_probs", old, "log_probs", log_probs)
    if old.requires_grad:
        raise ValueError(
            "old_log_probs carries a gradient. Compute it under torch.no_grad(): "
            "otherwise the gradients of numerator and denominator of the ratio "
            "cancel, and nothing is learned."
        )


def clip_range(epsilon: float, epsilon_high: float | None) -> dict[str, float]:
    """Both sides of the clip range, checked."""
    high = epsilon if epsilon_high is None else epsilon_high
    if not 0 < epsilon <= 1:
        raise ValueError(
            f"epsilon={epsilon} is out of range: 0 < epsilon <= 1, since a ratio is "
            "never below 0. PPO and GRPO use 0.2."
        )
    if not high > 0:
        raise ValueError(f"epsilon_high={high} is out of range: it must be above 0.")
    return {"epsilon": epsilon, "epsilon_high": high}
