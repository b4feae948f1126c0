"""A run that notes, besides the usual, why groups tie and how far pi has gone."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from grpo_course.loop import Batch, History, TrainConfig, Trainer, train
from grpo_course.sort import (
    SORT_PROMPTS,
    SortPolicy,
    make_policy,
    rollout_reward,
    sort_distance_reward,
    watch_exactly,
)

GRPO: dict[str, Any] = {
    "num_steps_per_epoch": 10,
    "num_responses": 10,
    "deltas_mode": "normalized_rewards",
    "loss_mode": "clipped",
}


class TieCounter(Trainer):
    """Notes which share of the groups is tied because all are right, and which not."""

    def collect(self, prompts: Tensor) -> Batch:
        batch = super().collect(prompts)
        best, worst = batch.rewards.amax(dim=-1), batch.rewards.amin(dim=-1)
        full = prompts.shape[-1]  # points: one for each number in its place
        shares = {
            "tied_right": worst == full,
            "tied_wrong": best.eq(worst) & (best < full),
        }
        self.ties = {kind: share.float().mean(dim=-1) for kind, share in shares.items()}
        return batch

    def improve(self, batch: Batch, step: int = 0) -> dict:
        return super().improve(batch, step) | self.ties


def kl_from(first: SortPolicy) -> Callable[[SortPolicy], dict]:
    """What to note of a policy: its exact KL to `first` as it is now, nats a token."""

    @torch.no_grad()
    def look(policy: SortPolicy) -> dict:
        now = policy.model(SORT_PROMPTS).log_softmax(dim=-1)  # [seed batch pos vocab]
        kl = (now.exp() * (now - start)).sum(dim=-1)
        return {"kl_to_first": kl.mean(dim=(-2, -1))}

    start = first.model(SORT_PROMPTS).detach().log_softmax(dim=-1)
    return look


def run_watched(
    num_epochs: int, seeds: Sequence[int], learning_rate: float = 1e-3, **knobs: Any
) -> History:
    """GRPO on the sort task, as `run_policy_gradient` runs it from a start of 0.1.

    Its records also hold tied_right, tied_wrong and kl_to_first, each [seed].
    """
    policy = make_policy(SORT_PROMPTS, seeds, init_scale=0.1)
    exact = watch_exactly(SORT_PROMPTS, sort_distance_reward)
    gone = kl_from(policy)

    def look(policy: SortPolicy) -> dict:
        return exact(policy) | gone(policy)

    optimizer = torch.optim.Adam(policy.model.parameters(), lr=learning_rate)
    config = TrainConfig(num_epochs=num_epochs, **GRPO | knobs)
    reward = rollout_reward(sort_distance_reward)
    parts = (policy, SORT_PROMPTS, reward, optimizer, config)
    history = train(*parts, look, kind=TieCounter)
    history.records.append({"epoch": num_epochs} | look(policy))
    return history
