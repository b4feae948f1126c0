"""The work of one epoch: collect a batch outside, improve on it inside."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from grpo_course.algorithm.accumulation import join, split
from grpo_course.algorithm.batch import Batch
from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.deltas import compute_deltas
from grpo_course.algorithm.gradient import require_finite_loss, take_step
from grpo_course.algorithm.kl import compute_kl_penalty, kl_reward
from grpo_course.algorithm.lengths import drop_truncated
from grpo_course.algorithm.losses import compute_loss, loss_report
from grpo_course.algorithm.mismatch import correct_deltas
from grpo_course.algorithm.resampling import sample_groups
from grpo_course.algorithm.rollout import Policy, Rollout
from grpo_course.algorithm.validation import require_finite


class Judge(Protocol):
    """An actor's critic, if it has one: it makes the deltas and learns beside it.

    Without a judge, the group is the judge: deltas come from `compute_deltas`.
    """

    def compare(
        self,
        rollout: Rollout,
        rewards: Tensor,
        old: Tensor,
        ref: Tensor | None,
        beta: float | Tensor,
    ) -> tuple[Tensor, Tensor | None]:
        """Deltas, [batch trial] or [batch trial pos], and the critic's targets.

        beta is what a nat of KL costs in the reward: 0 where the KL is in the loss.
        """

    def extra_loss(self, batch: Batch, log_probs: Tensor) -> tuple[Tensor, dict]:
        """What is added to the policy loss, and what to record of it."""


def collect(
    policy: Policy,
    prompts: Tensor,
    reward_fn: Callable[[Rollout], Tensor],
    config: TrainConfig,
    *,
    ref_policy: Policy | None = None,
    beta: float | Tensor = 0.0,
    epoch: int = 0,
    judge: Judge | None = None,
) -> Batch:
    """Outer work: sample, judge, compare; note what pi_old and pi_ref say to it.

    int [batch pos] -> a batch of [... batch trial] and [... batch trial pos].
    """
    counts = config.num_responses, config.num_resamples
    rollout, rewards = sample_groups(policy, prompts, reward_fn, *counts)
    require_finite(f"in epoch {epoch}, rewards", rewards)
    if config.mask_truncated:
        rollout = drop_truncated(rollout)
    with torch.no_grad():
        old = old_scores(policy, rollout, config)
        ref = ref_policy.log_probs(rollout) if ref_policy else None
    in_reward = ref is not None and config.kl_place == "reward"
    if judge is not None:
        paid = beta if in_reward else 0.0
        deltas, targets = judge.compare(rollout, rewards, old, ref, paid)
    else:
        judged = rewards
        if in_reward:
            judged = kl_reward(rewards, old, ref, beta, rollout.mask)
        deltas, targets = compute_deltas(judged, config.deltas_mode), None
    if config.sampler_cap is not None:
        deltas = correct_deltas(deltas, rollout, old, config.sampler_cap)
    return Batch(rollout, rewards, deltas, old, ref, targets)


def old_scores(policy: Policy, rollout: Rollout, config: TrainConfig) -> Tensor | None:
    """What pi_old says of its samples, from where the config wants it.

    -> [... batch trial pos], or None where the first step will tell.
    """
    if config.old_log_probs_from == "first_step":
        return None
    if config.old_log_probs_from == "sampler":
        if rollout.sampled_log_probs is None:
            raise ValueError(
                "old_log_probs_from='sampler', but this policy's rollouts have no "
                "sampled_log_probs. Choose 'policy': one more forward pass."
            )
        return rollout.sampled_log_probs
    return policy.log_probs(rollout)


def improve(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    config: TrainConfig,
    *,
    beta: float | Tensor = 0.0,
    epoch: int = 0,
    step: int = 0,
    judge: Judge | None = None,
) -> dict:
    """Inner work: loss, gradient, one optimizer step. Returns what was seen on the way.

    Each value of the record is [], or [seed] where seeds train together. Their losses
    are added, so none of them sees another.
    """
    optimizer.zero_grad()
    parts, seen = split(batch, config), []  # one part, unless memory is short
    for part in parts:
        loss, record = batch_loss(policy, part.batch, config, beta, judge)
        require_finite_loss(loss, f"epoch {epoch}, step {step}")
        (part.weight * loss).sum().backward()
        seen.append(record)
    seed_axes = batch.rewards.ndim - 2  # 1 where seeds train together
    norm = take_step(optimizer, seed_axes, config.max_gradient_norm)
    return {"gradient_norm": norm} | join(parts, seen)


def batch_loss(
    policy: Policy,
    batch: Batch,
    config: TrainConfig,
    beta: float | Tensor = 0.0,
    judge: Judge | None = None,
) -> tuple[Tensor, dict]:
    """The loss of a batch with all that is added to it, and what to record of it.

    -> [...], a scalar without leading axes, and a dict of the same.
    """
    log_probs = policy.log_probs(batch.rollout)
    if batch.old_log_probs is None:  # the first step: pi is still pi_old
        batch = replace(batch, old_log_probs=log_probs.detach())
    old, mask = batch.old_log_probs, batch.rollout.mask
    knobs = config.ratio_settings | {"dual_clip": config.dual_clip}
    policy_loss = compute_loss(
        log_probs,
        batch.deltas,
        config.loss_mode,
        old,
        mask=mask,
        aggregation=config.aggregation,
        max_length=config.max_length,
        **knobs,
    )
    loss, extra = add_kl(policy_loss, log_probs, batch, config, beta)
    if judge is not None:
        judge_loss, judge_record = judge.extra_loss(batch, log_probs)
        loss, extra = loss + judge_loss, extra | judge_record
    seen = {"loss": loss.detach(), "policy_loss": policy_loss.detach()}
    report = loss_report(
        log_probs, batch.deltas, old, mode=config.loss_mode, mask=mask, **knobs
    )
    return loss, seen | extra | report


def add_kl(
    loss: Tensor,
    log_probs: Tensor,
    batch: Batch,
    config: TrainConfig,
    beta: float | Tensor,
) -> tuple[Tensor, dict]:
    """The loss with its KL penalty, if it has one, and the KL for the record.

    Loss [...] and log_probs [... batch trial pos] -> loss [...], dict of [...]
    """
    if batch.ref_log_probs is None:
        return loss, {}
    kl = compute_kl_penalty(
        log_probs,
        batch.ref_log_probs,
        config.kl_estimator,
        batch.rollout.mask,
        aggregation=config.aggregation,
        max_length=config.max_length,
        old_log_probs=batch.old_log_probs,
        ratio_level=config.ratio_level,
    )
    total = loss + beta * kl if config.kl_place == "loss" else loss
    return total, {"kl": kl.detach(), "beta": torch.zeros_like(kl) + beta}
