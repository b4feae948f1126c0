"""A sampler that differs from the scorer: weigh its tokens by how much."""

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import hide
from grpo_course.algorithm.ratio import compute_ratio
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import require_same_shape


@torch.no_grad()
def sampler_weights(
    old_log_probs: Tensor,
    sampled_log_probs: Tensor,
    cap: float,
    mask: Tensor | None = None,
) -> Tensor:
    """Truncated importance sampling: min(pi_old / pi_sampler, cap) for each token.

    All [... batch trial pos]; 1 where the mask is False. For a sampler that is not
    quite the policy that scores: another engine, a lower precision, top-k.
    Yao et al. 2025, fengyao.notion.site/off-policy-rl.

    Raises ValueError for a cap that is not above 0 and shapes that do not line up.
    """
    if not cap > 0:
        raise ValueError(
            f"cap={cap} is out of range: it bounds pi_old / pi_sampler from above, so "
            "it must be above 0. Usual are 2 to 5."
        )
    require_same_shape("sampled_log_probs", sampled_log_probs, "old", old_log_probs)
    ratio = compute_ratio(hide(old_log_probs, mask), hide(sampled_log_probs, mask))
    return ratio.clamp(max=cap)


def correct_deltas(
    deltas: Tensor, rollout: Rollout, old_log_probs: Tensor, cap: float
) -> Tensor:
    """Deltas times the sampler's weights: [... batch trial pos].

    Every loss is linear in the size of its deltas, so no loss needs to know. Raises
    ValueError if the rollout does not say what its sampler thought.
    """
    sampled = rollout.sampled_log_probs
    if sampled is None:
        raise ValueError(
            f"sampler_cap={cap}, but this policy's rollouts have no sampled_log_probs. "
            "Note them in policy.sample, or use sampler_cap=None."
        )
    weights = sampler_weights(old_log_probs, sampled, cap, rollout.mask)
    spread = deltas if deltas.ndim == weights.ndim else deltas[..., None]
    return spread * weights
