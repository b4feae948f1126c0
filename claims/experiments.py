"""Runs that the claims of several notebooks are made of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from claims.claim import Setting
from grpo_course.sort import SORT_PROMPTS, run_policy_gradient, sort_distance_reward

PROMPT_SETS = (SORT_PROMPTS, torch.tensor([[4, 1, 0], [2, 4, 3], [0, 3, 1]]))


def sort_after(
    setting: Setting,
    measure: str = "sorted_probability",
    num_epochs: int = 100,
    learning_rate: float = 1e-3,
    reward_fn: Callable = sort_distance_reward,
    init_scale: float = 0.1,
    prompt_sets: Sequence[Tensor] = PROMPT_SETS,
    **knobs,
) -> Tensor:
    """What a sort policy has reached after training. -> [seed]"""
    run = run_policy_gradient(
        num_epochs=max(1, round(num_epochs * setting.length)),
        learning_rate=learning_rate * setting.rate,
        prompts=prompt_sets[setting.prompts],
        seeds=setting.seeds,
        reward_fn=reward_fn,
        init_scale=init_scale,
        **knobs,
    )
    return run.final(measure)


def loss_of(better: Callable, worse: Callable, setting: Setting) -> Tensor:
    """What is lost by the worse of two arms. -> [seed]"""
    return better(setting) - worse(setting)


def mean_of(arms: Sequence[Callable], setting: Setting) -> Tensor:
    """The mean over several arms. -> [seed]"""
    return torch.stack([arm(setting) for arm in arms]).mean(dim=0)


def repeated(arm: Callable, runs: int, setting: Setting) -> Tensor:
    """An arm of which each seed is the mean of several runs: for small effects."""
    first, count = setting.seeds.start, len(setting.seeds)
    many = replace(setting, seeds=range(first, first + runs * count))
    return torch.as_tensor(arm(many)).view(count, runs).mean(dim=-1)


one_step = partial(
    sort_after, num_steps_per_epoch=1, learning_rate=0.01, loss_mode="naive"
)
