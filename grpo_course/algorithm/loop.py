"""The one nested loop: sample, judge and compare outside; improve inside."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.algorithm.buffer import inner_batches
from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.history import History
from grpo_course.algorithm.kl import AdaptiveKLCoefficient
from grpo_course.algorithm.rollout import Policy, Rollout, rollout_report
from grpo_course.algorithm.steps import Judge, collect, improve


def train(
    policy: Policy,
    prompts: Tensor | Callable[[int], Tensor],
    reward_fn: Callable[[Rollout], Tensor],
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    observe: Callable[[Policy], dict] | None = None,
    watch: Callable[[History], None] | None = None,
    judge: Judge | None = None,
) -> History:
    """Train a policy on groups of its own responses.

    `prompts` are the same in each epoch, or a function of the epoch that draws them.
    `reward_fn` maps a rollout to rewards [batch trial]. `observe` sees the policy
    before each epoch, and what it returns joins the record of the first step.
    `watch` sees the history after each epoch: a progress bar, a growing curve.
    A `judge` makes the deltas in place of the group, as PPO's critic does.
    """
    history, ref_policy = History(), None
    beta, controller = config.kl_penalty, make_controller(config)
    shuffle = torch.Generator().manual_seed(config.minibatch_seed)
    for epoch in range(config.num_epochs):
        if config.kl_penalty and epoch % config.compute_ref_model_period == 0:
            ref_policy = copy.deepcopy(policy)
        seen = observe(policy) if observe else {}
        now = {"epoch": epoch, "beta": beta, "judge": judge}
        asked = prompts if isinstance(prompts, Tensor) else prompts(epoch)
        batch = collect(policy, asked, reward_fn, config, ref_policy=ref_policy, **now)
        sampled = rollout_report(batch.rollout, batch.rewards, batch.old_log_probs)
        for step, part in enumerate(inner_batches(batch, config, shuffle)):
            record = {"epoch": epoch, "step": step} | sampled | seen
            record |= improve(policy, optimizer, part, config, step=step, **now)
            history.records.append(record)
            seen = {}
        if controller:
            beta = controller.update(record["kl"], num_samples=1)
        if watch:
            watch(history)
    return history


def make_controller(config: TrainConfig) -> AdaptiveKLCoefficient | None:
    """What moves beta after each epoch, if the config has a target for the KL."""
    if config.kl_target is None:
        return None
    return AdaptiveKLCoefficient(config.kl_penalty, config.kl_target, horizon=1)
