"""The claims of 13_beyond_grpo."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

from torch import Tensor

from claims.claim import Claim, Setting
from grpo_course.loop import Rollout
from grpo_course.off_policy import EngineSampler, StaleSampler, with_overlong_penalty
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    ASK,
    LENGTH,
    SequencePolicy,
    all_sort_prompts,
    place_reward,
    sorted_numbers,
    train_sort,
)

NO_PROMPTS = {"other prompts": "the epochs draw from all 216 of them"}
NO_RATE = {"each at its best rate": "a longer response is not better"}
LIMIT = Sampler(6, eos=ASK, pad=ASK)


def numbers_written(rollout: Rollout) -> Tensor:
    """The tokens of a response; the end is free. -> int [... batch trial]"""
    if rollout.mask is None or rollout.finished is None:
        raise ValueError("a response here can end: sample with LIMIT")
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


def hot_engine(policy: SequencePolicy) -> EngineSampler:
    """Another engine draws the samples, at temperature 0.5."""
    return EngineSampler(policy, replace(LIMIT, temperature=0.5))


penalized = with_overlong_penalty(ended_reward, 6, 2)
dr_grpo = partial(paid, deltas_mode="centered_rewards", aggregation="constant")
rloo = partial(paid, deltas_mode="leave_one_out")
four: dict[str, Any] = {
    "aggregation": "token_mean",
    "epsilon_high": 0.28,
    "num_resamples": 3,
}
cispo = partial(paid, loss_mode="cispo", aggregation="token_mean")


def stale(setting: Setting, lag: int = 4, **change) -> Tensor:
    """The reward of the last five epochs, with an old writer. -> [seed]"""
    knobs: dict[str, Any] = {"wrap": lambda policy: StaleSampler(policy, lag)}
    knobs |= {"num_steps_per_epoch": 4} | change
    num_epochs, rate = round(20 * setting.length), 0.003 * setting.rate
    _, seen = train_sort(place_reward, setting.seeds, num_epochs, rate, **knobs)
    return seen.epochs("mean_reward")[-5:].mean(dim=0)


@cache
def in_four_minutes(setting: Setting, age: int, seconds: float) -> Tensor:
    """The reward where an update takes so many seconds, from so old samples. [seed]"""
    num_epochs, rate = round(240 / seconds * setting.length), 0.01 * setting.rate
    knobs: dict[str, Any] = {"wrap": lambda policy: StaleSampler(policy, age)}
    knobs |= {"num_steps_per_epoch": 4}
    policy, _ = train_sort(place_reward, setting.seeds, num_epochs, rate, **knobs)
    return place_reward(policy.sample(all_sort_prompts(), 4)).mean((-2, -1))


def compared(name: str, sentence: str, higher, lower, **more) -> Claim:
    """A claim of this notebook: its epochs draw from all prompts."""
    return Claim(f"13.{name}", sentence, higher, lower, leave_out=NO_PROMPTS, **more)


SOFT = "CISPO and SAPO fall behind where steps are large"
taking_turns = partial(in_four_minutes, age=0, seconds=22.65)
queue_of_4 = partial(in_four_minutes, age=3, seconds=6.06)
# Its mean age over 400 batches, the first of which are younger; in the end it is 15.
queue_of_16 = partial(in_four_minutes, age=14, seconds=5.04)

CLAIMS = (
    compared("dr_grpo", "Dr. GRPO leads at the two lower rates", dr_grpo, paid),
    compared(
        "rloo",
        "RLOO, its bars included, stays within 0.06 of GRPO at every rate",
        rloo,
        paid,
        within=0.06,
    ),
    compared("cispo", SOFT, paid, cispo),
    compared(
        "sapo",
        SOFT,
        paid,
        partial(paid, loss_mode="sapo"),
    ),
    compared(
        "dapo",
        "DAPO with all five pieces is behind at every rate",
        paid,
        partial(paid, reward_fn=penalized, **four),
    ),
    Claim(
        "13.penalty",
        "A loud penalty for length is learned first.",
        written,
        partial(written, reward_fn=penalized, **four),
        leave_out=NO_PROMPTS | NO_RATE,
    ),
    compared(
        "engine",
        "An overconfident engine costs something",
        paid,
        partial(paid, wrap=hot_engine),
    ),
    compared(
        "stale",
        "a clip around a stale writer is a speed limit.",
        stale,
        partial(stale, old_log_probs_from="sampler"),
    ),
    compared(
        "turns",
        "Not waiting buys updates",
        queue_of_4,
        taking_turns,
    ),
    compared(
        "queue",
        "a queue that is too long pays in age",
        queue_of_4,
        queue_of_16,
    ),
)
