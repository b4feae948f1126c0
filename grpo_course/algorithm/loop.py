"""The one nested loop: sample, judge and compare outside; improve inside."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from grpo_course.algorithm.buffer import inner_batches
from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.history import History
from grpo_course.algorithm.kl import AdaptiveKLCoefficient
from grpo_course.algorithm.reference import sync_reference
from grpo_course.algorithm.rollout import Policy, Rollout, rollout_report
from grpo_course.algorithm.steps import Judge, collect, improve


@dataclass
class LoopState:
    """Where a run stands between two epochs.

    With the policy, its random numbers and the optimizer, that is all the loop knows:
    put it back, and the run goes on as if it had never stopped.
    """

    epoch: int = 0  # the next one
    history: History = field(default_factory=History)
    ref_policy: Policy | None = None
    beta: float | Tensor | None = None  # None: that of the config
    shuffle: torch.Generator | None = None  # of the minibatches; None: a new one


def train(
    policy: Policy,
    prompts: Tensor | Callable[[int], Tensor],
    reward_fn: Callable[[Rollout], Tensor],
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    observe: Callable[[Policy], dict] | None = None,
    watch: Callable[[History], None] | None = None,
    judge: Judge | None = None,
    state: LoopState | None = None,
) -> History:
    """Train a policy on groups of its own responses.

    `prompts` are the same in each epoch, or a function of the epoch that draws them.
    `reward_fn` maps a rollout to rewards [batch trial]. `observe` sees the policy
    before each epoch, and what it returns joins the record of the first step.
    `watch` sees the history after each epoch: a progress bar, a growing curve.
    A `judge` makes the deltas in place of the group, as PPO's critic does.
    `state` is where to begin, and is kept up to date for who wants to save it.
    """
    state = state or LoopState()
    start(state, config)
    for epoch in range(state.epoch, config.num_epochs):
        if config.kl_penalty and epoch % config.compute_ref_model_period == 0:
            mixture = config.ref_mixture
            state.ref_policy = sync_reference(state.ref_policy, policy, mixture)
        seen = observe(policy) if observe else {}
        now = {"epoch": epoch, "beta": state.beta, "judge": judge}
        ref = state.ref_policy
        asked = prompts if isinstance(prompts, Tensor) else prompts(epoch)
        batch = collect(policy, asked, reward_fn, config, ref_policy=ref, **now)
        sampled = rollout_report(batch.rollout, batch.rewards, batch.old_log_probs)
        for step, part in enumerate(inner_batches(batch, config, state.shuffle)):
            place = {"epoch": epoch, "step": step}
            done = improve(policy, optimizer, part, config, step=step, **now)
            state.history.records.append(place | done | sampled | seen)
            seen = {}
            if moved_too_far(done, config):
                break
        state.beta = next_beta(state, config)
        state.epoch = epoch + 1
        if watch:
            watch(state.history)
    return state.history


def start(state: LoopState, config: TrainConfig) -> None:
    """Fill in what a new run begins with."""
    if state.beta is None:
        state.beta = config.kl_penalty
    if state.shuffle is None:
        state.shuffle = torch.Generator().manual_seed(config.minibatch_seed)


def moved_too_far(record: dict, config: TrainConfig) -> bool:
    """Whether the step of this record ends its epoch: PPO's early stop.

    The KL is measured before a step, so the step that is seen above `stop_kl` was
    taken too. Seeds that train together cannot stop one by one, since an optimizer
    with momentum moves on a zero gradient too. Raises ValueError for more than one.
    """
    if config.stop_kl is None:
        return False
    kl = record["old_kl"]
    if kl.numel() > 1:
        raise ValueError(
            f"stop_kl={config.stop_kl}, but {kl.numel()} seeds train together, and "
            "each would stop at another step. Train them one by one, or use "
            "stop_kl=None."
        )
    return kl.item() > config.stop_kl


def next_beta(state: LoopState, config: TrainConfig) -> float | Tensor:
    """Beta after an epoch: moved towards the target for the KL, if there is one."""
    if config.kl_target is None:
        return state.beta
    controller = AdaptiveKLCoefficient(config.kl_penalty, config.kl_target, horizon=1)
    controller.value = state.beta
    return controller.update(state.history.records[-1]["kl"], num_samples=1)
