"""The policy loss: naive, unclipped, clipped; and a report of what clipping did."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import TOKEN_AXES, aggregate, as_bool_mask, hide
from grpo_course.algorithm.deltas import deltas_per_token
from grpo_course.algorithm.kl import k3
from grpo_course.algorithm.ratio import Clip, compute_ratio, old_at_level
from grpo_course.algorithm.validation import (
    require_axes,
    require_known,
    require_log_probs,
    require_old_log_probs,
)
from grpo_course.algorithm.variants.bounds import (
    cispo_loss,
    dual_clipped_loss,
    sapo_loss,
)


def naive_loss(log_probs: Tensor, deltas: Tensor, **_) -> Tensor:
    """-delta log pi: the policy gradient (Williams 1992, REINFORCE).

    [... batch trial pos] each -> the same.
    """
    return -deltas * log_probs


def unclipped_loss(
    log_probs: Tensor, deltas: Tensor, *, old_log_probs: Tensor, **_
) -> Tensor:
    """-r delta: right for samples of pi_old too, while pi stays close to it.

    [... batch trial pos] each -> the same.
    """
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

    [... batch trial pos] each -> the same. PPO: Schulman et al. 2017, arXiv 1707.06347.
    """
    ratio = compute_ratio(log_probs, old_log_probs)
    clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.minimum(ratio * deltas, clipped_ratio * deltas)


# Each takes log_probs and deltas [... batch trial pos] and, by keyword, old_log_probs,
# mask, epsilon, epsilon_high, dual_clip; `**_` swallows what it does not use.
# A loss of your own is one more entry: LOSS_MODES["mine"] = my_loss.
LOSS_MODES: dict[str, Callable[..., Tensor]] = {
    "naive": naive_loss,
    "unclipped": unclipped_loss,
    "clipped": clipped_loss,
    "dual_clipped": dual_clipped_loss,
    "cispo": cispo_loss,
    "sapo": sapo_loss,
}
MODES_WITHOUT_OLD = {"naive"}
MODES_THAT_CUT = {"clipped", "dual_clipped"}


def compute_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    aggregation: str = "sequence_mean",
    max_length: int | None = None,
    **clip: Any,
) -> Tensor:
    """The policy loss to minimize: [...], a scalar without leading axes.

    log_probs, old_log_probs and mask are [... batch trial pos] (nats), deltas are
    [... batch trial], or [... batch trial pos] where each token has its own.
    `clip` are the settings of `ratio.Clip`: epsilon=0.2 and epsilon_high=None for the
    clip range [1 - epsilon, 1 + epsilon_high], ratio_level and dual_clip. An epsilon of
    1 or more leaves no lower bound, since no ratio is below 0.

    Raises ValueError for an unknown mode, aggregation or setting, for old log-probs
    that are missing or carry a gradient, for shapes that do not line up, and for values
    that cannot be log-probabilities.
    """
    per_token = token_loss(log_probs, deltas, mode, old_log_probs, mask=mask, **clip)
    return aggregate(per_token, mask, aggregation, max_length=max_length)


def token_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    **clip: Any,
) -> Tensor:
    """The loss of each token [... batch trial pos]; arguments as `compute_loss`."""
    bound = Clip(**clip)
    new, deltas, old, mask = line_up(log_probs, deltas, mode, old_log_probs, mask)
    old = old_at_level(new, old, mask, bound.ratio_level)
    reach = {"epsilon": bound.epsilon, "epsilon_high": bound.high}
    return LOSS_MODES[mode](
        new, deltas, old_log_probs=old, mask=mask, **reach, dual_clip=bound.dual_clip
    )


def line_up(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Log-probs, deltas, old log-probs and mask, checked: [... batch trial pos] each.

    Padding is zero in all of them. A mode that reads no old log-probs may go without.
    """
    require_known("mode", mode, LOSS_MODES)
    require_axes("log_probs", log_probs, "batch trial pos")
    mask = as_bool_mask(mask, log_probs)
    new = hide(log_probs, mask)
    require_log_probs(log_probs=new)
    deltas = hide(deltas_per_token(deltas, log_probs), mask)
    if old_log_probs is None and mode in MODES_WITHOUT_OLD:
        return new, deltas, new.detach(), mask
    old = hide(require_old_log_probs(old_log_probs, log_probs, mode), mask)
    require_log_probs(old_log_probs=old)
    return new, deltas, old, mask


@torch.no_grad()
def loss_report(
    log_probs: Tensor,
    deltas: Tensor,
    old_log_probs: Tensor,
    *,
    mode: str = "clipped",
    mask: Tensor | None = None,
    **clip: Any,
) -> dict[str, Tensor]:
    """What the ratio and the clip do, as a flat dict of [...]; arguments as above.

    A token counts as clipped only if it loses its gradient, as `cut_tokens` says.
    `gradient_fraction` are the tokens that still pull: delta is not zero and nothing
    was clipped. Fractions are of the tokens under the mask; without any, they are 0
    and the range is (inf, -inf). `old_kl` is how far the inner steps went:
    KL(pi_old||pi) in nats a token, k3.
    """
    require_old_log_probs(old_log_probs, log_probs, mode)
    bound = Clip(**clip)
    new, deltas, old, mask = line_up(log_probs, deltas, mode, old_log_probs, mask)
    ratio = compute_ratio(new, old_at_level(new, old, mask, bound.ratio_level))
    low, high = cut_tokens(ratio, deltas, mode, bound)
    pulls = (deltas != 0) & ~low & ~high
    return {
        "ratio_min": torch.where(mask, ratio, torch.inf).amin(TOKEN_AXES),
        "ratio_max": torch.where(mask, ratio, -torch.inf).amax(TOKEN_AXES),
        "ratio_mean": aggregate(ratio, mask, "token_mean"),
        "old_kl": aggregate(k3(old, new), mask, "token_mean"),
        "clip_fraction_low": aggregate(low.to(ratio), mask, "token_mean"),
        "clip_fraction_high": aggregate(high.to(ratio), mask, "token_mean"),
        "gradient_fraction": aggregate(pulls.to(ratio), mask, "token_mean"),
    }


def cut_tokens(
    ratio: Tensor, deltas: Tensor, mode: str, bound: Clip
) -> tuple[Tensor, Tensor]:
    """Whose gradient the clip takes: (from below, from above), bool like `ratio`.

    r below the range with delta < 0, above it with delta > 0, above `dual_clip` with
    delta < 0. CISPO and SAPO cut nobody; of a loss of your own nothing is known.
    """
    if mode not in MODES_THAT_CUT:
        nobody = torch.zeros_like(ratio, dtype=torch.bool)
        return nobody, nobody
    low = (ratio < 1 - bound.epsilon) & (deltas < 0)
    high = (ratio > 1 + bound.high) & (deltas > 0)
    if mode == "dual_clipped":
        high = high | ((ratio > bound.dual_clip) & (deltas < 0))
    return low, high
