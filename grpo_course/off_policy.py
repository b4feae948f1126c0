"""Samples that are not quite the policy's own, and other things that trainers add.

    StaleSampler             responses written with the weights of some epochs ago
    with_overlong_penalty    a price on long responses, as DAPO takes it

Each wraps a policy, a loss or a reward function; the loop does not know of them. What
corrects for old weights, or for an engine that draws otherwise than the policy scores,
is a setting of the loop, `sampler_cap`.
"""

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from grpo_course.checks import require_at_least
from grpo_course.formulas import as_bool_mask
from grpo_course.loop import Policy, Rollout, require_policy, weights


class StaleSampler:
    """A policy that writes with the weights of `lag` calls ago; scores are today's.

    The loop calls `sample` once an epoch (num_resamples=0), so the lag is in epochs;
    in the first ones, the oldest weights there are. Rollouts hold the log-probs of the
    weights that wrote them. So old_log_probs_from="sampler" makes the ratio reach back
    to those, and "policy" takes the rollouts for fresh ones.

    Raises ValueError for a lag below 0.
    """

    def __init__(self, policy: Policy, lag: int):
        require_policy(policy)
        require_at_least("lag", lag, 0)
        self.policy, self.writer = policy, copy.deepcopy(policy)
        self.past: deque[list[Tensor]] = deque(maxlen=lag + 1)

    @torch.no_grad()
    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """As the policy would have answered `lag` calls ago."""
        self.past.append([weight.clone() for weight in weights(self.policy)])
        for weight, old in zip(weights(self.writer), self.past[0], strict=True):
            weight.copy_(old)
        rollout = self.writer.sample(prompts, num_responses)
        if rollout.sampled_log_probs is not None:
            return rollout
        return replace(rollout, sampled_log_probs=self.writer.log_probs(rollout))

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> [... batch trial pos], of today's weights"""
        return self.policy.log_probs(rollout)


def with_overlong_penalty(
    reward_fn: Callable[[Rollout], Tensor], max_length: int, buffer: int
) -> Callable[[Rollout], Tensor]:
    """A reward function that also pays for length: give it in place of reward_fn.

    It adds 0 up to max_length - buffer tokens, -1 from max_length on, linear between.
    DAPO: Yu et al. 2025, arXiv 2503.14476, equation 13. Raises ValueError for a buffer
    below 1 or above max_length.
    """
    require_at_least("max_length", max_length, 1)
    require_at_least("buffer", buffer, 1)
    if buffer > max_length:
        raise ValueError(
            f"buffer={buffer} with max_length={max_length}: it is how many tokens "
            "before the limit the penalty begins, from 1 to max_length."
        )

    def shaped(rollout: Rollout) -> Tensor:
        lengths = as_bool_mask(rollout.mask, rollout.responses).sum(-1)
        penalty = ((max_length - buffer - lengths) / buffer).clamp(-1.0, 0.0)
        return reward_fn(rollout) + penalty

    return shaped
