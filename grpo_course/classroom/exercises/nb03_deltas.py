"""The exercises of 03_deltas."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.algorithm.deltas import compute_deltas
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake

AXES = {"rewards": "batch trial", "return": "batch trial"}


def _case(description: str, rewards: list, hint: str = "") -> Case:
    return Case(description, {"rewards": torch.tensor(rewards)}, hint)


def _solution(mode: str) -> Callable:
    return lambda rewards: compute_deltas(rewards, mode)


def _mean(rewards: Tensor) -> Tensor:
    return rewards.mean(-1, keepdim=True)


def _std(rewards: Tensor) -> Tensor:
    return rewards.std(-1, keepdim=True)


TWO_GROUPS = _case("two groups", [[0.0, 1.0, 3.0, 4.0], [5.0, 5.0, 5.0, 9.0]])
SQUARE = _case(
    "as many groups as responses", [[1.0, 2.0, 6.0], [0.0, 0.0, 3.0], [4.0, 8.0, 9.0]]
)
TIED = _case("a group whose rewards tie", [[1.0, 1.0, 1.0], [0.0, 2.0, 4.0]])

FORGOT_KEEPDIM = (
    "The group mean lost its axis, so group i's mean meets response i. Keep an axis "
    "of size 1: mean(dim=-1, keepdim=True)."
)

CENTER_BY_GROUP = Exercise(
    key="3.1",
    name="center_by_group",
    solution=_solution("centered_rewards"),
    axes=AXES,
    cases=(TWO_GROUPS, SQUARE, TIED),
    mistakes=(
        Mistake(
            lambda rewards: rewards - rewards.mean(),
            "Your deltas do not sum to zero in each group: you averaged over the "
            "whole batch. Each prompt has its own mean.",
        ),
        Mistake(
            lambda rewards: rewards - rewards.mean(0),
            "You averaged over the batch axis, across prompts. A group is a row: "
            "take the mean along trial, the last axis.",
        ),
        Mistake(lambda rewards: rewards - rewards.mean(-1), FORGOT_KEEPDIM),
        Mistake(
            lambda rewards: _mean(rewards) - rewards,
            "The sign is reversed: a response better than its group needs a "
            "positive delta. Reward minus mean, not mean minus reward.",
        ),
        Mistake(
            lambda rewards: (rewards - _mean(rewards)) / _std(rewards),
            "You also divide by the spread: that is normalizing, exercise 3.3. "
            "Centering only takes the mean away.",
        ),
    ),
    insight="The deltas of each group sum to zero: a tied group says nothing, and a "
    "constant added to all rewards changes nothing.",
)

EPSILON = (
    "A tied group must give zero. The mean of equal rewards is off by a rounding "
    "error, and your epsilon is too small against it."
)
TIED_TENTHS = _case("eight rewards that tie at 0.1", [[0.1] * 8], EPSILON)
TIED_HIGH = _case(
    "eight rewards that tie at 1000.1",
    [[1000.1] * 8],
    "A tied group must give zero. Near 1000 a rounding error is larger than your "
    "epsilon: take one reward of the group off before you average.",
)

NORMALIZE_BY_GROUP = Exercise(
    key="3.3",
    name="normalize_by_group",
    solution=_solution("normalized_rewards"),
    axes=AXES,
    tolerance=1e-3,  # with or without an epsilon of 1e-4
    cases=(TWO_GROUPS, SQUARE, TIED, TIED_TENTHS, TIED_HIGH),
    mistakes=(
        Mistake(
            lambda rewards: (rewards - _mean(rewards)) / _std(rewards),
            "NaN: a tied group has no spread, and 0/0 is not a number. Its deltas "
            "shall be exactly zero.",
        ),
        Mistake(
            lambda rewards: (
                compute_deltas(rewards, "centered_rewards")
                / (rewards.std(-1, keepdim=True, correction=0) + 1e-4)
            ),
            "You divide by the population spread (mean of squares). The sample "
            "spread divides by G - 1, as torch.std does by default.",
        ),
        Mistake(
            lambda rewards: (
                compute_deltas(rewards, "centered_rewards") / (rewards.std() + 1e-4)
            ),
            "You divide by the spread of the whole batch. Each group is measured in "
            "its own spread: std along trial.",
        ),
        Mistake(
            lambda rewards: (rewards - rewards.mean()) / (rewards.std() + 1e-4),
            "You use mean and spread of the whole batch. Both belong to the group: "
            "take them along trial, the last axis.",
        ),
        Mistake(
            lambda rewards: (rewards - _mean(rewards)) / (_std(rewards) + 1e-8),
            EPSILON,
        ),
        Mistake(
            lambda rewards: rewards / (_std(rewards) + 1e-4),
            "You divide by the spread but do not take the mean away: these deltas "
            "are not centered.",
        ),
        Mistake(
            lambda rewards: (
                compute_deltas(rewards, "centered_rewards")
                / (rewards.var(-1, keepdim=True) + 1e-4)
            ),
            "You divide by the variance. The spread is its square root: std.",
        ),
        Mistake(
            lambda rewards: compute_deltas(rewards, "centered_rewards"),
            "You center but do not divide: the spread is missing.",
        ),
    ),
    insight="Deltas are now in units of their group's spread, so prompts with large "
    "rewards no longer outweigh the others.",
)

LEAVE_ONE_OUT = Exercise(
    key="3.2",
    name="leave_one_out",
    solution=_solution("leave_one_out"),
    axes=AXES,
    cases=(
        TWO_GROUPS,
        SQUARE,
        TIED,
        _case("groups of two", [[0.0, 1.0], [7.0, 3.0], [2.0, 2.0]]),
    ),
    mistakes=(
        Mistake(
            lambda rewards: rewards - _mean(rewards),
            "Your mean contains the response's own reward. Leave it out: the mean "
            "of the G - 1 others.",
        ),
        Mistake(
            lambda rewards: rewards - (rewards.sum(-1, keepdim=True) - rewards),
            "You subtract the sum of the others. Divide it by their number, G - 1.",
        ),
        Mistake(
            lambda rewards: (
                rewards - (rewards.sum(-1, keepdim=True) - rewards) / rewards.shape[-1]
            ),
            "You divide the sum of the others by G. There are only G - 1 of them.",
        ),
        Mistake(
            lambda rewards: (
                rewards
                - (rewards.sum(-1, keepdim=True) - rewards) / (rewards.shape[0] - 1)
            ),
            "You divide by the number of prompts less one. shape[0] is the batch "
            "axis; the group size is shape[-1].",
        ),
        Mistake(
            lambda rewards: rewards - _best_other(rewards),
            "You subtract the best of the others. The baseline is their mean.",
        ),
        Mistake(
            lambda rewards: (
                (rewards.sum(-1, keepdim=True) - rewards) / (rewards.shape[-1] - 1)
            ),
            "You return the baseline itself. The delta is the reward minus it.",
        ),
        Mistake(
            lambda rewards: rewards - (rewards.sum() - rewards) / (rewards.numel() - 1),
            "Your others come from the whole batch. They are the other responses "
            "to the same prompt: the same row.",
        ),
    ),
    insight="A baseline without the response's own reward leaves the gradient "
    "unbiased. It equals centering times G / (G - 1).",
)


def _best_other(rewards: Tensor) -> Tensor:
    itself = torch.eye(rewards.shape[-1], dtype=torch.bool)
    others = rewards[..., None, :].masked_fill(itself, -torch.inf)
    return others.max(-1).values


SOFTMAX_MINUS_UNIFORM = Exercise(
    key="3.4",
    name="softmax_minus_uniform",
    solution=_solution("centered_softmax_rewards"),
    axes=AXES,
    cases=(
        TWO_GROUPS,
        SQUARE,
        TIED,
        _case(
            "large rewards",
            [[200.0, 201.0, 199.0]],
            "exp(200) is infinite in float32. Use softmax, which takes the largest "
            "reward away first.",
        ),
    ),
    mistakes=(
        Mistake(
            lambda rewards: rewards.softmax(-1),
            "These weights are all positive: wrong answers are pushed up too. "
            "Subtract their mean, which is 1/G.",
        ),
        Mistake(
            lambda rewards: rewards.softmax(0) - 1 / rewards.shape[-1],
            "Your softmax runs over the batch, so prompts compete. Responses to one "
            "prompt do: softmax along trial.",
        ),
        Mistake(
            lambda rewards: rewards.softmax(0) - 1 / rewards.shape[0],
            "Your softmax runs over the batch, so prompts compete. Responses to one "
            "prompt do: softmax along trial.",
        ),
        Mistake(
            lambda rewards: rewards.softmax(-1) - _mean(rewards),
            "You subtract the mean reward from the weights. Subtract the mean "
            "weight: 1/G.",
        ),
        Mistake(
            lambda rewards: rewards.softmax(-1) - 1 / rewards.shape[0],
            "You subtract 1 over the number of prompts. A group has G responses: "
            "the size of the last axis.",
        ),
        Mistake(
            lambda rewards: rewards.log_softmax(-1),
            "You used log_softmax: logs of weights. The weights themselves come "
            "from softmax.",
        ),
        Mistake(
            lambda rewards: rewards.log_softmax(-1) - 1 / rewards.shape[-1],
            "You used log_softmax: logs of weights. The weights themselves come "
            "from softmax.",
        ),
    ),
    insight="With 1/G taken away, the weights of a group sum to zero: a tied group "
    "pushes nothing any more.",
)

EXERCISES = (
    CENTER_BY_GROUP,
    LEAVE_ONE_OUT,
    NORMALIZE_BY_GROUP,
    SOFTMAX_MINUS_UNIFORM,
)
