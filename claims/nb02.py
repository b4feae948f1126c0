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


def updates(
    model: SortModel,
    setting: Setting,
    dice: int,
    num_epochs: int = 100,
    num_responses: int = 10,
    learning_rate: float = 0.01,
) -> None:
    """Train as notebook 02 does, on plain rewards; `dice` is the first random seed."""
    prompts = PROMPT_SETS[setting.prompts]
    rate = learning_rate * setting.rate
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    draws = [Generator().manual_seed(dice + seed) for seed in setting.seeds]
    for _ in range(round(num_epochs * setting.length)):
        responses = generate_responses(prompts, model, num_responses, draws)
        rewards = compute_reward(prompts, responses, sort_distance_reward)
        log_probs = compute_log_probs(prompts, responses, model)
        optimizer.zero_grad()
        compute_loss(log_probs, rewards, "naive").sum().backward()
        optimizer.step()


def rerun(
    setting: Setting,
    heat: float = 1.0,
    init_scale: float = 0.1,
    then: dict | None = None,
    **knobs,
) -> Tensor:
    """Train, divide all logits by `heat`, and train again. -> P(sorted) [seed]

    `then` are knobs of the second training alone.
    """
    model = SortModel(5, 10, 3, 3, init_scale=init_scale, seeds=setting.seeds)
    updates(model, setting, 1000, **knobs)
    with torch.no_grad():
        model.decode_weights.div_(heat)
    updates(model, setting, 5000, **knobs | (then or {}))
    prompts = PROMPT_SETS[setting.prompts]
    return exact_sorted_probability(model, prompts).mean(dim=-1).detach()


SMALLER = {"learning_rate": 0.003}

# fmt: off
CLAIMS = (
    Claim("02.noise", "The exact gradient sorts more than sampled ones on raw rewards.",
        (follow_exactly, RAW), seeds=range(256)),
    Claim("02.time",
        "On raw rewards, three times as many epochs sort no more.",
        (partial(rerun, num_epochs=300), rerun), within=0.05, seeds=range(256)),
    Claim("02.responses",
        "On raw rewards, four times as many responses sort more.",
        (partial(rerun, num_responses=40), rerun), seeds=range(256)),
    Claim("02.steps",
        "On raw rewards, steps a third as long sort more.",
        (partial(rerun, learning_rate=0.003), rerun), seeds=range(256),
        not_tried={BEST: "the rate is what is compared"}),
    Claim("02.start",
        "On raw rewards, a start with smaller weights sorts a little more.",
        (partial(rerun, init_scale=0.03), rerun), seeds=range(256)),
    Claim("02.again",
        "Heated and trained again with the steps that they had, policies sort more.",
        (partial(rerun, heat=10.0), rerun), seeds=range(256)),
    Claim("02.late",
        "Trained again with smaller steps and not heated, policies sort no more.",
        (partial(rerun, then=SMALLER), rerun), within=0.05, seeds=range(256),
        not_tried={BEST: "the rate is what is compared"}),
    Claim("02.heat",
        "Trained again with smaller steps, policies sort more if they were heated.",
        (partial(rerun, heat=10.0, then=SMALLER), partial(rerun, then=SMALLER)),
        seeds=range(256)),
)
# fmt: on
