"""What 02_policy claims."""

from functools import partial

import torch
from torch import Generator, Tensor

from claims.runner import BEST, ONE_STEP, PROMPT_SETS, Claim, Setting, sort_after
from grpo_course.formulas import compute_loss
from grpo_course.lessons.one_prompt import PROMPT, learn_one
from grpo_course.sort import (
    SortModel,
    all_responses,
    compute_log_probs,
    compute_reward,
    exact_expected_reward,
    exact_sorted_probability,
    generate_responses,
    sort_distance_reward,
)

RAW = ONE_STEP | {"deltas_mode": "rewards"}
CENTERED = ONE_STEP | {"deltas_mode": "centered_rewards"}


def follow_exactly(setting: Setting) -> Tensor:
    """P(sorted) after Adam along the exact gradient. -> [seed]"""
    prompts = PROMPT_SETS[setting.prompts]
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=setting.seeds)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * setting.rate)
    for _ in range(round(100 * setting.length)):
        optimizer.zero_grad()
        reward = exact_expected_reward(model, prompts, sort_distance_reward)
        (-reward.mean(dim=-1)).sum().backward()  # each seed has weights of its own
        optimizer.step()
    return exact_sorted_probability(model, prompts).mean(dim=-1).detach()


def updates(
    model: SortModel,
    setting: Setting,
    rate: float,
    dice: int,
    logarithm: bool = True,
) -> Tensor:
    """Train as notebook 02 does, on plain rewards. -> P(sorted) [seed]

    Without the logarithm the probability of each response is pushed. `dice` is the
    first random seed of the draws.
    """
    prompts = PROMPT_SETS[setting.prompts]
    optimizer = torch.optim.Adam(model.parameters(), lr=rate * setting.rate)
    draws = [Generator().manual_seed(dice + seed) for seed in setting.seeds]
    for _ in range(round(100 * setting.length)):
        responses = generate_responses(prompts, model, 10, draws)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        log_probs = compute_log_probs(prompts, responses, model)
        if logarithm:
            loss = compute_loss(log_probs, rewards, "naive").sum()
        else:
            loss = -(rewards * log_probs.sum(dim=-1).exp()).mean(dim=(-2, -1)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return exact_sorted_probability(model, prompts).mean(dim=-1).detach()


def fresh(setting: Setting) -> SortModel:
    return SortModel(5, 10, 3, 3, init_scale=0.1, seeds=setting.seeds)


def pushed(setting: Setting, logarithm: bool) -> Tensor:
    """-> [seed]"""
    return updates(fresh(setting), setting, 0.01, 1000, logarithm)


def trained_again(setting: Setting, heat: float, rate: float) -> Tensor:
    """Train, divide all logits, and train once more, at another rate. -> [seed]"""
    model = fresh(setting)
    updates(model, setting, 0.01, 1000)
    with torch.no_grad():
        model.decode_weights.div_(heat)
    return updates(model, setting, rate, 5000)


def one_prompt(setting: Setting, deltas_mode: str) -> Tensor:
    """P(sorted) of the film's prompt. -> [seed]"""
    steps, rate = round(60 * setting.length), 0.03 * setting.rate
    ends = []
    for seed in setting.seeds:
        last = learn_one(steps, rate, 8, seed, deltas_mode)[-1].probs  # [pos vocab]
        ends.append(last[range(3), sorted(PROMPT)].prod())
    return torch.stack(ends)


def unseen_after(setting: Setting, count: int, num_responses: int) -> Tensor:
    """How often 25 prompts held out are sorted after training on others. -> [seed]"""
    order = torch.randperm(125, generator=Generator().manual_seed(setting.prompts))
    held_out, rest = all_responses(5, 3)[order].split([25, 100])
    prompts = {"prompt_sets": [rest[:count]] * 2, "held_out": held_out}
    budget = {"num_responses": num_responses, "num_epochs": 200}
    return sort_after(setting, "held_out_probability", **CENTERED, **prompts, **budget)


# fmt: off
CLAIMS = (
    Claim("02.noise", "The exact gradient sorts more than sampled ones on raw rewards.",
        (follow_exactly, RAW)),
    Claim("02.log",
        "Pushed with the logarithm, policies learn more than without it.",
        (partial(pushed, logarithm=True), partial(pushed, logarithm=False))),
    Claim("02.responses",
        "On raw rewards, four times as many responses sort more.",
        (RAW | {"num_responses": 40}, RAW)),
    Claim("02.uniform", "On raw rewards, a start closer to uniform sorts more.",
        (RAW | {"init_scale": 0.03}, RAW), seeds=range(128)),
    Claim("02.mean",
        "On one prompt, rewards minus the mean of the group sort more than raw ones.",
        (partial(one_prompt, deltas_mode="centered_rewards"),
         partial(one_prompt, deltas_mode="rewards")),
        not_tried={"other prompts": "the film has one prompt"}),
    Claim("02.heat",
        "Heated and trained again, stuck policies learn with smaller steps, and less "
        "with the steps that they had.",
        (partial(trained_again, heat=10.0, rate=0.003),
         partial(trained_again, heat=10.0, rate=0.01)),
        not_tried={BEST: "the rate is what is compared"}),
    Claim("02.sure",
        "Stuck policies learn with smaller steps if they are heated first, and less if "
        "they are not.",
        (partial(trained_again, heat=10.0, rate=0.003),
         partial(trained_again, heat=1.0, rate=0.003))),
    Claim("02.start", "A start with high entropy learns more than a sure one.",
        (CENTERED, CENTERED | {"init_scale": 1.0})),
    Claim("02.prompts",
        "Training on a hundred prompts sorts more unseen ones than training on three.",
        (partial(unseen_after, count=100, num_responses=10),
         partial(unseen_after, count=3, num_responses=333)), seeds=range(8)),
)
# fmt: on
