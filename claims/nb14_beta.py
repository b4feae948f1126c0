"""The claims of 14_exact_answers on beta: where it lands, and what it keeps."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from claims.after_start import (
    OLD,
    all_prompts,
    ascending,
    right_places,
    solved,
    trained,
)
from claims.claim import BEST, Claim, Setting
from claims.experiments import PROMPT_SETS
from grpo_course.formulas import exact_kl
from grpo_course.loop import Rollout, TrainConfig, train
from grpo_course.sort import (
    exact_expected_reward,
    make_policy,
    rollout_reward,
    sort_inclusion_ordering_reward,
)

TO_THE_START: dict[str, Any] = {
    "deltas_mode": "leave_one_out",
    "compute_ref_model_period": 10_000,
}
ANCHORED = TO_THE_START | {"kl_estimator": "k2", "steps": 60}
hole = rollout_reward(sort_inclusion_ordering_reward)


def descending(prompts: Tensor) -> Tensor:
    return prompts.sort(-1, descending=True).values


def second_skill(rollout: Rollout) -> Tensor:
    """A point for each place in descending order; none for an old prompt."""
    right = rollout.responses == descending(rollout.prompts)[:, None]
    return right.float().sum(-1) * (rollout.prompts[:, :1] >= OLD)


@cache
def landed(setting: Setting, term: str, beta: float = 0.1) -> Tensor:
    """Exact KL after a run, and what reward - beta KL lacks. -> [2 seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, 0.3)
    reference = policy.model(prompts).detach().log_softmax(-1)
    knobs: dict[str, Any] = {
        "num_epochs": round(100 * setting.length),
        "num_steps_per_epoch": 4,
    }
    knobs |= {"num_responses": 16, "kl_penalty": beta, "kl_estimator": term}
    adam = torch.optim.Adam(policy.model.parameters(), lr=0.003 * setting.rate)
    train(policy, prompts, right_places, adam, TrainConfig(**knobs, **TO_THE_START))
    right = one_hot(ascending(prompts), reference.shape[-1]) / 3
    best = (reference + right / beta).log_softmax(-1)

    def reward_and_kl(log_probs: Tensor) -> tuple[Tensor, Tensor]:
        kl = exact_kl(log_probs, reference).sum(-1).mean(-1)
        return (log_probs.exp() * right).sum((-2, -1)).mean(-1), kl

    with torch.no_grad():
        paid, kl = reward_and_kl(policy.model(prompts).log_softmax(-1))
        most, price = reward_and_kl(best)
    return torch.stack([kl, most - beta * price - (paid - beta * kl)])


def went(setting: Setting, term: str) -> Tensor:
    return landed(setting, term)[0]


def falls_short(setting: Setting, term: str) -> Tensor:
    return landed(setting, term)[1]


def sorts(setting: Setting, reward_fn: Callable, beta: float, **knobs) -> Tensor:
    """P(sorted) on the prompts that a second skill leaves alone. -> [seed]"""
    policy = trained(setting, reward_fn, kl_penalty=beta, **ANCHORED, **knobs)
    prompts = all_prompts(setting)
    if reward_fn is second_skill:
        prompts = prompts[prompts[:, 0] < OLD]
    return solved(policy, prompts, ascending(prompts)).mean(-1)


def is_paid(setting: Setting, beta: float) -> Tensor:
    """The exact share of the points that the reward with a hole gives. -> [seed]"""
    policy = trained(setting, hole, kl_penalty=beta, **ANCHORED)
    prompts = all_prompts(setting)
    with torch.no_grad():
        points = exact_expected_reward(
            policy.model, prompts, sort_inclusion_ordering_reward
        )
    return points.mean(-1) / 5


def descends(setting: Setting, beta: float) -> Tensor:
    """P(descending) on the prompts of the second skill. -> [seed]"""
    policy = trained(
        setting, second_skill, kl_penalty=beta, new_prompts_only=True, **ANCHORED
    )
    prompts = all_prompts(setting)
    prompts = prompts[prompts[:, 0] >= OLD]
    return solved(policy, prompts, descending(prompts)).mean(-1)


HELD = "With independent places, k2 and the corrected k3 landed on the best policy for "
HELD += "their β; k3 went farther"
KEPT = "Against a hole in the reward, β kept the skill and cost hardly any reward."
TRADED = "Against forgetting it kept the first skill by giving up the second;"
NO_BEST = {BEST: "a start is kept best by no training"}
CLAIMS = (
    Claim(
        "14.farther",
        HELD,
        partial(went, term="k3"),
        partial(went, term="k2"),
        leave_out={BEST: "farther is not better"},
    ),
    Claim(
        "14.landed",
        HELD,
        partial(falls_short, term="k2"),
        lambda setting: 0.0,
        within=0.05,
        leave_out={BEST: "falling short is not better"},
    ),
    Claim(
        "14.hole",
        KEPT,
        partial(sorts, reward_fn=hole, beta=0.1),
        partial(sorts, reward_fn=hole, beta=0.0),
        leave_out=NO_BEST,
    ),
    Claim(
        "14.free",
        KEPT,
        partial(is_paid, beta=0.1),
        partial(is_paid, beta=0.0),
        within=0.01,
        leave_out=NO_BEST,
    ),
    Claim(
        "14.forget",
        TRADED,
        partial(sorts, reward_fn=second_skill, beta=0.1, new_prompts_only=True),
        partial(sorts, reward_fn=second_skill, beta=0.0, new_prompts_only=True),
        leave_out=NO_BEST,
    ),
    Claim(
        "14.price",
        TRADED,
        partial(descends, beta=0.0),
        partial(descends, beta=0.1),
        leave_out=NO_BEST,
    ),
    Claim(
        "14.old",
        "a KL on the old prompts kept more.",
        partial(sorts, reward_fn=second_skill, beta=0.03),
        partial(sorts, reward_fn=second_skill, beta=0.03, new_prompts_only=True),
        leave_out=NO_BEST,
    ),
)
