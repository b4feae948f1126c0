"""What 06_training_loop claims."""

import torch
from torch import Tensor

from claims.runner import (
    PLAIN,
    PROMPT_SETS,
    Claim,
    Setting,
    mean_of,
    repeated,
    sort_after,
)
from grpo_course.lessons.exercises.nb06 import colleagues, learning_curve

small = PLAIN | {"num_epochs": 50, "num_steps_per_epoch": 4, "num_responses": 4}
large = {"learning_rate": 0.01}
RENEWED = {"kl_penalty": 0.1, "compute_ref_model_period": 10}
few = PLAIN | {"num_epochs": 20, "learning_rate": 0.005}
late = PLAIN | {"num_epochs": 100, "num_responses": 4}


def with_kl(**knobs):
    """A run with a KL; one that stops with an overflow has learned nothing."""

    def arm(setting: Setting) -> Tensor:
        try:
            return sort_after(setting, **small | RENEWED | knobs)
        except ValueError:
            return torch.zeros(len(setting.seeds))

    return arm


def by_hand(what: str):
    """A loop that is wrong in this line, or right."""

    def arm(setting: Setting) -> Tensor:
        rate, length = 0.001 * setting.rate, round(50 * setting.length)
        curve = learning_curve(
            colleagues()[what],
            setting.seeds,
            rate,
            PROMPT_SETS[setting.prompts],
            length,
        )
        return curve[-1]

    return repeated(arm, 4)


UNSEEN = (
    "the reference is copied once and never again",
    "the reference is the policy of the epoch",
    "pi_old is noted anew in every step",
    "the KL is subtracted",
)

# fmt: off
CLAIMS = (
    Claim("06.curve", "Four loops with a wrong line learn as much as a right one.",
        (mean_of([by_hand(what) for what in UNSEEN]), by_hand("no line is wrong")),
        within=0.1),
    Claim("06.kl", "With large steps on small groups, a KL to a renewed copy helps.",
        (with_kl(**large), small | large)),
    Claim("06.lead", "At each one's rate, a KL to a renewed copy learns a little more.",
        (repeated(with_kl(learning_rate=0.005), 8),
         repeated(small | {"learning_rate": 0.002}, 8))),
    Claim("06.groups", "Without a KL, groups of sixteen learn more than of four.",
        (small | large | {"num_responses": 16}, small | large)),
    Claim("06.reuse", "After twenty rollouts, ten clipped steps on each beat one.",
        (few | {"num_steps_per_epoch": 10}, few | {"num_steps_per_epoch": 1})),
    Claim("06.late", "After a hundred rollouts, ten steps on each are equal to one.",
        (repeated(late | {"num_steps_per_epoch": 10, "learning_rate": 0.001}, 4),
         repeated(late | {"num_steps_per_epoch": 1, "learning_rate": 0.003}, 4)),
        within=0.1),
)
# fmt: on
