"""The claims of 02_policy."""

from functools import partial

import torch
from torch import Tensor

from claims.claim import Claim, Setting
from claims.experiments import PROMPT_SETS, one_step
from grpo_course.sort import (
    SortModel,
    all_responses,
    exact_expected_reward,
    exact_sorted_probability,
    sort_distance_reward,
)


def follow_exactly(setting: Setting) -> Tensor:
    """Adam along the exact gradient of the expected reward. -> [seed]"""
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
    order = torch.randperm(
        125, generator=torch.Generator().manual_seed(setting.prompts)
    )
    held_out, rest = all_responses(5, 3)[order].split([25, 100])
    return one_step(
        setting,
        measure="held_out_probability",
        prompt_sets=[rest[:count]] * 2,
        held_out=held_out,
        num_responses=num_responses,
        num_epochs=200,
        deltas_mode="centered_rewards",
    )


CLAIMS = (
    Claim(
        "02.noise",
        "The exact gradient sorts nearly always, so it is the noise that stops the "
        "seeds.",
        follow_exactly,
        partial(one_step, deltas_mode="rewards"),
    ),
    Claim(
        "02.start",
        "Initial entropy decides what can be learned.",
        partial(one_step, deltas_mode="centered_rewards"),
        partial(one_step, deltas_mode="centered_rewards", init_scale=1.0),
    ),
    Claim(
        "02.prompts",
        "Training on a hundred prompts teaches sorting, even of held-out ones; "
        "training on three, with as many responses, teaches only those.",
        partial(unseen_after, count=100, num_responses=10),
        partial(unseen_after, count=3, num_responses=333),
        told=Setting(range(8)),
    ),
)
