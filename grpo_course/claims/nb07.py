"""The claims of 07_zero_loss."""

from functools import partial

from grpo_course.claims.claim import Claim
from grpo_course.claims.experiments import sort_after

healthy = partial(
    sort_after,
    measure="expected_reward",
    num_epochs=150,
    num_steps_per_epoch=1,
    learning_rate=3e-3,
    deltas_mode="normalized_rewards",
    loss_mode="clipped",
)

CLAIMS = (
    Claim(
        "07.rate",
        "The panels say that a learning rate 30 times as large learns less.",
        healthy,
        partial(healthy, learning_rate=0.09),
    ),
)
