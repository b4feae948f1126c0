"""Runs that begin with a sort policy which knows something: those of 14."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from claims.claim import Setting
from grpo_course.loop import Rollout, TrainConfig, train
from grpo_course.sort import SortPolicy, make_policy

OLD = 3  # the prompts that begin below it are the old ones


def all_prompts(setting: Setting) -> Tensor:
    """Every prompt of three numbers below 5; the other set is of numbers below 4."""
    return torch.cartesian_prod(*[torch.arange(5 - setting.prompts)] * 3)


def ascending(prompts: Tensor) -> Tensor:
    return prompts.sort(-1).values


def right_places(rollout: Rollout) -> Tensor:
    """The share of places in order."""
    return (rollout.responses == ascending(rollout.prompts)[:, None]).float().mean(-1)


def solved(policy: SortPolicy, prompts: Tensor, answers: Tensor) -> Tensor:
    """The exact chance of each prompt's answer. -> float64 [seed prompt]"""
    with torch.no_grad():
        log_probs = policy.model(prompts).double().log_softmax(-1)
    wanted = answers[..., None].expand(*log_probs.shape[:-1], 1)
    return log_probs.gather(-1, wanted).squeeze(-1).sum(-1).exp()


def start(setting: Setting, steps: int, init_scale: float = 0.3) -> SortPolicy:
    """A policy for each seed, after some steps of supervised learning."""
    prompts = all_prompts(setting)
    policy = make_policy(prompts, setting.seeds, init_scale)
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.01)
    wanted = ascending(prompts)[..., None].expand(len(setting.seeds), -1, -1, 1)
    for _ in range(steps):
        loss = -policy.model(prompts).log_softmax(-1).gather(-1, wanted)
        adam.zero_grad()
        loss.mean((1, 2, 3)).sum().backward()
        adam.step()
    return policy


@cache
def trained(
    setting: Setting,
    reward_fn: Callable[[Rollout], Tensor],
    steps: int,
    init_scale: float = 0.3,
    num_epochs: int = 50,
    new_prompts_only: bool = False,
    **knobs,
) -> SortPolicy:
    """Some supervised steps, then GRPO. Claims share the runs."""
    torch.manual_seed(setting.seeds[0])  # the coin is drawn from it
    policy, prompts = start(setting, steps, init_scale), all_prompts(setting)
    if new_prompts_only:
        prompts = prompts[prompts[:, 0] >= OLD]
    settings = {"num_steps_per_epoch": 4, "num_responses": 8} | knobs
    config = TrainConfig(num_epochs=round(num_epochs * setting.length), **settings)
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.003 * setting.rate)
    train(policy, prompts, reward_fn, adam, config)
    return policy
