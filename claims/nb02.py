"""What 02_policy claims."""

from functools import partial

import torch
from torch import Generator, Tensor

from claims.runner import ONE_STEP, PROMPT_SETS, Claim, Setting, sort_after
from grpo_course.sort import (
    SortModel,
    all_responses,
    exact_expected_reward,
    exact_sorted_probability,
    sort_distance_reward,
)

CENTERED = ONE_STEP | {"deltas_mode": "centered_rewards"}


def follow_exactly(setting: Setting) -> Tensor:
    """P(sorted) after Adam along the exact gradient. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=setting.seeds)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * setting.rate)
    for _ in range(round(100 * setting.length)):
        optimizer.zero_grad()
        reward = exact_expected_reward(model, prompts, sort_distance_reward)
        (-reward.mean(dim=-1)).sum().backward()  # each seed has weights of its own
        optimizer.step()
    return exact_sorted_probability(model, prompts).mean(dim=-1).detach()


def unseen_after(setting: Setting, count: int, num_responses: int) -> Tensor:
    """How often 25 prompts held out are sorted after training on others. -> [seed]"""
    order = torch.randperm(125, generator=Generator().manual_seed(setting.prompts))
    held_out, rest = all_responses(5, 3)[order].split([25, 100])
    prompts = {"prompt_sets": [rest[:count]] * 2, "held_out": held_out}
    budget = {"num_responses": num_responses, "num_epochs": 200}
    return sort_after(setting, "held_out_probability", **CENTERED, **prompts, **budget)


# fmt: off
CLAIMS = (
    Claim("02.noise", "The exact gradient sorts more than sampled ones on raw rewards.",
        (follow_exactly, ONE_STEP | {"deltas_mode": "rewards"})),
    Claim("02.start", "A start with high entropy learns more than a sure one.",
        (CENTERED, CENTERED | {"init_scale": 1.0})),
    Claim("02.prompts",
        "Training on a hundred prompts sorts more unseen ones than training on three.",
        (partial(unseen_after, count=100, num_responses=10),
         partial(unseen_after, count=3, num_responses=333)), seeds=range(8)),
)
# fmt: on
