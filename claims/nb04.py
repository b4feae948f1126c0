"""The claims of 04_losses."""

from functools import partial

from torch import Tensor

from claims.claim import BEST, Claim, Setting
from claims.experiments import mean_of, repeated, sort_after
from grpo_course.formulas import LOSS_MODES
from grpo_course.off_policy import PenaltyForm

CERTAIN = (
    "With many large steps, naive and unclipped become certain too early; clipped "
)
CERTAIN += "does not."
gentle = partial(
    sort_after, num_epochs=30, deltas_mode="centered_rewards", loss_mode="naive"
)
large = partial(
    sort_after, deltas_mode="normalized_rewards", num_responses=16, learning_rate=0.01
)
many = partial(large, num_epochs=60, num_steps_per_epoch=10)
few = partial(large, num_epochs=5, loss_mode="clipped")
ten_tuned = partial(few, num_steps_per_epoch=10, learning_rate=0.02)
one_tuned = partial(few, num_steps_per_epoch=1, learning_rate=0.03)


def quotient_loss(
    ratio: Tensor, deltas: Tensor, *, log_probs: Tensor, old_log_probs: Tensor, **_
):
    """A slip: the quotient of log-probabilities in place of the ratio."""
    return -log_probs / old_log_probs * deltas


def with_quotient(setting: Setting, **knobs) -> Tensor:
    """The exact expected reward after training on it. -> [seed]"""
    LOSS_MODES["quotient"] = quotient_loss
    try:
        return gentle(setting, loss_mode="quotient", **knobs)
    finally:
        del LOSS_MODES["quotient"]


def penalty_form(setting: Setting, **knobs) -> Tensor:
    """Ten large steps with PPO's penalty form. -> [seed]"""
    form = PenaltyForm(target=0.1)
    LOSS_MODES["penalty"] = form.loss
    try:
        return many(setting, loss_mode="penalty", watch=form.adapt, **knobs)
    finally:
        del LOSS_MODES["penalty"]


def nearly_clipped(setting: Setting) -> Tensor:
    """What the clip reaches, less 0.05. -> [seed]"""
    return many(setting, loss_mode="clipped") - 0.05


CLAIMS = (
    Claim(
        "04.steps",
        "What to see: at this rate, four or ten steps on each rollout learn far more "
        "than one.",
        partial(gentle, num_steps_per_epoch=10),
        partial(gentle, num_steps_per_epoch=1),
    ),
    Claim(
        "04.rate",
        "At ten times the rate, one step on each rollout makes up most of the "
        "difference.",
        partial(gentle, num_steps_per_epoch=1, learning_rate=0.01),
        partial(
            mean_of, [partial(gentle, num_steps_per_epoch=steps) for steps in (1, 10)]
        ),
    ),
    Claim(
        "04.quotient",
        "The quotient of log-probabilities trains backwards.",
        partial(gentle, measure="expected_reward", num_epochs=1, learning_rate=1e-12),
        partial(with_quotient, measure="expected_reward", num_steps_per_epoch=4),
        leave_out={BEST: "no rate is best for a loss that trains backwards"},
    ),
    Claim(
        "04.penalty",
        "The same ten steps at the same rate, and now they learn.",
        penalty_form,
        partial(many, loss_mode="unclipped"),
    ),
    Claim(
        "04.clip",
        CERTAIN,
        partial(many, loss_mode="clipped"),
        partial(many, loss_mode="unclipped"),
    ),
    Claim(
        "04.naive",
        CERTAIN,
        partial(many, loss_mode="clipped"),
        partial(many, loss_mode="naive"),
    ),
    Claim(
        "04.sooner",
        "It is ahead of $\\mu = 1$ early and, from the second rollout, of the penalty "
        "form",
        partial(few, num_steps_per_epoch=10),
        partial(penalty_form, num_epochs=5),
    ),
    Claim(
        "04.no_lower",
        "the penalty form, which ends no lower.",
        penalty_form,
        nearly_clipped,
    ),
    Claim(
        "04.tuned",
        "with rates tuned for both, ten clipped steps lead one step after a few "
        "rollouts.",
        partial(repeated, ten_tuned, 4),
        partial(repeated, one_tuned, 4),
    ),
)
