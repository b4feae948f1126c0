"""The claims of 14_exact_answers about runs. The exact ones stand in nb14_exact."""

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.kl import exact_kl
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.train import train
from grpo_course.claims.claim import BEST, Claim, Setting
from grpo_course.claims.experiments import PROMPT_SETS
from grpo_course.sorting.exact import exact_expected_reward
from grpo_course.sorting.policy_gradient import SortPolicy, make_policy, rollout_reward
from grpo_course.sorting.rewards import sort_inclusion_ordering_reward

OLD = 3  # prompts that begin below it are not trained on for the second skill
hole = rollout_reward(sort_inclusion_ordering_reward)


def all_prompts(setting: Setting) -> Tensor:
    """Every prompt of three numbers below 5; the other set is of numbers below 4."""
    return torch.cartesian_prod(*[torch.arange(5 - setting.prompts)] * 3)


def ascending(prompts: Tensor) -> Tensor:
    return prompts.sort(-1).values


def descending(prompts: Tensor) -> Tensor:
    return prompts.sort(-1, descending=True).values


def right_places(rollout: Rollout) -> Tensor:
    """The share of places in order."""
    return (rollout.responses == ascending(rollout.prompts)[:, None]).float().mean(-1)


def right_answer(rollout: Rollout) -> Tensor:
    return (right_places(rollout) == 1).float()


def second_skill(rollout: Rollout) -> Tensor:
    """A point for each place in descending order; none for an old prompt."""
    right = rollout.responses == descending(rollout.prompts)[:, None]
    return right.float().sum(-1) * (rollout.prompts[:, :1] >= OLD)


def coin(rollout: Rollout) -> Tensor:
    return (torch.rand(rollout.responses.shape[:-1]) < 0.5).float()


def majority(rollout: Rollout) -> Tensor:
    """1 for the answer that its group gives most often (several in a tie)."""
    one, other = rollout.responses[..., :, None, :], rollout.responses[..., None, :, :]
    same = (one == other).all(-1).sum(-1)
    return (same == same.max(-1, keepdim=True).values).float()


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


# Sharpening: from 30 supervised steps (strong) or none (weak).

STRONG = {"steps": 30}
WEAK = {"steps": 0, "init_scale": 0.1}


def passed(setting: Setting, k: int, how: dict, reward_fn=None, **knobs) -> Tensor:
    """pass@k after training, or of the start where no reward is given. -> [seed]"""
    ready = trained(setting, reward_fn, **how, **knobs) if reward_fn else None
    policy = ready or start(setting, **how)
    prompts = all_prompts(setting)
    rates = solved(policy, prompts, ascending(prompts))
    return (1 - (1 - rates) ** k).mean(-1)


def most_likely(setting: Setting) -> Tensor:
    """The share of prompts whose likeliest answer is right at the start. -> [seed]"""
    prompts = all_prompts(setting)
    with torch.no_grad():
        best = start(setting, **STRONG).model(prompts).argmax(-1)
    return (best == ascending(prompts)).all(-1).double().mean(-1)


after = partial(passed, reward_fn=right_answer, num_epochs=100)


# KL terms on the three prompts of the sort task, and beta against forgetting.

TO_THE_START = {"deltas_mode": "leave_one_out", "compute_ref_model_period": 10_000}
ANCHORED = TO_THE_START | {"kl_estimator": "k2", "steps": 60}


@cache
def landed(setting: Setting, term: str, beta: float = 0.1) -> Tensor:
    """Exact KL after a run, and what reward - beta KL lacks. -> [2 seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    policy = make_policy(prompts, setting.seeds, 0.3)
    reference = policy.model(prompts).detach().log_softmax(-1)
    knobs = {"num_epochs": round(100 * setting.length), "num_steps_per_epoch": 4}
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


COVERAGE = "From a strong start GRPO raised pass@1 and lost pass@k at large $k$"
HELD = "k2 and the corrected k3 landed on the best policy for their β; k3 went farther"
KEPT = "Against a hole in the reward, β kept the skill and cost hardly any reward."
TRADED = "Against forgetting it kept the first skill by giving up the second;"
NO_BEST = {BEST: "a start is kept best by no training"}
CLAIMS = (
    Claim(
        "14.coverage",
        COVERAGE,
        partial(passed, k=300, how=STRONG),
        partial(after, k=300, how=STRONG),
        leave_out=NO_BEST,
    ),
    Claim(
        "14.weak",
        "From a weak start it led up to some hundred samples.",
        partial(after, k=100, how=WEAK),
        partial(passed, k=100, how=WEAK),
        leave_out={BEST: "one arm is the start"},
    ),
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
        "14.vote",
        "A vote raised the policy to its own most likely answer.",
        partial(passed, k=1, how=STRONG, reward_fn=majority),
        most_likely,
        within=0.05,
        leave_out={BEST: "one arm is the start"},
    ),
    Claim(
        "14.coin",
        "A coin did harm.",
        partial(passed, k=1, how=STRONG),
        partial(passed, k=1, how=STRONG, reward_fn=coin),
        leave_out=NO_BEST,
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
