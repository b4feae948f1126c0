"""The claims of 06_training_loop."""

from functools import partial

from claims.claim import Claim
from claims.experiments import loss_of, mean_of, repeated, sort_after
from grpo_course.sort import sort_inclusion_ordering_reward

LOSSES = ("naive", "unclipped", "clipped")
GRID = "In the grid a baseline helps, most of all raw rewards."
START = "Of four changes to the defaults, the start with high entropy matters most"
CLIP = "The clip pays off at larger rates and with more inner steps."
grid = partial(sort_after, num_epochs=50)
grpo = partial(grid, deltas_mode="normalized_rewards", loss_mode="clipped")
four = partial(grpo, num_epochs=100)
ten_times = partial(grpo, num_epochs=30, learning_rate=0.01, num_steps_per_epoch=20)


def clipped(mode: str) -> partial:
    """One kind of deltas with the clipped loss."""
    return partial(grid, deltas_mode=mode, loss_mode="clipped")


def row(mode: str) -> partial:
    """One kind of deltas, the mean over the losses."""
    return partial(
        mean_of, [partial(grid, deltas_mode=mode, loss_mode=x) for x in LOSSES]
    )


def costs_more(change: dict) -> Claim:
    """That the default start costs more than another change's default."""
    (knob,) = change
    return Claim(
        f"06.start_{knob.split('_')[0]}",
        START,
        partial(four, **change),
        partial(four, init_scale=1.0),
    )


CLAIMS = (
    costs_more({"deltas_mode": "rewards"}),
    costs_more({"reward_fn": sort_inclusion_ordering_reward}),
    Claim("06.baseline", GRID, row("centered_rewards"), row("rewards")),
    Claim(
        "06.most",
        GRID,
        partial(loss_of, clipped("centered_rewards"), clipped("rewards")),
        partial(loss_of, clipped("centered_max_rewards"), clipped("max_rewards")),
        leave_out={"each at its best rate": "both arms are what a run loses"},
    ),
    Claim(
        "06.spread",
        "Over the three losses, normalized and centered deltas differ by less than a "
        "hundredth, elsewhere by a few.",
        partial(repeated, grpo, 4),
        partial(repeated, partial(grpo, deltas_mode="centered_rewards"), 4),
        within=0.1,
    ),
    Claim(
        "06.clip",
        CLIP,
        partial(grpo, learning_rate=0.01),
        partial(grpo, learning_rate=0.01, loss_mode="unclipped"),
    ),
    Claim("06.inner", CLIP, ten_times, partial(ten_times, loss_mode="unclipped")),
    Claim(
        "06.reference",
        "With the frozen reference the pull grows until it balances the reward, long "
        "before the task is solved.",
        partial(grpo, num_epochs=40, kl_penalty=0.3, compute_ref_model_period=10),
        partial(grpo, num_epochs=40, kl_penalty=0.3, compute_ref_model_period=10_000),
    ),
)
