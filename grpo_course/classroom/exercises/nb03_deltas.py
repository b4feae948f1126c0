"""The exercises of 03_deltas."""

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import (
    CLOSE_TOGETHER,
    case,
    group_mean,
    group_std,
)
from grpo_course.classroom.old_check.exercise import Exercise, Mistake

AXES = {"rewards": "batch trial", "return": "batch trial"}


TWO_GROUPS = case("two groups", rewards=[[0.0, 1.0, 3.0, 4.0], [5.0, 5.0, 5.0, 9.0]])
SQUARE = case(
    "as many groups as responses",
    rewards=[[1.0, 2.0, 6.0], [0.0, 0.0, 3.0], [4.0, 8.0, 9.0]],
)
ALONE = case("one group", rewards=[[-1.0, 0.5, -4.0, 1.5]])
TIED = case("a group whose rewards tie", rewards=[[1.0, 1.0, 1.0], [0.0, 2.0, 4.0]])

FORGOT_KEEPDIM = (
    "The group mean lost its axis, so group i's mean meets response i. Keep an axis "
    "of size 1: mean(dim=-1, keepdim=True)."
)


def center_by_group(rewards):
    """float [batch trial] -> float [batch trial], each row sums to zero"""
    return rewards - rewards.mean(dim=-1, keepdim=True)


CENTER_BY_GROUP = Exercise(
    key="3.1",
    name="center_by_group",
    solution=center_by_group,
    axes=AXES,
    cases=(TWO_GROUPS, SQUARE, TIED, ALONE),
    words={
        "whole": "Your deltas do not sum to zero in each group: you averaged over the "
        "whole batch. Each prompt has its own mean.",
        "axis": "You averaged over the batch axis, across prompts. A group is a row: "
        "take the mean along trial, the last axis.",
        "keepdim lost": FORGOT_KEEPDIM,
        "rewards.mean(dim=-1, keepdim=True)": "You return the mean itself. The delta "
        "is the reward minus it, one for each response.",
        "difference turned": "The sign is reversed: a response better than its group "
        "needs a positive delta. Reward minus mean, not mean minus reward.",
    },
    mistakes=(
        Mistake(
            lambda r: (r - group_mean(r)) / group_std(r),
            "You also divide by the spread: that is normalizing, exercise 3.3. "
            "Centering only takes the mean away.",
        ),
    ),
    insight="The deltas of each group sum to zero, and a tied group says nothing.",
)


def _best_other(rewards: Tensor) -> Tensor:
    itself = torch.eye(rewards.shape[-1], dtype=torch.bool)
    others = rewards[..., None, :].masked_fill(itself, -torch.inf)
    return others.max(-1).values


def leave_one_out(rewards):
    """float [batch trial] -> float [batch trial]"""
    others = rewards.sum(dim=-1, keepdim=True) - rewards
    return rewards - others / (rewards.shape[-1] - 1)


LEAVE_ONE_OUT = Exercise(
    key="3.2",
    name="leave_one_out",
    solution=leave_one_out,
    axes=AXES,
    cases=(
        TWO_GROUPS,
        SQUARE,
        TIED,
        ALONE,
        case("groups of two", rewards=[[0.0, 1.0], [7.0, 3.0], [2.0, 2.0]]),
    ),
    words={
        "not divided": "You subtract the sum of the others. Divide it by their "
        "number, G - 1.",
        "rewards.shape[-1]": "You divide the sum of the others by G. There are only G "
        "- 1 of them.",
        "wrong count": "You divide by the number of prompts less one. shape[0] is the "
        "batch axis; the group size is shape[-1].",
        "rewards.sum(dim=-1, keepdim=True)": "Your sum is that of the whole group. "
        "Take the response's own reward off before you divide.",
        "others / (rewards.shape[-1] - 1)": "You return the baseline itself. The "
        "delta is the reward minus it.",
    },
    mistakes=(
        Mistake(
            lambda r: r - group_mean(r),
            "Your mean contains the response's own reward. Leave it out: the mean of "
            "the G - 1 others.",
        ),
        Mistake(
            lambda r: (r - group_mean(r)) * (r.shape[-1] - 1) / r.shape[-1],
            "The factor is upside down: centering is leave-one-out times (G - 1) / G, "
            "so leave-one-out is centering times G / (G - 1).",
        ),
        Mistake(
            lambda r: r - r.roll(1, -1),
            "You subtract the reward of one neighbour. The baseline is the mean of "
            "all the others.",
        ),
        Mistake(
            lambda r: r - r[:, 1:].mean(-1, keepdim=True),
            "You leave the first response out of every mean. Each response leaves "
            "out itself.",
        ),
        Mistake(
            lambda r: r - _best_other(r),
            "You subtract the best of the others. The baseline is their mean.",
        ),
        Mistake(
            lambda r: r - (r.sum() - r) / (r.numel() - 1),
            "Your others come from the whole batch. They are the other responses to "
            "the same prompt: the same row.",
        ),
    ),
    equivalent={
        "rewards[:1]": "every group has the same size",
    },
    insight="A baseline without the response's own reward leaves the gradient "
    "unbiased. It equals centering times G / (G - 1).",
)

EPSILON = (
    "A tied group must give zero. The mean of equal rewards is off by a rounding "
    "error, and your epsilon is too small against it."
)
TIED_TENTHS = case("eight rewards that tie at 0.1", rewards=[[0.1] * 8], hint=EPSILON)
NEAR_1000 = (
    "A tied group must give zero. Near 1000 a rounding error is larger than your "
    "epsilon: take one reward of the group off before you average."
)
TIED_HIGH = case(
    "eight rewards that tie at 1000.1", rewards=[[1000.1] * 8], hint=NEAR_1000
)
EPSILON_TOO_LARGE = (
    "Your epsilon is too large: it counts as part of the spread, and beside a small "
    "spread it makes the deltas vanish. Keep it near 1e-4."
)


def normalize_by_group(rewards):
    """float [batch trial] -> float [batch trial]"""
    shifted = rewards - rewards[:, :1]  # exactly zero in a tied group
    centered = shifted - shifted.mean(dim=-1, keepdim=True)
    return centered / (centered.std(dim=-1, keepdim=True) + 1e-4)


NORMALIZE_BY_GROUP = Exercise(
    key="3.3",
    name="normalize_by_group",
    solution=normalize_by_group,
    axes=AXES,
    tolerance=1e-3,  # with or without an epsilon of 1e-4
    cases=(
        TWO_GROUPS,
        SQUARE,
        TIED,
        ALONE,
        TIED_TENTHS,
        TIED_HIGH,
        case(
            "a tied group beside two that are not",
            "Each group is tied or not on its own, and needs a shift of its own: one "
            "of its own rewards.",
            rewards=[[1.0, 0.0, 0.0, 2.0] * 2, [1000.1] * 8, [3.0, 1.0] * 4],
        ),
        CLOSE_TOGETHER,
    ),
    words={
        "not divided": "You center but do not divide: the spread is missing.",
        "rewards": NEAR_1000,
        "0.1": EPSILON_TOO_LARGE,
        "shifted": "You take one reward of the group off, and not the mean: these "
        "deltas are not centered.",
    },
    mistakes=(
        Mistake(
            lambda r: (r - group_mean(r)) / group_std(r),
            "A tied group has no spread: 0/0 is not a number, and a rounding error "
            "over a rounding error is noise. Its deltas must be exactly zero.",
        ),
        Mistake(
            lambda r: r / (group_std(r) + 1e-4),
            "You divide by the spread but do not take the mean away: these deltas are "
            "not centered.",
        ),
        Mistake(
            lambda r: (r - group_mean(r)) / (group_std(r) + 1e-2),
            EPSILON_TOO_LARGE,
        ),
    ),
    equivalent={
        "1e-08": "after the shift ties are exactly zero, so any small epsilon does",
    },
    insight="Deltas are now in units of their group's spread, so prompts with large "
    "rewards no longer outweigh the others.",
)


def softmax_minus_uniform(rewards):
    """float [batch trial] -> float [batch trial], each row sums to zero"""
    return rewards.softmax(dim=-1) - 1 / rewards.shape[-1]


SOFTMAX_MINUS_UNIFORM = Exercise(
    key="3.4",
    name="softmax_minus_uniform",
    solution=softmax_minus_uniform,
    axes=AXES,
    cases=(
        TWO_GROUPS,
        SQUARE,
        TIED,
        ALONE,
        case(
            "large rewards",
            rewards=[[200.0, 201.0, 199.0]],
            hint="exp(200) is infinite in float32. Use softmax, which takes the "
            "largest reward away first.",
        ),
        case(
            "a group of large rewards beside one of small",
            rewards=[[0.0, 1.0, 2.0], [200.0, 201.0, 199.0]],
            hint="You take the largest reward of the whole batch away, and exp of "
            "what is left is zero in the other group. softmax does it for each row.",
        ),
    ),
    words={
        "rewards.softmax(dim=-1)": "These weights are all positive: wrong answers are "
        "pushed up too. Subtract their mean, which is 1/G.",
        "axis": "Your softmax runs over the batch, so prompts compete. Responses to "
        "one prompt do: softmax along trial.",
        "wrong count": "You subtract 1 over the number of prompts. A group has G "
        "responses: the size of the last axis.",
        "log added": "You used log_softmax: logs of weights. The weights themselves "
        "come from softmax.",
    },
    mistakes=(
        Mistake(
            lambda r: r.softmax(0) - 1 / r.shape[0],
            "Your softmax runs over the batch, so prompts compete. Responses to one "
            "prompt do: softmax along trial.",
        ),
        Mistake(
            lambda r: r.softmax(-1) - 0.25,
            "You subtract 1/4, which fits groups of four only. A group has "
            "rewards.shape[-1] responses.",
        ),
        Mistake(
            lambda r: r.softmax(-1) - group_mean(r),
            "You subtract the mean reward from the weights. Subtract the mean weight: "
            "1/G.",
        ),
        Mistake(
            lambda r: r.log_softmax(-1),
            "You used log_softmax: logs of weights. The weights themselves come from "
            "softmax.",
        ),
    ),
    equivalent={
        "rewards[:1]": "every group has the same size",
    },
    insight="With 1/G taken away, the weights of a group sum to zero: a tied group "
    "pushes nothing any more.",
)
