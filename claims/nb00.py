"""The claims of 00_welcome."""

from functools import partial

import torch
from torch import Tensor

from claims.claim import BEST, Claim, Setting
from claims.experiments import PROMPT_SETS, sort_after
from grpo_course.sort import all_responses

NO_RATE = {BEST: "a bound has no rate of its own"}
run = partial(sort_after, deltas_mode="normalized_rewards", loss_mode="clipped")


def unseen(setting: Setting) -> Tensor:
    """How often the other 122 prompts are sorted. -> [seed]"""
    every, trained = all_responses(5, 3), PROMPT_SETS[setting.prompts]
    others = every[~(every[:, None] == trained).all(dim=-1).any(dim=-1)]
    return run(setting, measure="held_out_probability", held_out=others)


def bound(value: float, setting: Setting) -> Tensor:
    """One number, whatever the setting."""
    return torch.tensor(value)


CLAIMS = (
    Claim(
        "00.learns",
        "In 13 of 16 runs it learns to sort three prompts, from guesses that are "
        "nearly all wrong.",
        run,
        partial(bound, 0.5),
        leave_out=NO_RATE,
    ),
    Claim(
        "00.unseen",
        "It hardly ever sorts a prompt that it was not trained on.",
        partial(bound, 0.1),
        unseen,
        leave_out=NO_RATE,
    ),
)
