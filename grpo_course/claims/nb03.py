"""The claims of 03_deltas."""

from functools import partial

from grpo_course.claims.claim import Claim
from grpo_course.claims.experiments import PROMPT_SETS, one_step
from grpo_course.sorting.rewards import sort_distance_reward

NOISE = "Noise costs most when steps are large: then pairs learn least, and modes "
NOISE += "without a baseline fall behind."
LOUDER = {tuple(p): 10.0**i for s in PROMPT_SETS for i, p in enumerate(s.tolist())}


def with_offset(prompt: list[int], response: list[int]) -> float:
    return sort_distance_reward(prompt, response) + 10


def uneven(prompt: list[int], response: list[int]) -> float:
    return LOUDER[tuple(prompt)] * sort_distance_reward(prompt, response)


unevenly = partial(one_step, reward_fn=uneven, num_epochs=200)


def of_size(size: int) -> partial:
    """A thousand responses to each prompt, in groups of one size."""
    arm = partial(one_step, deltas_mode="normalized_rewards")
    return partial(arm, num_responses=size, num_epochs=1000 // size)


CLAIMS = (
    Claim(
        "03.offset",
        "Without a baseline, a reward that says nothing collapses the policy, and an "
        "offset ruins learning.",
        partial(one_step, deltas_mode="rewards"),
        partial(one_step, deltas_mode="rewards", reward_fn=with_offset),
    ),
    Claim(
        "03.uneven",
        "Dividing by the spread helps when prompts pay unevenly, and gives rare "
        "outcomes more weight.",
        partial(unevenly, deltas_mode="normalized_rewards"),
        partial(unevenly, deltas_mode="centered_rewards"),
    ),
    Claim("03.pairs", NOISE, of_size(32), of_size(2)),
    Claim(
        "03.baseline",
        NOISE,
        partial(one_step, deltas_mode="centered_rewards"),
        partial(one_step, deltas_mode="rewards"),
    ),
)
