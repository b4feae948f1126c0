"""The one nested loop, for any policy that can sample and score.

From a rollout to the optimizer step on one page. What it leaves to others: the formulas
(`deltas`, `losses`, `kl`), and all that is added later, from minibatches to a moving
reference: each of `variants` replaces one method here, PPO replaces two.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.deltas import compute_deltas
from grpo_course.algorithm.gradient import require_finite_loss, take_step
from grpo_course.algorithm.history import History
from grpo_course.algorithm.kl import compute_kl_penalty
from grpo_course.algorithm.losses import compute_loss, loss_report
from grpo_course.algorithm.rollout import (
    Batch,
    Policy,
    Rollout,
    checked_log_probs,
    checked_rewards,
    require_parts,
    rollout_report,
)


class Trainer:
    """GRPO: responses in groups, deltas within a group, several steps on each rollout.

    `prompts` int [batch pos] are the same in each epoch, or a function of the epoch
    that draws them. `reward_fn` maps a rollout to rewards [batch trial]. `observe` sees
    the policy before each epoch, and what it returns joins the record of the first
    step; `watch` sees the history after each epoch. Raises TypeError for a part that is
    not what it should be.
    """

    def __init__(
        self,
        policy: Policy,
        prompts: Tensor | Callable[[int], Tensor],
        reward_fn: Callable[[Rollout], Tensor],
        optimizer: torch.optim.Optimizer,
        config: TrainConfig,
        observe: Callable[[Any], dict | None] | None = None,
        watch: Callable[[History], None] | None = None,
    ):
        require_parts(policy, prompts, reward_fn, optimizer, config)
        self.policy, self.reward_fn = policy, reward_fn
        self.prompts = prompts if callable(prompts) else lambda epoch: prompts
        self.optimizer, self.config = optimizer, config
        self.observe = observe or (lambda policy: None)
        self.watch = watch or (lambda history: None)
        # Where the run stands. A run that is to go on must know this, the policy with
        # its random numbers, and the optimizer.
        self.epoch = 0
        self.beta: float | Tensor = config.kl_penalty
        self.ref_policy: Policy | None = None
        self.shuffle = torch.Generator().manual_seed(config.minibatch_seed)
        self.history = History()

    def train(self) -> History:
        """The outer loop makes new responses, the inner one takes steps on them."""
        while self.epoch < self.config.num_epochs:
            self.renew_reference()
            seen = self.observe(self.policy) or {}
            batch = self.collect(self.prompts(self.epoch))
            sampled = rollout_report(batch)
            for step, part in enumerate(self.inner_batches(batch)):
                record = self.improve(part, step) | sampled | seen
                self.history.add(self.epoch, step, record)
                seen = {}
            self.end_epoch()
        return self.history

    # Stage 1, outer: sample, reward, compare; note what pi_old and pi_ref say.

    def renew_reference(self) -> None:
        """At times pi_ref becomes a frozen copy of pi; without a KL there is none."""
        is_time = self.epoch % self.config.compute_ref_model_period == 0
        if self.config.kl_penalty and is_time:
            self.ref_policy = copy.deepcopy(self.policy)

    def collect(self, prompts: Tensor) -> Batch:
        """int [batch pos] -> a batch of [... batch trial] and [... batch trial pos]."""
        rollout, rewards = self.sample(prompts)
        with torch.no_grad():
            old = self.old_log_probs(rollout)
            ref = self.ref_policy.log_probs(rollout) if self.ref_policy else None
        deltas = self.compare(rollout, rewards, old, ref)
        return Batch(rollout, rewards, deltas, old, ref)

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        """A group of responses to each prompt, and their rewards [... batch trial]."""
        rollout = self.policy.sample(prompts, self.config.num_responses)
        return rollout, checked_rewards(self.reward_fn, rollout, self.epoch)

    def old_log_probs(self, rollout: Rollout) -> Tensor | None:
        """What the policy says of its samples before any step: pi_old."""
        return checked_log_probs(self.policy.log_probs(rollout), rollout)

    def compare(
        self, rollout: Rollout, rewards: Tensor, old: Tensor | None, ref: Tensor | None
    ) -> Tensor:
        """Deltas [... batch trial]: each response against its group."""
        return compute_deltas(rewards, self.config.deltas_mode)

    # Stage 2, inner: loss, gradient, optimizer step, several times.

    def inner_batches(self, batch: Batch) -> Iterator[Batch]:
        """What each step of this epoch sees: all of the batch, mu times."""
        return itertools.repeat(batch, self.config.num_steps_per_epoch)

    def improve(self, batch: Batch, step: int = 0) -> dict:
        """One optimizer step; returns what was seen, each value [] or [seed]."""
        self.optimizer.zero_grad()
        record = self.backward(batch, step)
        seed_axes = batch.rewards.ndim - 2  # one where seeds train side by side
        norm = take_step(self.optimizer, seed_axes, self.config.max_gradient_norm)
        return {"gradient_norm": norm} | record

    def backward(self, batch: Batch, step: int) -> dict:
        """The gradient of the loss. Seeds are added: none of them sees another."""
        loss, record = self.loss(batch)
        require_finite_loss(loss, f"epoch {self.epoch}, step {step}")
        loss.sum().backward()
        return record

    def loss(self, batch: Batch) -> tuple[Tensor, dict]:
        """The policy loss plus beta times the KL, [...], and what to record of it."""
        config, mode = self.config, self.config.loss_mode
        log_probs, old = self.policy.log_probs(batch.rollout), batch.old_log_probs
        if old is None:  # there is one step, and pi is still pi_old
            old = log_probs.detach()
        how = {"mask": batch.rollout.mask, **config.clip}
        loss = compute_loss(log_probs, batch.deltas, mode, old, **how, **config.mean)
        total, kl = self.add_kl(loss, log_probs, old, batch)
        report = loss_report(log_probs, batch.deltas, old, mode=mode, **how)
        seen = {"loss": total.detach(), "policy_loss": loss.detach()}
        return total, seen | kl | report

    def add_kl(
        self, loss: Tensor, log_probs: Tensor, old: Tensor, batch: Batch
    ) -> tuple[Tensor, dict]:
        """The loss with its price for leaving pi_ref, and the KL for the record."""
        config, ref, mask = self.config, batch.ref_log_probs, batch.rollout.mask
        if ref is None:
            return loss, {}
        how = config.mean | {"old_log_probs": old}
        kl = compute_kl_penalty(log_probs, ref, config.kl_estimator, mask, **how)
        beta = torch.zeros_like(kl.detach()) + self.beta
        return loss + beta * kl, {"kl": kl.detach(), "beta": beta}

    def end_epoch(self) -> None:
        """Count, and let somebody look."""
        self.epoch += 1
        self.watch(self.history)
