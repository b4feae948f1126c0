"""Bugs in rewards, in deltas, and in what a step remembers."""

import re
from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.algorithm.deltas import SPREAD_EPSILON, center, normalize
from grpo_course.classroom.bugs.bug import Bug

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
ANSWER = re.compile(r"<answer>\s*-?\d+\s*</answer>")


def one_regex_reward(completion: str) -> float:
    """0.1 for each of the four tags, 0.1 for a whole number as the answer."""
    form = r"<think>.*</think>\s*<answer>\s*-?\d+\s*</answer>$"
    return 0.5 if re.match(form, completion, re.DOTALL) else 0.0


def repaired_format_reward(completion: str) -> float:
    """0.1 for each of the four tags, 0.1 for a whole number as the answer."""
    points = sum(completion.count(tag) == 1 for tag in TAGS)  # repeating pays nothing
    number = ANSWER.search(completion) is not None
    return (points + number) / 10


def pays_for_parts(reward: Callable) -> bool:
    """Leave out the last tag: some of the reward is left, but less."""
    whole = "<think>2 + 2</think><answer>4</answer>"
    return 0 < reward(whole.removesuffix(TAGS[-1])) < reward(whole)


REGEX = Bug(
    name="one regex for everything",
    symptom="the reward has two values; many groups are tied at 0",
    probe="list the values that the reward takes on damaged answers",
    cause="the expression matches completely or not at all",
    repaired_line="sum(completion.count(tag) == 1 for tag in TAGS)",
    broken=one_regex_reward,
    repaired=repaired_format_reward,
    healthy=pays_for_parts,
)


def tiny_epsilon(rewards: Tensor) -> Tensor:
    """float [batch trial] -> deltas, float [batch trial]"""
    spread = rewards.std(dim=-1, keepdim=True)
    return (rewards - rewards.mean(dim=-1, keepdim=True)) / (spread + 1e-8)


def tied_means_zero(to_deltas: Callable) -> bool:
    """Tied rewards, whatever their value, give deltas of zero."""
    tied = [torch.full((1, G), R) for R in (0.1, 0.3, 0.7) for G in (8, 12, 16)]
    return not any(to_deltas(group).any() for group in tied)


TINY_EPSILON = Bug(
    name="epsilon below rounding",
    symptom="a policy drifts although every response gets the same reward",
    probe="deltas of eight rewards of 0.1: exactly 0?",
    cause="rounding error divided by rounding error; 1e-8 is no larger than that",
    repaired_line="shifted = rewards - rewards[..., :1]",
    broken=tiny_epsilon,
    repaired=normalize,
    healthy=tied_means_zero,
)


def population_normalize(rewards: Tensor) -> Tensor:
    """float [batch trial] -> deltas, float [batch trial]"""
    centered = center(rewards)
    spread = centered.square().mean(dim=-1, keepdim=True).sqrt()
    return centered / (spread + SPREAD_EPSILON)


def mean_square(to_deltas: Callable, size: int = 2) -> float:
    """The mean of squared deltas in a group of different rewards."""
    return to_deltas(torch.arange(float(size))[None]).square().mean().item()


SPREAD = Bug(
    name="two definitions of the spread",
    symptom="two programs disagree by one constant factor",
    probe="mean of squared deltas: 1, or (G - 1)/G?",
    cause="one divides by G, the other by G - 1",
    repaired_line="(squares / (rewards.shape[-1] - 1)).sqrt()",
    broken=population_normalize,
    repaired=normalize,
    healthy=lambda to_deltas: abs(mean_square(to_deltas) - 1 / 2) < 1e-3,
)


def forgetful_step(rewards: Tensor | None, last: float | None) -> float:
    """The mean reward that one optimizer step logs; `rewards` of new responses."""
    if rewards is not None:  # None on an inner step: nothing was sampled
        mean_reward = rewards.mean().item()
    return mean_reward


def remembering_step(rewards: Tensor | None, last: float | None) -> float | None:
    """The mean reward that one optimizer step logs; `last` is what was logged last."""
    if rewards is not None:  # None on an inner step: nothing was sampled
        last = rewards.mean().item()
    return last


def log_steps(take_step: Callable, num_steps: int) -> list[float | None]:
    """What four optimizer steps log, with new responses every `num_steps` of them."""
    logged: list[float | None] = [None]
    for step in range(4):
        is_new = step % num_steps == 0
        new = torch.tensor([[3.0, 1.0 + 2 * step]]) if is_new else None
        logged.append(take_step(new, logged[-1]))
    return logged[1:]


def survives_inner_steps(take_step: Callable) -> bool:
    """Two optimizer steps on one rollout log the same mean reward."""
    try:
        return log_steps(take_step, 2) == [2.0, 2.0, 4.0, 4.0]
    except UnboundLocalError:
        return False


UNBOUND = Bug(
    name="statistics that an inner step lacks",
    symptom="UnboundLocalError at the second step, only for mu > 1",
    probe="run two inner steps once, in a test",
    cause="a local name, assigned only where new responses are sampled",
    repaired_line="last = rewards.mean().item()",
    broken=forgetful_step,
    repaired=remembering_step,
    healthy=survives_inner_steps,
)
