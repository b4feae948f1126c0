"""One prompt and one policy, step by step: small enough to be drawn whole."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from grpo_course.formulas import compute_deltas, compute_loss
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    generate_responses,
    sort_distance_reward,
)

PROMPT = (1, 0, 2)


class Moment(NamedTuple):
    """A policy [pos vocab], and the group that it samples: [trial pos], [trial]."""

    probs: Tensor
    responses: Tensor
    rewards: Tensor
    deltas: Tensor


def learn_one(
    num_steps: int,
    learning_rate: float,
    num_responses: int = 6,
    seed: int = 0,
    deltas_mode: str = "normalized_rewards",
    reward_fn: Callable = sort_distance_reward,
) -> list[Moment]:
    """Sample a group, take one step, and so on: what was seen before each step.

    The last moment is that after the last step. The steps are plain gradient descent
    (SGD), so that twice the rate is twice the step.
    """
    prompts = torch.tensor([PROMPT])
    torch.manual_seed(seed)
    model = SortModel(5, 10, len(PROMPT), len(PROMPT), init_scale=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    generator = Generator().manual_seed(seed)
    moments = []
    for _ in range(num_steps + 1):
        probs = model(prompts).softmax(dim=-1).detach()
        responses = generate_responses(prompts, model, num_responses, generator)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        moments.append(Moment(probs[0], responses[0], rewards[0], deltas[0]))
        log_probs = compute_log_probs(prompts, responses, model)
        optimizer.zero_grad()
        compute_loss(log_probs, deltas, "naive").backward()
        optimizer.step()
    return moments
