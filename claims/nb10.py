"""What 10_bug_hunt claims: what two defects do to the reward."""

from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from claims.runner import Claim, Setting
from grpo_course.lessons.hunt.defects import broken, number_of
from grpo_course.lessons.hunt.script import Settings, Trainer


@cache
def earned(setting: Setting, cause: str = "", beta: float = Settings.beta) -> Tensor:
    """The reward that the healthy script pays a trainer after half a run. -> [seed]"""
    kind = broken(number_of(cause)).Trainer if cause else Trainer
    known: dict[str, Any] = {
        "num_steps": round(10 * setting.length),
        "learning_rate": Settings.learning_rate * setting.rate,
        "beta": beta,
    }
    if setting.prompts:  # no short lists
        known |= {"min_numbers": 4, "max_numbers": 4}
    rewards = []
    for seed in setting.seeds:
        trainer = kind(seed=seed, **known)
        trainer.train()
        grader = Trainer(seed=1000 + seed, num_prompts=64)  # eight responses each
        grader.model.load_state_dict(trainer.model.state_dict())
        rewards.append(round(grader.collect().rewards.mean().item(), 4))
    return torch.tensor(rewards)


# fmt: off
CLAIMS = (
    Claim("10.reference",
        "With a large β, the reward gains by a reference that is the policy itself.",
        (partial(earned, cause="reference is the policy itself", beta=0.5),
         partial(earned, beta=0.5)), seeds=range(8)),
    Claim("10.untied", "With that reference, a large β earns as much as none.",
        (partial(earned, cause="reference is the policy itself", beta=0.5),
         partial(earned, beta=0.0)), within=0.02, seeds=range(8)),
)
# fmt: on
