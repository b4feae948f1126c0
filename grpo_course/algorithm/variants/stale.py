"""Rollouts that are some epochs old, as in a trainer that does not wait for them.

An asynchronous trainer learns while another machine still writes with older weights
(Noukhovitch et al. 2024, arXiv 2410.18252). Here one process plays both parts, and
the lag is a number.
"""

import copy
from collections import deque
from dataclasses import replace

import torch
from torch import Tensor

from grpo_course.algorithm.rollout import Policy, Rollout, require_policy
from grpo_course.algorithm.validation import require_at_least
from grpo_course.algorithm.variants.reference import weights


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
