"""What 06_training_loop claims."""

from claims.runner import BEST, PLAIN, Claim, mean_of, minus, repeated
from grpo_course.sort import sort_inclusion_ordering_reward

grpo = PLAIN | {"num_epochs": 50}
four = PLAIN | {"num_epochs": 100}
large = {"learning_rate": 0.01}
UNCLIPPED = {"loss_mode": "unclipped"}


def by(mode: str) -> dict:
    """One kind of deltas with the clipped loss."""
    return grpo | {"deltas_mode": mode}


def row(mode: str):
    """One kind of deltas, the mean over the losses."""
    losses = ("naive", "unclipped", "clipped")
    return mean_of([by(mode) | {"loss_mode": loss} for loss in losses])


# fmt: off
CLAIMS = (
    Claim("06.start_deltas", "A sure start costs more than raw rewards as deltas.",
        (four | {"deltas_mode": "rewards"}, four | {"init_scale": 1.0})),
    Claim("06.start_reward", "A sure start costs more than a reward with dead ends.",
        (four | {"reward_fn": sort_inclusion_ordering_reward},
         four | {"init_scale": 1.0})),
    Claim("06.baseline", "Over three losses, a baseline helps raw rewards.",
        (row("centered_rewards"), row("rewards"))),
    Claim("06.most",
        "A baseline helps raw rewards more than the group's best response.",
        (minus(by("centered_rewards"), by("rewards")),
         minus(by("centered_max_rewards"), by("max_rewards"))),
        not_tried={BEST: "both arms are what a run loses"}),
    Claim("06.spread", "Normalized and centered deltas hardly differ.",
        (repeated(grpo, 4), repeated(by("centered_rewards"), 4)), within=0.1),
    Claim("06.clip", "The clip pays off at a larger rate.",
        (grpo | large, grpo | large | UNCLIPPED)),
)
# fmt: on
