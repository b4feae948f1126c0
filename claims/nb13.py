"""What 13_beyond_grpo claims."""

from functools import cache, partial
from typing import Any

from torch import Tensor

from claims.runner import BEST, Claim, Setting
from grpo_course.loop import Rollout
from grpo_course.off_policy import StaleSampler, with_overlong_penalty
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    ASK,
    LENGTH,
    all_sort_prompts,
    place_reward,
    sorted_numbers,
    train_sort,
)

LIMIT = Sampler(6, eos=ASK, pad=ASK)


def numbers_written(rollout: Rollout) -> Tensor:
    """The tokens of a response; the end is free. -> int [... batch trial]"""
    assert rollout.mask is not None and rollout.finished is not None
    return rollout.mask.sum(-1) - rollout.finished.long()


def ended_reward(rollout: Rollout) -> Tensor:
    """Right places among all that was written, at least three. -> [... batch trial]"""
    count = numbers_written(rollout)
    # The end and the padding after it are no number of any prompt: never right.
    right = rollout.responses[..., :LENGTH] == sorted_numbers(rollout.prompts)[:, None]
    return right.sum(-1) / count.clamp(min=LENGTH)


@cache  # one run of plain GRPO is compared with every variant
def trained(setting: Setting, reward_fn=ended_reward, **change) -> tuple:
    """Reward on all prompts and numbers written, after 20 epochs. -> two of [seed]"""
    knobs: dict[str, Any] = {"sampler": LIMIT, "num_steps_per_epoch": 4} | change
    num_epochs, rate = round(20 * setting.length), 0.01 * setting.rate
    policy, _ = train_sort(reward_fn, setting.seeds, num_epochs, rate, **knobs)
    answers = policy.sample(all_sort_prompts(), 4)
    written = numbers_written(answers).float().mean((-2, -1))
    return ended_reward(answers).mean((-2, -1)), written


def paid(setting: Setting, **change) -> Tensor:
    """The reward that a variant reaches. -> [seed]"""
    return trained(setting, **change)[0]


def written(setting: Setting, **change) -> Tensor:
    """How many numbers its responses hold. -> [seed]"""
    return trained(setting, **change)[1]


def from_old(setting: Setting, lag: int, num_epochs: float, rate: float, **change):
    """A run on samples of a writer that is so many epochs old."""
    knobs: dict[str, Any] = {"wrap": lambda policy: StaleSampler(policy, lag)}
    knobs |= {"num_steps_per_epoch": 4} | change
    epochs, rate = round(num_epochs * setting.length), rate * setting.rate
    return train_sort(place_reward, setting.seeds, epochs, rate, **knobs)


def stale(setting: Setting, **change) -> Tensor:
    """The reward of the last five epochs, with an old writer. -> [seed]"""
    _, seen = from_old(setting, 4, 20, 0.003, **change)
    return seen.epochs("mean_reward")[-5:].mean(dim=0)


@cache
def in_four_minutes(setting: Setting, age: int, seconds: float) -> Tensor:
    """The reward where an update takes so many seconds, from so old samples. [seed]"""
    policy, _ = from_old(setting, age, 240 / seconds, 0.01)
    return place_reward(policy.sample(all_sort_prompts(), 4)).mean((-2, -1))


penalized = with_overlong_penalty(ended_reward, 6, 2)
dapo_pieces: dict[str, Any] = {
    "reward_fn": penalized,
    "aggregation": "token_mean",
    "epsilon_high": 0.28,
    "num_resamples": 3,
}
dr_grpo: dict[str, Any] = {"deltas_mode": "centered_rewards", "aggregation": "constant"}
# The mean age over 400 batches, of which the first are younger: 3 of 4, 14 of 16.
queue_of_4 = partial(in_four_minutes, age=3, seconds=6.06)
queue_of_16 = partial(in_four_minutes, age=14, seconds=5.04)
NO_PROMPTS = {"other prompts": "the epochs draw from all 216 of them"}
Variant = partial(Claim, not_tried=NO_PROMPTS)
# fmt: off
CLAIMS = (
    Variant("13.dr_grpo", "Dr. GRPO leads GRPO.",
        (partial(paid, **dr_grpo), paid)),
    Variant("13.rloo", "RLOO differs little from GRPO.",
        (partial(paid, deltas_mode="leave_one_out"), paid), within=0.06),
    Variant("13.cispo", "CISPO falls behind GRPO.",
        (paid, partial(paid, loss_mode="cispo", aggregation="token_mean"))),
    Variant("13.dapo",
        "DAPO is behind GRPO, with tied groups asked again in place of other prompts.",
        (paid, partial(paid, **dapo_pieces))),
    Claim("13.penalty",
        "A loud penalty for length is learned first: responses become shorter.",
        (written, partial(written, **dapo_pieces)),
        not_tried=NO_PROMPTS | {BEST: "a longer response is not better"}),
    Variant("13.stale", "A clip around a stale writer is a speed limit.",
        (stale, partial(stale, old_log_probs_from="sampler"))),
    Variant("13.turns", "In equal time, a short queue learns more than taking turns.",
        (queue_of_4, partial(in_four_minutes, age=0, seconds=22.65))),
    Variant("13.queue", "In equal time, a queue of 4 learns more than one of 16.",
        (queue_of_4, queue_of_16)),
)
# fmt: on
