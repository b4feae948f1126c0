"""What 08_ppo_bridge claims."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import PROMPT_SETS, Claim, Setting
from grpo_course.loop import Rollout, train
from grpo_course.ppo import PPO, Critic, PPOConfig
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    exact_entropy,
    exact_sorted_probability,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)


@torch.no_grad()
def exact_values(model: SortModel, rollout: Rollout) -> Tensor:
    """Points so far, plus the probabilities of right numbers to come. [... pos]"""
    answers = rollout.prompts.sort(dim=-1).values[:, None]  # [batch 1 pos]
    right = answers.expand_as(rollout.responses[..., :1, :])
    points = (rollout.responses == right).float()
    chances = compute_log_probs(rollout.prompts, right, model).exp()
    return points.cumsum(-1) - points + chances.flip(-1).cumsum(-1).flip(-1)


def learned(
    setting: Setting,
    critic: bool = True,
    num_epochs: int = 50,
    alone: int = 0,
    critic_rate: float = 0.01,
    init_scale: float = 0.1,
    centered: bool = False,
    exact: bool = False,
    **knobs,
) -> Tensor:
    """P(sorted) of PPO with a critic, or of the same loop without. -> [seed]

    In `alone` epochs before, the critic learns by itself. With `exact`, exact values
    stand in its place.
    """
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, init_scale)
    groups: list[dict] = [{"params": policy.model.parameters()}]
    kind: dict[str, Any] = {}
    if critic:
        values = Critic(5, 10, 3, 3, setting.seeds)
        groups += [{"params": values.parameters(), "lr": critic_rate * setting.rate}]
        kind = {"kind": PPO, "critic": values}
        kind["entropy"] = lambda rollout: exact_entropy(policy.model, rollout.prompts)
    optimizer = torch.optim.Adam(groups, lr=0.001 * setting.rate)
    if exact:
        kind["critic"] = partial(exact_values, policy.model)
    length = round(num_epochs * setting.length)
    config = PPOConfig(num_epochs=length, **{"num_steps_per_epoch": 10} | knobs)
    given = rollout_reward(sort_distance_reward)

    def reward(rollout: Rollout) -> Tensor:
        rewards = given(rollout)  # [seed batch trial]
        mean = rewards.mean(dim=(-2, -1), keepdim=True)
        return rewards - mean if centered else rewards

    if alone:
        critics = torch.optim.Adam(groups[1:])
        first = replace(config, num_epochs=alone)
        train(policy, prompts, reward, critics, first, **kind)
    train(policy, prompts, reward, optimizer, config, **kind)
    return exact_sorted_probability(policy.model, prompts).mean(dim=-1).detach()


plain = partial(learned, whiten_deltas=False)
single: dict[str, Any] = {
    "num_epochs": 300,
    "num_steps_per_epoch": 2,
    "num_responses": 1,
    "deltas_mode": "rewards",
}
raw = partial(learned, critic=False, **single)
alone = partial(learned, lam=1.0, **single)


def fast(setting: Setting, centered: bool) -> Tensor:
    """PPO at three times its rate, with or without the mean of the batch taken off."""
    setting = replace(setting, rate=3 * setting.rate)
    return learned(setting, lam=1.0, whiten_deltas=False, centered=centered)


# fmt: off
CLAIMS = (
    Claim("08.groups", "With groups of ten, a critic makes no measurable difference.",
        (learned, partial(learned, critic=False)), within=0.15),
    Claim("08.centered", "At a large rate PPO learns more from centered rewards.",
        (partial(fast, centered=True), partial(fast, centered=False))),
    Claim("08.lambda",
        "λ = 0 believes a critic that knows nothing, and learns less than λ = 1.",
        (partial(learned, lam=1.0), partial(learned, lam=0.0))),
    Claim("08.exact", "With exact values in the critic's place, λ = 0 learns more.",
        (partial(plain, lam=0.0, exact=True), partial(plain, lam=0.0))),
    Claim("08.first", "With λ = 0 it helps if the critic learns alone at first.",
        (partial(plain, lam=0.0, alone=30), partial(plain, lam=0.0))),
    Claim("08.critic_rate", "With λ = 0 a critic ten times as fast makes it worse.",
        (partial(plain, lam=0.0), partial(plain, lam=0.0, critic_rate=0.1))),
    Claim("08.alone", "With single responses, a learned value beats raw rewards.",
        (partial(alone, whiten_deltas=False), raw)),
    Claim("08.whitened", "With single responses, whitening beats raw rewards too.",
        (partial(alone, critic_rate=0.0), raw)),
)
# fmt: on
