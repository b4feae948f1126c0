"""A sampler that differs from the scorer: weigh its tokens by how much."""

import copy
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import as_bool_mask, hide
from grpo_course.algorithm.deltas import deltas_per_token
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.ratio import compute_ratio
from grpo_course.algorithm.rollout import Batch, Policy, Rollout
from grpo_course.algorithm.sampler import Sampler
from grpo_course.algorithm.validation import (
    require_inside,
    require_log_probs,
    require_same_shape,
)


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
    require_inside("cap", cap, {"above": 0}, "; usual are 2 to 5")
    old, sampled = old_log_probs, sampled_log_probs
    require_same_shape("sampled_log_probs", sampled, "old_log_probs", old)
    mask = as_bool_mask(mask, old)
    old, sampled = hide(old, mask), hide(sampled, mask)
    require_log_probs(old_log_probs=old, sampled_log_probs=sampled)
    return compute_ratio(old, sampled).clamp(max=cap)


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
    return deltas_per_token(deltas, weights) * weights


class SamplerCorrection(Trainer):
    """Each delta is weighed by how far the sampler was from the scorer (TIS)."""

    def collect(self, prompts: Tensor) -> Batch:
        """The deltas, whoever made them, times the weights: [... batch trial pos]."""
        batch, cap = super().collect(prompts), self.config.sampler_cap
        old = batch.old_log_probs
        if cap is None or old is None:
            return batch
        deltas = correct_deltas(batch.deltas, batch.rollout, old, cap)
        return replace(batch, deltas=deltas)


class SamplingPolicy(Policy, Protocol):
    """A policy that writes as a sampler says, such as SequencePolicy."""

    sampler: Sampler


class EngineSampler:
    """A policy whose responses another sampler draws; scores are the policy's own.

    It plays an engine with today's weights that does not draw what the trainer
    scores: `engine` may have another temperature, or a top_k. Rollouts hold the
    log-probs [... batch trial pos] of the distribution really drawn from. So
    sampler_cap=2.0 weighs each token by min(pi_old / engine, 2), and None takes the
    engine for the policy. What the engine never draws, no weight brings back.
    Yao et al. 2025, fengyao.notion.site/off-policy-rl.

    `policy` has a `sampler` and notes what it said. Raises TypeError where it has
    none, ValueError where the engine writes responses of another form.
    """

    def __init__(self, policy: SamplingPolicy, engine: Sampler):
        require_same_form(policy, engine)
        self.policy, self.engine = policy, engine

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos] -> responses [... batch trial pos], drawn by the engine"""
        writer = copy.copy(self.policy)  # the same weights and random numbers
        writer.sampler = self.engine
        return writer.sample(prompts, num_responses)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> [... batch trial pos], under the policy's own sampler"""
        return self.policy.log_probs(rollout)


def require_same_form(policy: object, engine: Sampler) -> None:
    """Check that an engine ends, pads and cuts off responses as the policy does."""
    own = getattr(policy, "sampler", None)
    if not isinstance(own, Sampler):
        raise TypeError(
            f"a {type(policy).__name__} has no `sampler` that an engine could stand in "
            "for. Pass a SequencePolicy or a CausalPolicy."
        )
    if not isinstance(engine, Sampler):
        raise TypeError(
            f"engine is a {type(engine).__name__}, not a Sampler. Make it with "
            "dataclasses.replace(policy.sampler, temperature=...)."
        )
    for name in ("max_new_tokens", "eos", "pad"):
        given, needed = getattr(engine, name), getattr(own, name)
        if given != needed:
            raise ValueError(
                f"engine.{name}={given}, but the policy's sampler has {needed}, so one "
                "would not read the other's responses. Make the engine with "
                "dataclasses.replace(policy.sampler, ...)."
            )
