"""The claims of 14_exact_answers on sharpening and on rewards that know nothing."""

from functools import partial

import torch
from torch import Tensor

from claims.after_start import (
    all_prompts,
    ascending,
    right_places,
    solved,
    start,
    trained,
)
from claims.claim import BEST, Claim, Setting
from grpo_course.loop import Rollout

STRONG = {"steps": 30}
WEAK = {"steps": 0, "init_scale": 0.1}


def right_answer(rollout: Rollout) -> Tensor:
    return (right_places(rollout) == 1).float()


def coin(rollout: Rollout) -> Tensor:
    return (torch.rand(rollout.responses.shape[:-1]) < 0.5).float()


def majority(rollout: Rollout) -> Tensor:
    """1 for the answer that its group gives most often (several in a tie)."""
    one, other = rollout.responses[..., :, None, :], rollout.responses[..., None, :, :]
    same = (one == other).all(-1).sum(-1)
    return (same == same.max(-1, keepdim=True).values).float()


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
    best = start(setting, **STRONG).model(prompts).argmax(-1)
    return (best == ascending(prompts)).all(-1).double().mean(-1)


after = partial(passed, reward_fn=right_answer, num_epochs=100)


after = partial(passed, reward_fn=right_answer, num_epochs=100)

COVERAGE = "From a strong start GRPO raised pass@1 and lost pass@k at large $k$"
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
        "From a weak start it led up to several hundred samples.",
        partial(after, k=100, how=WEAK),
        partial(passed, k=100, how=WEAK),
        leave_out={BEST: "one arm is the start"},
    ),
    Claim(
        "14.vote",
        "A vote raised the policy,",
        partial(passed, k=1, how=STRONG, reward_fn=majority),
        partial(passed, k=1, how=STRONG),
        leave_out={BEST: "one arm is the start"},
    ),
    Claim(
        "14.ceiling",
        "but not above its own most likely answer.",
        most_likely,
        partial(passed, k=1, how=STRONG, reward_fn=majority),
        leave_out={BEST: "one arm is the start"},
    ),
    Claim(
        "14.coin",
        "A coin did harm.",
        partial(passed, k=1, how=STRONG),
        partial(passed, k=1, how=STRONG, reward_fn=coin),
        leave_out=NO_BEST,
    ),
)
