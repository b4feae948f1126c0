"""The claims of 05_kl."""

from functools import partial

import torch
from torch import Tensor

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.kl import exact_kl
from grpo_course.algorithm.train import train
from grpo_course.claims.claim import Claim, Setting
from grpo_course.claims.experiments import PROMPT_SETS, sort_after
from grpo_course.sorting.policy_gradient import make_policy, rollout_reward
from grpo_course.sorting.rewards import sort_distance_reward

held = partial(
    sort_after,
    num_epochs=60,
    num_steps_per_epoch=5,
    kl_penalty=1.0,
    deltas_mode="normalized_rewards",
    loss_mode="clipped",
)


def distance(setting: Setting, estimator: str) -> Tensor:
    """Nats a token between the trained policy and its start, at beta 0.3. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, init_scale=0.1)
    start = policy.model(prompts).log_softmax(dim=-1).detach()
    config = TrainConfig(
        num_epochs=round(60 * setting.length),
        num_steps_per_epoch=5,
        compute_ref_model_period=10_000,
        kl_penalty=0.3,
        kl_estimator=estimator,
    )
    adam = torch.optim.Adam(policy.model.parameters(), lr=1e-3 * setting.rate)
    train(policy, prompts, rollout_reward(sort_distance_reward), adam, config)
    kl = exact_kl(policy.model(prompts).log_softmax(dim=-1), start)
    return kl.mean(dim=(-2, -1)).detach()


CLAIMS = (
    Claim(
        "05.estimator",
        "At β = 0.1 and 0.3, k3 holds the policy much closer than k2;",
        partial(distance, estimator="k2"),
        partial(distance, estimator="k3"),
        leave_out={"each at its best rate": "farther from the start is not better"},
    ),
    Claim(
        "05.reference",
        "**A frozen reference holds back, a moving one follows**:",
        partial(held, compute_ref_model_period=10),
        partial(held, compute_ref_model_period=10_000),
    ),
)
