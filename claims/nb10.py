"""The claims of 10_bug_hunt: what two defects do to the reward."""

from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from claims.claim import Claim, Setting
from grpo_course.lessons.hunt.defects import broken, number_of
from grpo_course.lessons.hunt.script import Settings, Trainer

EIGHT = Setting(seeds=range(8))
NUM_STEPS = 10  # half a run
NUM_GRADED = 64  # prompts, eight responses each, for the reward at the end


def lists(setting: Setting) -> dict[str, int]:
    """What is to be sorted; the other set has no short lists."""
    return {} if setting.prompts == 0 else {"min_numbers": 4, "max_numbers": 4}


@cache
def earned(setting: Setting, cause: str = "", beta: float = Settings.beta) -> Tensor:
    """The reward that the healthy script pays a trainer in the end. -> [seed]"""
    kind = broken(number_of(cause)).Trainer if cause else Trainer
    known: dict[str, Any] = lists(setting) | {
        "num_steps": round(NUM_STEPS * setting.length),
        "learning_rate": Settings.learning_rate * setting.rate,
        "beta": beta,
    }
    rewards = []
    for seed in setting.seeds:
        trainer = kind(seed=seed, **known)
        trainer.train()
        grader = Trainer(seed=1000 + seed, num_prompts=NUM_GRADED)
        grader.model.load_state_dict(trainer.model.state_dict())
        rewards.append(round(grader.collect().rewards.mean().item(), 4))
    return torch.tensor(rewards)


held_by_itself = partial(earned, cause="reference is the policy itself", beta=0.5)
CLAIMS = (
    Claim(
        "10.padding",
        "The cost is real, and smaller than the spread of single healthy runs",
        earned,
        partial(earned, cause="padding counted as response"),
        told=EIGHT,
    ),
    Claim(
        "10.reference",
        r"with this $\beta$ the reward even gains by it",
        held_by_itself,
        partial(earned, beta=0.5),
        told=EIGHT,
    ),
)
