"""Losses of later papers. Each is one more way to hold the ratio back."""

import torch
from torch import Tensor

from grpo_course.algorithm.ratio import compute_ratio

SAPO_TEMPERATURES = (1.0, 1.05)  # for positive and negative deltas, as in the paper


def dual_clipped_loss(
    log_probs: Tensor,
    deltas: Tensor,
    *,
    old_log_probs: Tensor,
    epsilon: float,
    epsilon_high: float,
    dual_clip: float,
    **_,
) -> Tensor:
    """-min(min(r, c) delta, clip(r) delta): with c = dual_clip, a second upper bound.

    [... batch trial pos] each -> the same.
    PPO's clip lets r grow without limit where delta < 0, and the loss with it. Beyond
    c such a token stops pulling. Ye et al. 2019, arXiv 1912.09729; TRL's `delta`.
    """
    require_dual_clip(dual_clip, epsilon_high)
    ratio = compute_ratio(log_probs, old_log_probs)
    clipped_ratio = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.minimum(ratio.clamp(max=dual_clip) * deltas, clipped_ratio * deltas)


def require_dual_clip(dual_clip: float, epsilon_high: float) -> None:
    """Check that the second upper bound of a ratio lies above the first."""
    if not dual_clip > 1 + epsilon_high:
        raise ValueError(
            f"dual_clip={dual_clip} is inside the clip range: it must be above "
            f"1 + epsilon_high = {1 + epsilon_high:g}. Usual are 3 to 10."
        )


def cispo_loss(
    log_probs: Tensor,
    deltas: Tensor,
    *,
    old_log_probs: Tensor,
    epsilon_high: float,
    **_,
) -> Tensor:
    """-sg[min(r, 1 + epsilon_high)] delta log pi: the clip bounds a weight.

    [... batch trial pos] each -> the same.
    sg stops the gradient. No token loses its gradient, however far its ratio went.
    There is no lower bound, as in the paper's experiments: `epsilon` is not read.
    CISPO: MiniMax 2025, arXiv 2506.13585.
    """
    weight = compute_ratio(log_probs, old_log_probs).clamp(max=1 + epsilon_high)
    return -weight.detach() * deltas * log_probs


def sapo_loss(
    log_probs: Tensor,
    deltas: Tensor,
    *,
    old_log_probs: Tensor,
    temperatures: tuple[float, float] = SAPO_TEMPERATURES,
    **_,
) -> Tensor:
    """-(4 / tau) sigmoid(tau (r - 1)) delta: a smooth gate in place of the clip.

    [... batch trial pos] each -> the same.
    At r = 1 it has the gradient of -r delta, and the less the farther r is from 1.
    tau is larger for negative deltas. SAPO: Gao et al. 2025, arXiv 2511.20347.
    """
    ratio = compute_ratio(log_probs, old_log_probs)
    positive, negative = temperatures
    tau = torch.where(deltas > 0, positive, negative).to(ratio)
    return -torch.sigmoid(tau * (ratio - 1)) * 4 / tau * deltas
