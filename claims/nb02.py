"""What 02_policy claims."""

from functools import partial

import torch
from torch import Generator, Tensor

from claims.runner import BEST, ONE_STEP, PROMPT_SETS, Claim, Setting
from grpo_course.formulas import compute_loss
from grpo_course.sort import (
    SortModel,
    compute_log_probs,
    compute_reward,
    exact_expected_reward,
    exact_sorted_probability,
    generate_responses,
    sort_distance_reward,
)

RAW = ONE_STEP | {"deltas_mode": "rewards"}


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


def updates(model: SortModel, setting: Setting, rate: float, dice: int) -> Tensor:
    """Train as notebook 02 does, on plain rewards. -> P(sorted) [seed]

    `dice` is the first random seed of the draws.
    """
    prompts = PROMPT_SETS[setting.prompts]
    optimizer = torch.optim.Adam(model.parameters(), lr=rate * setting.rate)
    draws = [Generator().manual_seed(dice + seed) for seed in setting.seeds]
    for _ in range(round(100 * setting.length)):
        responses = generate_responses(prompts, model, 10, draws)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        log_probs = compute_log_probs(prompts, responses, model)
        optimizer.zero_grad()
        compute_loss(log_probs, rewards, "naive").sum().backward()
        optimizer.step()
    return exact_sorted_probability(model, prompts).mean(dim=-1).detach()


def trained_again(setting: Setting, heat: float, rate: float) -> Tensor:
    """Train, divide all logits, and train once more, at another rate. -> [seed]"""
    model = SortModel(5, 10, 3, 3, init_scale=0.1, seeds=setting.seeds)
    updates(model, setting, 0.01, 1000)
    with torch.no_grad():
        model.decode_weights.div_(heat)
    return updates(model, setting, rate, 5000)


# fmt: off
CLAIMS = (
    Claim("02.noise", "The exact gradient sorts more than sampled ones on raw rewards.",
        (follow_exactly, RAW), seeds=range(256)),
    Claim("02.time",
        "On raw rewards, three times as many epochs sort no more.",
        (RAW | {"num_epochs": 300}, RAW), within=0.05, seeds=range(256)),
    Claim("02.responses",
        "On raw rewards, four times as many responses sort more.",
        (RAW | {"num_responses": 40}, RAW), seeds=range(256)),
    Claim("02.steps",
        "On raw rewards, steps a third as long sort more.",
        (RAW | {"learning_rate": 0.003}, RAW), seeds=range(256),
        not_tried={BEST: "the rate is what is compared"}),
    Claim("02.start",
        "On raw rewards, a start with smaller weights sorts a little more.",
        (RAW | {"init_scale": 0.03}, RAW), seeds=range(256)),
    Claim("02.again",
        "Heated and trained again with the steps that they had, policies sort more.",
        (partial(trained_again, heat=10.0, rate=0.01),
         partial(trained_again, heat=1.0, rate=0.01)), seeds=range(256)),
    Claim("02.heat",
        "Heated and trained again, stuck policies learn with smaller steps, and less "
        "with the steps that they had.",
        (partial(trained_again, heat=10.0, rate=0.003),
         partial(trained_again, heat=10.0, rate=0.01)), seeds=range(256),
        not_tried={BEST: "the rate is what is compared"}),
)
# fmt: on
