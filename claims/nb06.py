"""What 06_training_loop claims."""

import torch
from torch import Tensor

from claims.runner import PLAIN, Claim, Setting, repeated, sort_after

FROZEN = {"compute_ref_model_period": 10_000}  # epochs: longer than any run
small = PLAIN | {"num_epochs": 50, "num_steps_per_epoch": 4, "num_responses": 4}
large = {"learning_rate": 0.01}
RENEWED = {"kl_penalty": 0.1, "compute_ref_model_period": 10}
few = PLAIN | {"num_epochs": 20, "learning_rate": 0.005}
late = PLAIN | {"num_epochs": 100, "num_responses": 4}
UNCLIPPED = {"loss_mode": "unclipped"}


def with_kl(**knobs):
    """A run with a KL; one that stops with an overflow has learned nothing."""

    def arm(setting: Setting) -> Tensor:
        try:
            return sort_after(setting, **small | RENEWED | knobs)
        except ValueError:
            return torch.zeros(len(setting.seeds))

    return arm


# fmt: off
CLAIMS = (
    Claim("06.kl", "With large steps on small groups, a KL to a renewed copy helps.",
        (with_kl(**large), small | large)),
    Claim("06.lead", "At each one's rate, a KL to a renewed copy learns a little more.",
        (repeated(with_kl(learning_rate=0.005), 8),
         repeated(small | {"learning_rate": 0.002}, 8))),
    Claim("06.frozen", "With smaller steps, a KL of 0.1 to the start holds back.",
        (repeated(small | {"learning_rate": 0.002}, 4),
         repeated(with_kl(learning_rate=0.002, **FROZEN), 4))),
    Claim("06.weak", "At each one's rate, a KL of 0.03 to the start is no loss.",
        (repeated(with_kl(learning_rate=0.002, **FROZEN | {"kl_penalty": 0.03}), 4),
         repeated(small | {"learning_rate": 0.002}, 4)), within=0.1),
    Claim("06.groups", "Without a KL, groups of sixteen learn more than of four.",
        (small | large | {"num_responses": 16}, small | large)),
    Claim("06.reuse", "After twenty rollouts, ten clipped steps on each beat one.",
        (few | {"num_steps_per_epoch": 10}, few | {"num_steps_per_epoch": 1})),
    Claim("06.late", "After a hundred rollouts, ten steps on each are equal to one.",
        (repeated(late | {"num_steps_per_epoch": 10, "learning_rate": 0.001}, 4),
         repeated(late | {"num_steps_per_epoch": 1, "learning_rate": 0.003}, 4)),
        within=0.1),
    Claim("06.clip", "With ten steps, the clip pays off at a larger rate.",
        (PLAIN | {"num_epochs": 50} | large,
         PLAIN | {"num_epochs": 50} | large | UNCLIPPED)),
)
# fmt: on
