"""What 04_losses claims."""

from unittest.mock import patch

from torch import Tensor

from claims.runner import (
    BEST,
    NORMALIZED,
    Claim,
    Setting,
    mean_of,
    repeated,
    sort_after,
)
from grpo_course.formulas import LOSS_MODES
from grpo_course.off_policy import PenaltyForm

gentle = {"num_epochs": 30, "deltas_mode": "centered_rewards", "loss_mode": "naive"}
START = {"measure": "expected_reward", "num_epochs": 1, "learning_rate": 1e-12}
large = NORMALIZED | {"num_responses": 16, "learning_rate": 0.01}
many = large | {"num_epochs": 60, "num_steps_per_epoch": 10}
clipped, unclipped = many | {"loss_mode": "clipped"}, many | {"loss_mode": "unclipped"}
few = large | {"num_epochs": 5, "loss_mode": "clipped"}


def steps(count: int, rate: float = 1e-3) -> dict:
    return {"num_steps_per_epoch": count, "learning_rate": rate}


def quotient_loss(ratio: Tensor, deltas: Tensor, *, log_probs, old_log_probs, **_):
    """A slip: the quotient of log-probabilities in place of the ratio."""
    return -log_probs / old_log_probs * deltas


@patch.dict(LOSS_MODES, quotient=quotient_loss)
def with_quotient(setting: Setting) -> Tensor:
    """The exact expected reward after training on it. -> [seed]"""
    knobs = gentle | steps(4) | {"loss_mode": "quotient"}
    return sort_after(setting, "expected_reward", **knobs)


def penalty_form(setting: Setting, num_epochs: int = 60) -> Tensor:
    """Ten large steps with PPO's penalty form. -> [seed]"""
    form = PenaltyForm(target=0.1)
    knobs = {"num_epochs": num_epochs, "loss_mode": "penalty", "watch": form.adapt}
    with patch.dict(LOSS_MODES, penalty=form.loss):
        return sort_after(setting, **many | knobs)


# fmt: off
CLAIMS = (
    Claim("04.steps", "At a small rate, ten steps on each rollout learn more than one.",
        (gentle | steps(10), gentle | steps(1))),
    Claim("04.rate",
        "At ten times the rate, one step makes up more than half of the difference.",
        (gentle | steps(1, rate=0.01),
         mean_of([gentle | steps(1), gentle | steps(10)]))),
    Claim("04.quotient", "The quotient of log-probabilities trains backwards.",
        (gentle | START, with_quotient),
        not_tried={BEST: "no rate is best for a loss that trains backwards"}),
    Claim("04.penalty",
        "With PPO's penalty form, many large steps learn, as unclipped ones do not.",
        (penalty_form, unclipped)),
    Claim("04.clip",
        "With many large steps, the clipped loss learns more than the unclipped one.",
        (clipped, unclipped)),
    Claim("04.naive",
        "With many large steps, the clipped loss learns more than the naive one.",
        (clipped, many | {"loss_mode": "naive"})),
    Claim("04.sooner", "Early on, the clip is ahead of the penalty form.",
        (few | {"num_steps_per_epoch": 10},
         lambda setting: penalty_form(setting, num_epochs=5))),
    Claim("04.no_lower",
        "The penalty form ends no lower than the clip, by 0.05 at most.",
        (penalty_form, lambda setting: sort_after(setting, **clipped) - 0.05)),
    Claim("04.tuned",
        "With rates tuned for both, ten clipped steps lead one after a few rollouts.",
        (repeated(few | steps(10, rate=0.02), 4),
         repeated(few | steps(1, rate=0.03), 4))),
)
# fmt: on
