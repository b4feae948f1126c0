"""One seed's policy, epoch by epoch: what a film of a run shows."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.loop import History, TrainConfig, train
from grpo_course.sort import SORT_PROMPTS, SortPolicy, make_policy, rollout_reward


def filmed(
    reward_fn: Callable, learning_rate: float, num_epochs: int = 100, prompt: int = 1
) -> tuple[list[Tensor], History]:
    """Train one seed with one inner step an epoch; what it then says of one prompt.

    -> the probabilities [pos vocab] as each epoch begins, and the history
    """
    policy, seen = make_policy(SORT_PROMPTS, (0,), init_scale=0.1), []
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=learning_rate)
    config = TrainConfig(
        num_epochs=num_epochs,
        num_steps_per_epoch=1,
        num_responses=10,
        deltas_mode="normalized_rewards",
    )

    def look(policy: SortPolicy) -> None:
        seen.append(policy.model(SORT_PROMPTS)[0, prompt].softmax(-1).detach())

    reward_of = rollout_reward(reward_fn)
    return seen, train(policy, SORT_PROMPTS, reward_of, optimizer, config, look)
