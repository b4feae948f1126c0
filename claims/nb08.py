"""What 08_ppo_bridge claims."""

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
    centered: bool = False,
    bonus: tuple[float, ...] = (0.0, 0.0, 0.0),
    exact: bool = False,
    **knobs,
) -> Tensor:
    """P(sorted) of PPO with a critic, or of the same loop without. -> [seed]

    Each prompt pays its `bonus` to every response. With `centered`, the mean of the
    batch is taken off the rewards; with `exact`, exact values stand in the critic's
    place.
    """
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, 0.1)
    groups: list[dict] = [{"params": policy.model.parameters()}]
    kind: dict[str, Any] = {}
    if critic:
        values = Critic(5, 10, 3, 3, setting.seeds)
        groups += [{"params": values.parameters(), "lr": 0.01 * setting.rate}]
        kind = {"kind": PPO, "critic": values}
        kind["entropy"] = lambda rollout: exact_entropy(policy.model, rollout.prompts)
    optimizer = torch.optim.Adam(groups, lr=0.001 * setting.rate)
    if exact:
        kind["critic"] = partial(exact_values, policy.model)
    length = round(num_epochs * setting.length)
    config = PPOConfig(num_epochs=length, **{"num_steps_per_epoch": 10} | knobs)
    earned = rollout_reward(sort_distance_reward)

    def reward(rollout: Rollout) -> Tensor:
        rewards = earned(rollout) + torch.tensor(bonus)[:, None]  # [seed batch trial]
        mean = rewards.mean(dim=(-2, -1), keepdim=True)
        return rewards - mean if centered else rewards

    train(policy, prompts, reward, optimizer, config, **kind)
    return exact_sorted_probability(policy.model, prompts).mean(dim=-1).detach()


plain = partial(learned, lam=1.0, whiten_deltas=False)  # the reader's PPO
single: dict[str, Any] = {
    "num_epochs": 300,
    "num_steps_per_epoch": 2,
    "num_responses": 1,
    "deltas_mode": "rewards",
}
by_critic = partial(plain, **single)
raw = partial(learned, critic=False, **single)
by_batch = partial(raw, centered=True)
uneven: dict[str, Any] = {"bonus": (0.0, 2.0, 4.0)}

# fmt: off
CLAIMS = (
    Claim("08.groups", "With groups of ten, a critic makes no measurable difference.",
        (plain, partial(learned, critic=False)), within=0.15),
    Claim("08.alone", "With single responses, a learned value beats raw rewards.",
        (by_critic, raw)),
    Claim("08.mean", "With single responses, the batch mean does as well as a critic.",
        (by_critic, by_batch), within=0.15),
    Claim("08.bonus", "Where prompts pay unevenly, a critic beats the batch mean.",
        (partial(by_critic, **uneven), partial(by_batch, **uneven))),
    Claim("08.lambda", "With a learned critic, λ = 0 learns less than λ = 1.",
        (plain, partial(plain, lam=0.0))),
    Claim("08.exact", "With exact values in the critic's place, λ = 0 learns more.",
        (partial(plain, lam=0.0, exact=True), partial(plain, lam=0.0))),
)
# fmt: on
