"""The claims of 08_ppo_bridge."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from grpo_course.actor_critic.critic import Critic
from grpo_course.actor_critic.ppo import PPO, PPOConfig
from grpo_course.algorithm.train import train
from grpo_course.claims.claim import Claim, Setting
from grpo_course.claims.experiments import PROMPT_SETS
from grpo_course.sorting.exact import exact_sorted_probability
from grpo_course.sorting.policy_gradient import make_policy, rollout_reward
from grpo_course.sorting.rewards import sort_distance_reward


def learned(setting: Setting, critic: bool, num_epochs: int = 50, **knobs) -> Tensor:
    """P(sorted) of PPO with a critic, or of the same loop without. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, init_scale=0.1)
    groups: list[dict] = [{"params": policy.model.parameters()}]
    kind: dict[str, Any] = {}
    if critic:
        values_of = Critic(5, 10, 3, 3, setting.seeds)
        rate = 0.01 * setting.rate
        groups.append({"params": values_of.parameters(), "lr": rate})
        kind = {"kind": PPO, "critic": values_of}
    optimizer = torch.optim.Adam(groups, lr=0.001 * setting.rate)
    num_epochs = round(num_epochs * setting.length)
    config = PPOConfig(num_epochs=num_epochs, num_steps_per_epoch=10, **knobs)
    reward = rollout_reward(sort_distance_reward)
    train(policy, prompts, reward, optimizer, config, **kind)
    return exact_sorted_probability(policy.model, prompts).mean(dim=-1).detach()


CLAIMS = (
    Claim(
        "08.groups",
        "With groups of ten there is no measurable gap.",
        partial(learned, critic=True),
        partial(learned, critic=False),
        within=0.1,
    ),
    Claim(
        "08.lambda",
        "$\\lambda = 0$ believes a critic that knows nothing.",
        partial(learned, critic=True, lam=1.0),
        partial(learned, critic=True, lam=0.0),
    ),
)
