"""What 03_deltas claims."""

from functools import partial

from torch import Tensor

from claims.runner import BEST, ONE_STEP, PROMPT_SETS, Claim, Setting, sort_run
from grpo_course.sort import sort_distance_reward

MANY = range(32)  # seeds
LOUDER = {tuple(p): 10.0**i for s in PROMPT_SETS for i, p in enumerate(s.tolist())}
ONE_RATE = dict.fromkeys(
    ("a third of the rate", "three times the rate", BEST),
    "the claim is about this rate",
)


def with_offset(prompt: list[int], response: list[int]) -> float:
    return sort_distance_reward(prompt, response) + 10


def uneven(prompt: list[int], response: list[int]) -> float:
    return LOUDER[tuple(prompt)] * sort_distance_reward(prompt, response)


def entropy(setting: Setting, epoch: int) -> Tensor:
    """At an epoch of training on raw rewards that are all 1. -> [seed]"""
    run = sort_run(setting, **raw, reward_fn=lambda p, r: 1.0)
    return run.curve("entropy")[epoch]


def by(mode: str) -> dict:
    return ONE_STEP | {"deltas_mode": mode}


raw, centered = by("rewards"), by("centered_rewards")
offset = {"reward_fn": with_offset}
small = {"learning_rate": 0.003}
long = small | {"reward_fn": uneven, "num_epochs": 200}
# fmt: off
CLAIMS = (
    Claim("03.collapse",
        "Without a baseline, a reward that says nothing collapses the policy.",
        (partial(entropy, epoch=0), partial(entropy, epoch=-1)),
        not_tried={BEST: "there is nothing to be best at"}),
    Claim("03.offset", "Without a baseline, an offset of the rewards ruins learning.",
        (raw, raw | offset)),
    Claim("03.offset_centered",
        "Centered rewards end in the same place with an offset and without it.",
        (centered, centered | offset), within=0.05),
    Claim("03.uneven",
        "Where prompts pay unevenly, dividing by the group's spread helps Adam.",
        (by("normalized_rewards") | long, centered | long), seeds=MANY),
    Claim("03.baseline", "With large steps, raw rewards fall behind centered ones.",
        (centered, raw), seeds=MANY),
    Claim("03.best", "At the best rate of both, raw rewards fall behind centered ones.",
        (centered | small, raw | small),
        seeds=range(128), not_tried=ONE_RATE),
)
# fmt: on
