"""The claims of 08_ppo_bridge."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from claims.claim import BEST, Claim, Setting
from claims.experiments import PROMPT_SETS
from grpo_course.loop import train
from grpo_course.ppo import (
    PPO,
    Critic,
    PPOConfig,
    climb,
    dpo,
    draw_pairs,
    learn_reward,
    warm_start,
)
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
    num_steps_per_epoch: int = 10,
    critic_rate: float = 0.01,
    init_scale: float = 0.1,
    **knobs,
) -> Tensor:
    """P(sorted) of PPO with a critic, or of the same loop without. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, init_scale)
    groups: list[dict] = [{"params": policy.model.parameters()}]
    kind: dict[str, Any] = {}
    if critic:
        values_of = Critic(5, 10, 3, 3, setting.seeds)
        rate = critic_rate * setting.rate
        groups.append({"params": values_of.parameters(), "lr": rate})
        entropy = lambda rollout: exact_entropy(policy.model, rollout.prompts)  # noqa: E731
        kind = {"kind": PPO, "critic": values_of, "entropy": entropy}
    optimizer = torch.optim.Adam(groups, lr=0.001 * setting.rate)
    config = PPOConfig(
        num_epochs=round(num_epochs * setting.length),
        num_steps_per_epoch=num_steps_per_epoch,
        **knobs,
    )
    reward = rollout_reward(sort_distance_reward)
    train(policy, prompts, reward, optimizer, config, **kind)
    return exact_sorted_probability(policy.model, prompts).mean(dim=-1).detach()


def true_reward(
    setting: Setting,
    num_pairs: int = 40,
    beta: float = 0.0,
    warm_epochs: int = 10,
    fit_steps: int = 200,
) -> Tensor:
    """What a policy is worth after it climbed a learned reward. -> [seed]"""
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    pairs = draw_pairs(num_pairs, seeds, prompts)
    model, _ = learn_reward(pairs, seeds, prompts, fit_steps)
    policy = warm_start(seeds, prompts, warm_epochs)
    epochs, rate = round(60 * setting.length), 0.001 * setting.rate
    return climb(model, policy, prompts, beta, epochs, rate).final("true")


def before(setting: Setting) -> Tensor:
    """What the policy was worth before that. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = warm_start(setting.seeds, prompts)
    return (
        exact_expected_reward(policy.model, prompts, sort_distance_reward)
        .mean(-1)
        .detach()
    )


def true_after_dpo(setting: Setting, num_pairs: int, beta: float) -> Tensor:
    """What a policy is worth after DPO on the same pairs. -> [seed]"""
    seeds, prompts = setting.seeds, PROMPT_SETS[setting.prompts]
    pairs, policy = draw_pairs(num_pairs, seeds, prompts), warm_start(seeds, prompts)
    steps, rate = round(200 * setting.length), 0.001 * setting.rate
    dpo(pairs, policy, prompts, beta, steps, rate)
    return (
        exact_expected_reward(policy.model, prompts, sort_distance_reward)
        .mean(-1)
        .detach()
    )


lesson = partial(true_reward, num_pairs=640, fit_steps=30, warm_epochs=3)
sure = partial(learned, init_scale=1.0)
single: dict[str, Any] = {
    "num_epochs": 300,
    "num_steps_per_epoch": 2,
    "num_responses": 1,
    "deltas_mode": "rewards",
}
alone = partial(learned, lam=1.0, **single)
NO_BEST = {BEST: "one arm is where the other begins, and has no rate"}

CLAIMS = (
    Claim(
        "08.groups",
        "With groups of ten there is no measurable gap.",
        partial(learned, critic=True),
        partial(learned, critic=False),
        within=0.15,
    ),
    Claim(
        "08.lambda",
        "$\\lambda = 0$ believes a critic that knows nothing.",
        partial(learned, critic=True, lam=1.0),
        partial(learned, critic=True, lam=0.0),
    ),
    Claim(
        "08.alone",
        "a learned value beats raw rewards",
        partial(alone, whiten_deltas=False),
        partial(learned, critic=False, **single),
    ),
    Claim(
        "08.whitened",
        "so does whitening",
        partial(alone, critic_rate=0.0),
        partial(learned, critic=False, **single),
    ),
    Claim(
        "08.entropy",
        "From a sure start, $c_H = 0.3$ raises P(sorted)",
        partial(sure, entropy_bonus=0.3),
        sure,
    ),
    Claim(
        "08.judge",
        "A policy that climbs a reward learned from few pairs pays with true reward",
        before,
        true_reward,
        leave_out=NO_BEST,
    ),
    Claim(
        "08.pairs",
        "the model is right about more new ones, and more true reward is left",
        partial(true_reward, num_pairs=160),
        partial(true_reward, num_pairs=10),
    ),
    Claim(
        "08.low_beta",
        "$\\beta = 0.1$ still costs true reward",
        before,
        partial(true_reward, beta=0.1),
        leave_out=NO_BEST,
    ),
    Claim(
        "08.beta",
        "$\\beta = 1$ keeps what the good start had",
        partial(true_reward, beta=1.0),
        true_reward,
    ),
    Claim(
        "08.price",
        "there $\\beta = 1$ gives up most of the gain",
        lesson,
        partial(lesson, beta=1.0),
    ),
    Claim(
        "08.dpo",
        "at $\\beta = 0.1$ DPO pays with true reward too",
        before,
        partial(true_after_dpo, num_pairs=40, beta=0.1),
        leave_out=NO_BEST,
    ),
)
