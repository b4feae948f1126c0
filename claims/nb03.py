"""What 03_deltas claims."""

from functools import partial

import torch
from torch import Tensor

from claims.runner import (
    BEST,
    NORMALIZED,
    ONE_STEP,
    PROMPT_SETS,
    Claim,
    Setting,
    mean_of,
    minus,
    sort_run,
)
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


def entropy(setting: Setting, epoch: int = -1, **how) -> Tensor:
    """At an epoch of training on raw rewards that are all 1. -> [seed]"""
    run = sort_run(setting, **(raw | {"reward_fn": lambda p, r: 1.0} | how))
    return run.curve("entropy")[epoch]


def by(mode: str) -> dict:
    return ONE_STEP | {"deltas_mode": mode}


def of_size(size: int, samples: int = 1000, rate: float = 0.01) -> dict:
    """So many responses to each prompt, in groups of one size."""
    budget = {"num_responses": size, "num_epochs": samples // size}
    return ONE_STEP | NORMALIZED | budget | {"learning_rate": rate}


def lead(rate: float):
    """By how much centered rewards are ahead of raw ones."""
    return minus(centered | {"learning_rate": rate}, raw | {"learning_rate": rate})


raw, centered = by("rewards"), by("centered_rewards")
offset = {"reward_fn": with_offset}
adam = {"reward_fn": uneven, "num_epochs": 200, "learning_rate": 0.003}
sgd = adam | {"optimizer": torch.optim.SGD, "learning_rate": 0.03}
slow: dict = {"optimizer": torch.optim.SGD, "learning_rate": 0.05}
without = ("rewards", "max_rewards", "softmax_rewards")
# fmt: off
CLAIMS = (
    Claim("03.collapse",
        "Without a baseline, a reward that says nothing collapses the policy.",
        (partial(entropy, epoch=0), partial(entropy, epoch=-1)),
        not_tried={BEST: "there is nothing to be best at"}),
    Claim("03.noise", "With SGD, eight times as many responses collapse it less.",
        (partial(entropy, num_responses=80, **slow), partial(entropy, **slow)),
        not_tried={BEST: "there is nothing to be best at"}),
    Claim("03.noise_adam", "With Adam, they collapse it as far.",
        (partial(entropy, num_responses=80), entropy), within=0.1, not_tried=ONE_RATE),
    Claim("03.offset", "Without a baseline, an offset of the rewards ruins learning.",
        (raw, raw | offset)),
    Claim("03.offset_centered",
        "Centered rewards end in the same place with an offset and without it.",
        (centered, centered | offset), within=0.05),
    Claim("03.uneven",
        "Where prompts pay unevenly, dividing by the group's spread helps Adam.",
        (by("normalized_rewards") | adam, centered | adam), seeds=MANY),
    Claim("03.uneven_sgd",
        "Where prompts pay unevenly, dividing by the group's spread helps SGD.",
        (by("normalized_rewards") | sgd, centered | sgd), seeds=MANY),
    Claim("03.pairs",
        "With large steps, pairs learn less than groups of 32 from as many samples.",
        (of_size(32), of_size(2)), seeds=MANY),
    Claim("03.pairs_small", "With smaller steps, pairs catch up with groups of 32.",
        (of_size(32, rate=0.003), of_size(2, rate=0.003)), within=0.15, seeds=MANY,
        not_tried=ONE_RATE | {"half as long": "that is 03.pairs_reversed"}),
    Claim("03.pairs_reversed", "With smaller steps and half the samples, pairs win.",
        (of_size(2, samples=500, rate=0.003), of_size(32, samples=500, rate=0.003)),
        seeds=MANY, not_tried=ONE_RATE | {"twice as long": "that is 03.pairs_small"}),
    Claim("03.baseline", "With large steps, raw rewards fall behind centered ones.",
        (centered, raw), seeds=MANY),
    Claim("03.best", "At the best rate of both, raw rewards fall behind centered ones.",
        (centered | {"learning_rate": 0.003}, raw | {"learning_rate": 0.003}),
        seeds=range(128), not_tried=ONE_RATE),
    Claim("03.family", "The modes without a baseline are behind those with one.",
        (mean_of([by(f"centered_{mode}") for mode in without]),
         mean_of([by(mode) for mode in without]))),
    Claim("03.lead", "With smaller steps, the lead of a baseline shrinks.",
        (lead(0.01), lead(0.003)), seeds=MANY, not_tried=ONE_RATE),
)
# fmt: on
