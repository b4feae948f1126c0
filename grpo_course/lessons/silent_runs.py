"""Five short runs whose loss says next to nothing, each with another cause."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from grpo_course.loop import Batch, History, TrainConfig, Trainer, train
from grpo_course.sort import (
    SORT_PROMPTS,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)


def run_of(letter: str) -> History:
    """Run A, B, C, D or E."""
    runs = {
        "A": lambda: short_run(WrongSign),
        "B": lambda: short_run(learning_rate=0.0),
        "C": lambda: short_run(),
        "D": lambda: short_run(reward_fn=nothing_found),
        "E": lambda: short_run(NotedAnew),
    }
    return runs[letter]()


def short_run(
    kind: type[Trainer] = Trainer,
    reward_fn: Callable = sort_distance_reward,
    learning_rate: float = 3e-3,
) -> History:
    """20 epochs of 4 inner steps, 16 seeds; healthy unless told otherwise."""
    policy = make_policy(SORT_PROMPTS, seeds=range(16), init_scale=0.1)
    config = TrainConfig(num_epochs=20, num_steps_per_epoch=4)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=learning_rate)
    reward = rollout_reward(reward_fn)
    return train(policy, SORT_PROMPTS, reward, optimizer, config, kind=kind)


class WrongSign(Trainer):
    """The better response of a group gets the lower delta."""

    def collect(self, prompts: Tensor) -> Batch:
        batch = super().collect(prompts)
        return replace(batch, deltas=-batch.deltas)


class NotedAnew(Trainer):
    """Each inner step takes its own log-probabilities for the old ones."""

    def loss(self, batch: Batch) -> tuple[Tensor, dict]:
        return super().loss(replace(batch, old_log_probs=None))


def nothing_found(prompt: list, response: list) -> float:
    """A reward that never finds the answer in a response."""
    return 0.0
