"""The claims of 06_training_loop."""

from functools import partial

from grpo_course.claims.claim import Claim
from grpo_course.claims.experiments import loss_of, mean_of, sort_after

LOSSES = ("naive", "unclipped", "clipped")
GRID = "In the grid a baseline helps, most of all raw rewards."
CLOSE = "Normalized and centered deltas, and with them the clipped and the unclipped "
CLOSE += "loss, lie a few hundredths apart."
START = "At the grid's learning rate a start that is sure of itself costs more than "
START += "any choice in the grid."
grid = partial(sort_after, num_epochs=50)
grpo = partial(grid, deltas_mode="normalized_rewards", loss_mode="clipped")


def row(mode: str) -> partial:
    """One kind of deltas, the mean over the losses."""
    return partial(
        mean_of, [partial(grid, deltas_mode=mode, loss_mode=x) for x in LOSSES]
    )


CLAIMS = (
    Claim("06.baseline", GRID, row("centered_rewards"), row("rewards")),
    Claim("06.spread", CLOSE, row("normalized_rewards"), row("centered_rewards"), 0.1),
    Claim("06.clip", CLOSE, grpo, partial(grpo, loss_mode="unclipped"), 0.1),
    Claim(
        "06.start",
        START,
        partial(loss_of, grpo, partial(grpo, init_scale=1.0)),
        partial(loss_of, grpo, partial(grpo, deltas_mode="rewards")),
        leave_out={"each at its best rate": "both arms are what a run loses"},
    ),
    Claim(
        "06.reference",
        "With the frozen reference the pull grows until it balances the reward, long "
        "before the task is solved.",
        partial(grpo, num_epochs=40, kl_penalty=0.3, compute_ref_model_period=10),
        partial(grpo, num_epochs=40, kl_penalty=0.3, compute_ref_model_period=10_000),
    ),
)
