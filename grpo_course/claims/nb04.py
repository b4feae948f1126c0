"""The claims of 04_losses."""

from functools import partial

from grpo_course.claims.claim import Claim
from grpo_course.claims.experiments import sort_after

gentle = partial(
    sort_after, num_epochs=30, deltas_mode="centered_rewards", loss_mode="naive"
)
large = partial(
    sort_after, deltas_mode="normalized_rewards", num_responses=16, learning_rate=0.01
)
many = partial(large, num_epochs=60, num_steps_per_epoch=10)

CLAIMS = (
    Claim(
        "04.steps",
        "What to see: from as many samples, four or ten steps on each rollout learn "
        "far more than one.",
        partial(gentle, num_steps_per_epoch=10),
        partial(gentle, num_steps_per_epoch=1),
    ),
    Claim(
        "04.tuned",
        "with rates tuned for both, ten clipped steps lead one step after a few "
        "rollouts.",
        partial(
            large,
            num_epochs=5,
            num_steps_per_epoch=10,
            loss_mode="clipped",
            learning_rate=0.02,
        ),
        partial(
            large,
            num_epochs=5,
            num_steps_per_epoch=1,
            loss_mode="clipped",
            learning_rate=0.03,
        ),
    ),
    Claim(
        "04.clip",
        "With many large steps, naive and unclipped become certain too early; clipped "
        "does not.",
        partial(many, loss_mode="clipped"),
        partial(many, loss_mode="unclipped"),
    ),
)
