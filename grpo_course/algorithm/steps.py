"""The work of one epoch: collect a batch outside, improve on it inside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.deltas import compute_deltas
from grpo_course.algorithm.kl import compute_kl_penalty, kl_reward
from grpo_course.algorithm.losses import compute_loss, loss_report
from grpo_course.algorithm.rollout import Policy, Rollout
from grpo_course.algorithm.validation import require_finite


@dataclass(frozen=True)
class Batch:
    """What the inner steps need to know about one rollout; nothing here has a graph."""

    rollout: Rollout
    rewards: Tensor  # [batch trial]
    deltas: Tensor  # [batch trial]
    old_log_probs: Tensor  # [batch trial pos]
    ref_log_probs: Tensor | None = None  # [batch trial pos]
    targets: Tensor | None = None  # [batch trial pos]: what a critic should say


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
    """Outer work: sample, judge, compare; note what pi_old and pi_ref say to it."""
    rollout = policy.sample(prompts, config.num_responses)
    rewards = reward_fn(rollout)
    require_finite(f"in epoch {epoch}, rewards", rewards)
    with torch.no_grad():
        old = policy.log_probs(rollout)
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
    return Batch(rollout, rewards, deltas, old, ref, targets)


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
    """Inner work: loss, KL, one optimizer step. Returns what was seen on the way."""
    log_probs = policy.log_probs(batch.rollout)
    mask, clip = batch.rollout.mask, config.clip_range
    policy_loss = compute_loss(
        log_probs,
        batch.deltas,
        config.loss_mode,
        batch.old_log_probs,
        mask=mask,
        aggregation=config.aggregation,
        **clip,
    )
    loss, extra = add_kl(policy_loss, log_probs, batch, config, beta)
    if judge is not None:
        judge_loss, judge_record = judge.extra_loss(batch, log_probs)
        loss, extra = loss + judge_loss, extra | judge_record
    place = f"epoch {epoch}, step {step}"
    norm = take_step(optimizer, loss, place, config.max_gradient_norm)
    seen = {"loss": loss.detach(), "policy_loss": policy_loss.detach()}
    seen |= {"gradient_norm": norm}
    report = loss_report(
        log_probs, batch.deltas, batch.old_log_probs, mask=mask, **clip
    )
    return seen | extra | report


def add_kl(
    loss: Tensor,
    log_probs: Tensor,
    batch: Batch,
    config: TrainConfig,
    beta: float | Tensor,
) -> tuple[Tensor, dict]:
    """The loss with its KL penalty, if it has one, and the KL for the record."""
    if batch.ref_log_probs is None:
        return loss, {}
    kl = compute_kl_penalty(
        log_probs,
        batch.ref_log_probs,
        config.kl_estimator,
        batch.rollout.mask,
        aggregation=config.aggregation,
        old_log_probs=batch.old_log_probs,
    )
    total = loss + beta * kl if config.kl_place == "loss" else loss
    return total, {"kl": kl.detach(), "beta": torch.zeros_like(kl) + beta}


def take_step(
    optimizer: torch.optim.Optimizer,
    loss: Tensor,
    place: str,
    max_norm: float | None = None,
) -> Tensor:
    """One optimizer step; returns the gradient's norm before clipping. [] or [seed]

    The losses of several seeds are added, so none of them sees another.
    """
    if not loss.isfinite().all():
        culprit = loss[~loss.isfinite()].flatten()[0].item()
        raise ValueError(
            f"the loss is {culprit} in {place}. This step was not taken. "
            "Try a smaller learning rate."
        )
    optimizer.zero_grad()
    loss.sum().backward()
    norm = gradient_norm(optimizer, loss.ndim)
    if max_norm is not None:
        clip_gradient(optimizer, norm, max_norm)
    optimizer.step()
    return norm


def clip_gradient(
    optimizer: torch.optim.Optimizer, norm: Tensor, max_norm: float
) -> None:
    """Scale each seed's gradient down to max_norm where its norm [] or [seed] is above.

    The direction stays. Pascanu et al. 2013, arXiv 1211.5063.
    """
    scale = max_norm / norm.clamp(min=max_norm)
    for weight in (w for group in optimizer.param_groups for w in group["params"]):
        if weight.grad is not None:
            weight.grad *= scale.reshape(
                *scale.shape, *[1] * (weight.ndim - scale.ndim)
            )


def gradient_norm(optimizer: torch.optim.Optimizer, seed_axes: int) -> Tensor:
    """Length of the gradient over all weights, for each seed where there are seeds."""
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    squares = [
        w.grad.square().flatten(seed_axes).sum(-1)
        for w in weights
        if w.grad is not None
    ]
    return torch.stack(squares).sum(0).sqrt()
