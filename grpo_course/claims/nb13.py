"""The claims of 13_beyond_grpo."""

from functools import partial

from torch import Tensor

from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.sampler import Sampler
from grpo_course.algorithm.variants.stale import StaleSampler
from grpo_course.claims.claim import Claim, Setting
from grpo_course.sequences.recipes import train_sort
from grpo_course.sequences.tasks import (
    ASK,
    LENGTH,
    all_sort_prompts,
    place_reward,
    sorted_numbers,
)

NO_PROMPTS = {"other prompts": "the epochs draw from all 216 of them"}
LIMIT = Sampler(6, eos=ASK, pad=ASK)


def ended_reward(rollout: Rollout) -> Tensor:
    """Right places among all that was written, at least three. -> [... batch trial]"""
    right = rollout.responses[..., :LENGTH] == sorted_numbers(rollout.prompts)[:, None]
    right = (right & rollout.mask[..., :LENGTH]).sum(-1)
    written = rollout.mask.sum(-1) - rollout.finished.long()  # EOS is free
    return right / written.clamp(min=LENGTH)


def trained(setting: Setting, rate: float, **change) -> Tensor:
    """The reward on all prompts after 20 epochs of four steps. -> [seed]"""
    knobs = {"sampler": LIMIT, "num_steps_per_epoch": 4} | change
    num_epochs, rate = round(20 * setting.length), rate * setting.rate
    policy, _ = train_sort(ended_reward, setting.seeds, num_epochs, rate, **knobs)
    return ended_reward(policy.sample(all_sort_prompts(), 4)).mean((-2, -1))


def lagging(policy: object) -> StaleSampler:
    """Responses are written by the policy of four epochs ago."""
    return StaleSampler(policy, 4)


def stale(setting: Setting, **change) -> Tensor:
    """The reward of the last five epochs, with a writer four epochs old. -> [seed]"""
    knobs = {"wrap": lagging, "num_steps_per_epoch": 4} | change
    num_epochs, rate = round(20 * setting.length), 0.003 * setting.rate
    _, seen = train_sort(place_reward, setting.seeds, num_epochs, rate, **knobs)
    return seen.epochs("mean_reward")[-5:].mean(dim=0)


CLAIMS = (
    Claim(
        "13.cispo",
        "At 0.01, only CISPO and SAPO stand apart.",
        partial(trained, rate=0.01),
        partial(trained, rate=0.01, loss_mode="cispo", aggregation="token_mean"),
        leave_out=NO_PROMPTS,
    ),
    Claim(
        "13.stale",
        "a clip around a stale writer is a speed limit.",
        stale,
        partial(stale, old_log_probs_from="sampler"),
        leave_out=NO_PROMPTS,
    ),
)
