"""What 08_ppo_bridge claims."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import BEST, PROMPT_SETS, Claim, Setting
from grpo_course.lessons.preferences import (
    climb,
    dpo,
    draw_pairs,
    learn_reward,
    warm_start,
)
from grpo_course.loop import Rollout, train
from grpo_course.ppo import PPO, Critic, PPOConfig
from grpo_course.sort import (
    exact_entropy,
    exact_expected_reward,
    exact_sorted_probability,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)


def learned(
    setting: Setting,
    critic: bool = True,
    num_epochs: int = 50,
    critic_rate: float = 0.01,
    init_scale: float = 0.1,
    centered: bool = False,
    **knobs,
) -> Tensor:
    """P(sorted) of PPO with a critic, or of the same loop without. -> [seed]"""
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
    length = round(num_epochs * setting.length)
    config = PPOConfig(num_epochs=length, **{"num_steps_per_epoch": 10} | knobs)
    given = rollout_reward(sort_distance_reward)

    def reward(rollout: Rollout) -> Tensor:
        rewards = given(rollout)  # [seed batch trial]
        mean = rewards.mean(dim=(-2, -1), keepdim=True)
        return rewards - mean if centered else rewards

    train(policy, prompts, reward, optimizer, config, **kind)
    return exact_sorted_probability(policy.model, prompts).mean(dim=-1).detach()


def true_reward(
    setting: Setting, num_pairs=40, beta=0.0, warm_epochs=10, fit_steps=200
) -> Tensor:
    """What a policy is worth after it climbed a learned reward. -> [seed]"""
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    pairs = draw_pairs(num_pairs, seeds, prompts)
    model, _ = learn_reward(pairs, seeds, prompts, fit_steps)
    policy = warm_start(seeds, prompts, warm_epochs)
    epochs, rate = round(60 * setting.length), 0.001 * setting.rate
    return climb(model, policy, prompts, beta, epochs, rate).final("true")


def by_dpo(setting: Setting, num_pairs: int = 0, beta: float = 0.0) -> Tensor:
    """What a policy is worth after DPO on such pairs; the start without any. [seed]"""
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    policy = warm_start(seeds, prompts)
    if num_pairs:
        steps, rate = round(200 * setting.length), 0.001 * setting.rate
        pairs = draw_pairs(num_pairs, seeds, prompts)
        dpo(pairs, policy, prompts, beta, steps, rate)
    worth = exact_expected_reward(policy.model, prompts, sort_distance_reward)
    return worth.mean(-1).detach()


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


poor_start = partial(true_reward, num_pairs=640, fit_steps=30, warm_epochs=3)
start = by_dpo
FromStart = partial(Claim, not_tried={BEST: "one arm is the start, and has no rate"})
# fmt: off
CLAIMS = (
    Claim("08.groups", "With groups of ten, a critic makes no measurable difference.",
        (learned, partial(learned, critic=False)), within=0.15),
    Claim("08.centered", "At a large rate PPO learns more from centered rewards.",
        (partial(fast, centered=True), partial(fast, centered=False))),
    Claim("08.lambda",
        "λ = 0 believes a critic that knows nothing, and learns less than λ = 1.",
        (partial(learned, lam=1.0), partial(learned, lam=0.0))),
    Claim("08.alone", "With single responses, a learned value beats raw rewards.",
        (partial(alone, whiten_deltas=False), raw)),
    Claim("08.whitened", "With single responses, whitening beats raw rewards too.",
        (partial(alone, critic_rate=0.0), raw)),
    FromStart("08.judge", "Climbing a reward learned from few pairs costs true reward.",
        (start, true_reward)),
    Claim("08.pairs", "A reward learned from more pairs leaves more true reward.",
        (partial(true_reward, num_pairs=160), partial(true_reward, num_pairs=10))),
    FromStart("08.low_beta", "A small β, 0.1, does not prevent the cost of climbing.",
        (start, partial(true_reward, beta=0.1))),
    Claim("08.beta", "β = 1 keeps more true reward than none.",
        (partial(true_reward, beta=1.0), true_reward)),
    Claim("08.price",
        "Where the learned reward is good and the start poor, β = 1 gives up gain.",
        (poor_start, partial(poor_start, beta=1.0))),
    FromStart("08.dpo", "DPO on few pairs costs true reward too, at β = 0.1.",
        (start, partial(by_dpo, num_pairs=40, beta=0.1))),
)
# fmt: on
