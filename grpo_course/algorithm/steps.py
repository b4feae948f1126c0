"""The work of one epoch: collect a batch outside, improve on it inside."""

from collections.abc import Callable
from dataclasses import dataclass

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
    ref_log_probs: Tensor | None  # [batch trial pos]


def collect(
    policy: Policy,
    prompts: Tensor,
    reward_fn: Callable[[Rollout], Tensor],
    config: TrainConfig,
    *,
    ref_policy: Policy | None = None,
    beta: float | Tensor = 0.0,
    epoch: int = 0,
) -> Batch:
    """Outer work: sample, judge, compare; note what pi_old and pi_ref say to it."""
    rollout = policy.sample(prompts, config.num_responses)
    rewards = reward_fn(rollout)
    require_finite(f"in epoch {epoch}, rewards", rewards)
    with torch.no_grad():
        old = policy.log_probs(rollout)
        ref = ref_policy.log_probs(rollout) if ref_policy else None
    judged = rewards
    if ref is not None and config.kl_place == "reward":
        judged = kl_reward(rewards, old, ref, beta, rollout.mask)
    deltas = compute_deltas(judged, config.deltas_mode)
    return Batch(rollout, rewards, deltas, old, ref)


def improve(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    config: TrainConfig,
    *,
    beta: float | Tensor = 0.0,
    epoch: int = 0,
    step: int = 0,
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
    loss, kl = add_kl(policy_loss, log_probs, batch, config, beta)
    norm = take_step(optimizer, loss, f"epoch {epoch}, step {step}")
    seen = {
        "loss": loss.detach(),
        "policy_loss": policy_loss.detach(),
        "gradient_norm": norm,
    }
    report = loss_report(
        log_probs, batch.deltas, batch.old_log_probs, mask=mask, **clip
    )
    return seen | kl | report


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


def take_step(optimizer: torch.optim.Optimizer, loss: Tensor, place: str) -> Tensor:
    """One optimizer step; returns the gradient's norm. [] or [seed]

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
    optimizer.step()
    return norm


def gradient_norm(optimizer: torch.optim.Optimizer, seed_axes: int) -> Tensor:
    """Length of the gradient over all weights, for each seed where there are seeds."""
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    squares = [
        w.grad.square().flatten(seed_axes).sum(-1)
        for w in weights
        if w.grad is not None
    ]
    return torch.stack(squares).sum(0).sqrt()
