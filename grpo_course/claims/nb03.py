"""The claims of 03_deltas."""

from functools import partial

from grpo_course.claims.claim import Claim
from grpo_course.claims.experiments import sort_after
from grpo_course.sorting.rewards import sort_distance_reward

after = partial(
    sort_after,
    num_steps_per_epoch=1,
    learning_rate=0.01,
    loss_mode="naive",
    init_scale=0.1,
)
sort = partial(after, reward_fn=sort_distance_reward)
BUDGET = 1000  # responses to each prompt


def of_size(size: int) -> partial:
    """The same number of samples in groups of one size."""
    return partial(
        sort,
        deltas_mode="normalized_rewards",
        num_responses=size,
        num_epochs=BUDGET // size,
    )


CLAIMS = (
    Claim(
        "03.baseline",
        "A baseline",
        partial(sort, deltas_mode="centered_rewards"),
        partial(sort, deltas_mode="rewards"),
    ),
    Claim("03.pairs", "groups of two learn least", of_size(16), of_size(2)),
)
