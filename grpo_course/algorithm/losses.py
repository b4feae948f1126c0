"""The policy loss: naive, unclipped, clipped; and a report of what clipping did."""

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import TOKEN_AXES, aggregate, as_bool_mask, hide
from grpo_course.algorithm.kl import k3
from grpo_course.algorithm.loss_inputs import (
    check_old_log_probs,
    clip_range,
    deltas_per_token,
)
from grpo_course.algorithm.losses_beyond import (
    cispo_loss,
    dual_clipped_loss,
    sapo_loss,
)
from grpo_course.algorithm.ratio import compute_ratio, old_at_level
from grpo_course.algorithm.validation import require_axes, unknown_name


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
LOSS_MODES = {
    "naive": naive_loss,
    "unclipped": unclipped_loss,
    "clipped": clipped_loss,
    "dual_clipped": dual_clipped_loss,
    "cispo": cispo_loss,
    "sapo": sapo_loss,
}
MODES_WITHOUT_OLD = {"naive"}
MODES_THAT_CUT = {"clipped", "dual_clipped"}


def token_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: str,
    old_log_probs: Tensor | None = None,
    *,
    mask: Tensor | None = None,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
    ratio_level: str = "token",
    dual_clip: float = 3.0,
) -> Tensor:
    """The loss of each token [... batch trial pos]; arguments as `compute_loss`."""
    if mode not in LOSS_MODES:
        raise unknown_name("mode", mode, LOSS_MODES)
    require_axes("log_probs", log_probs, "batch trial pos")
    mask = None if mask is None else as_bool_mask(mask, log_probs)
    deltas = hide(deltas_per_token(deltas, log_probs), mask)
    old, new = old_log_probs, hide(log_probs, mask)
    if old is not None or mode not in MODES_WITHOUT_OLD:
        check_old_log_probs(old, log_probs, mode)
        old = old_at_level(new, hide(old, mask), mask, ratio_level)
    knobs = clip_range(epsilon, epsilon_high) | {"dual_clip": dual_clip}
    return LOSS_MODES[mode](new, deltas, old_log_probs=old, mask=mask, **knobs)


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
    ratio_level: str = "token",
    dual_clip: float = 3.0,
) -> Tensor:
    """The policy loss to minimise: [...], a scalar without leading axes.

    log_probs, old_log_probs and mask are [... batch trial pos] (nats), deltas are
    [... batch trial], or [... batch trial pos] where each token has its own.
    The clip range is [1 - epsilon, 1 + epsilon_high]; epsilon_high is epsilon
    unless given (DAPO: Yu et al. 2025, arXiv 2503.14476). `ratio_level` "sequence"
    gives a response one ratio (GSPO); `dual_clip` is read by "dual_clipped" only.

    Raises ValueError for an unknown mode, level or aggregation, for missing old
    log-probs or such that carry a gradient, for shapes that do not line up, for a bad
    clip range.
    """
    knobs = {"epsilon": epsilon, "epsilon_high": epsilon_high}
    knobs |= {"ratio_level": ratio_level, "dual_clip": dual_clip}
    per_token = token_loss(log_probs, deltas, mode, old_log_probs, mask=mask, **knobs)
    return aggregate(per_token, mask, aggregation, max_length=max_length)


@torch.no_grad()
def loss_report(
    log_probs: Tensor,
    deltas: Tensor,
    old_log_probs: Tensor,
    *,
    mode: str = "clipped",
    mask: Tensor | None = None,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
    ratio_level: str = "token",
    dual_clip: float = 3.0,
) -> dict[str, Tensor]:
    """What the ratio and the clip do, as a flat dict of [...]; arguments as above.

    A token counts as clipped only if it loses its gradient, as `cut_tokens` says.
    `gradient_fraction` are the tokens that still pull: delta is not zero and nothing
    was clipped. Fractions are of the tokens under the mask; without any, they are 0
    and the range is (inf, -inf). `old_kl` is how far the inner steps went:
    KL(pi_old||pi) in nats a token, k3.
    """
    require_axes("log_probs", log_probs, "batch trial pos")
    check_old_log_probs(old_log_probs, log_probs, mode)
    mask = as_bool_mask(mask, log_probs)
    knobs = clip_range(epsilon, epsilon_high) | {"dual_clip": dual_clip}
    deltas = deltas_per_token(deltas, log_probs)
    new, old = hide(log_probs, mask), hide(old_log_probs, mask)
    ratio = compute_ratio(new, old_at_level(new, old, mask, ratio_level))
    low, high = cut_tokens(ratio, deltas, mode, **knobs)
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
    ratio: Tensor,
    deltas: Tensor,
    mode: str,
    *,
    epsilon: float,
    epsilon_high: float,
    dual_clip: float,
) -> tuple[Tensor, Tensor]:
    """Whose gradient the clip takes: (from below, from above), bool like `ratio`.

    r below the range with delta < 0, above it with delta > 0, above `dual_clip` with
    delta < 0. CISPO and SAPO cut nobody; of a loss of your own nothing is known.
    """
    if mode not in MODES_THAT_CUT:
        nobody = torch.zeros_like(ratio, dtype=torch.bool)
        return nobody, nobody
    low = (ratio < 1 - epsilon) & (deltas < 0)
    high = (ratio > 1 + epsilon_high) & (deltas > 0)
    if mode == "dual_clipped":
        high = high | ((ratio > dual_clip) & (deltas < 0))
    return low, high
