"""The exercises of 03_deltas."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import (
    center,
    keep_centered_max,
    keep_max,
    keep_rewards,
    normalize,
    normalize_by_batch,
    softmax_weights,
)

TWO_GROUPS = case("two groups", rewards=[[0.0, 1.0, 3.0, 4.0], [5.0, 5.0, 5.0, 9.0]])
ONE_BY_ONE = replace(
    TWO_GROUPS,
    hint="Take the first reward, 0. The others of its group are 1, 3 and 4, whose mean "
    "is 8/3, so its delta is 0 - 8/3.",
)
SQUARE = case(
    "as many groups as responses",
    rewards=[[2.0, 1.0, 6.0], [0.0, 0.0, 3.0], [8.0, 4.0, 9.0]],
)
ALONE = case("one group", rewards=[[-1.0, 0.5, -4.0, 1.5]])
TIED = case("a group whose rewards tie", rewards=[[1.0, 1.0, 1.0], [0.0, 2.0, 4.0]])


@exercise("3.1")
def leave_one_out(rewards):
    """float [batch trial] -> float [batch trial]"""
    others = rewards.sum(dim=-1, keepdim=True) - rewards
    return rewards - others / (rewards.shape[-1] - 1)


leave_one_out.insight = (
    "A baseline without the response's own reward leaves the gradient unbiased. It "
    "equals centering times G / (G - 1)."
)
leave_one_out.cases = (
    ONE_BY_ONE,
    SQUARE,
    TIED,
    ALONE,
    case("groups of two", rewards=[[0.0, 1.0], [7.0, 3.0], [2.0, 2.0]]),
)
leave_one_out.mistakes = """
return (rewards.sum(-1, keepdim=True) - rewards) / (rewards.shape[-1] - 1) | This is \
the mean of the others, the baseline. Subtract it from the rewards.
/ (rewards.shape[-1] - 1) => | You subtract the sum of the others. Divide it by their \
number, G - 1.
(rewards.shape[-1] - 1) => rewards.shape[-1] - 1 | The division comes before the \
minus: you divide by G, and then take 1 away. Put G - 1 into brackets.
(rewards.shape[-1] - 1) => rewards.shape[-1] | You divide the sum of the others by G. \
There are only G - 1 of them.
return (rewards - rewards.mean(-1, keepdim=True)) * (1 - 1 / rewards.shape[-1]) | \
Your factor is upside down. Without its own reward, each delta is larger than a \
centered one.
keepdim=True) - rewards => keepdim=True) | Your sum is that of the whole group. Take \
the response's own reward off before you divide.
return rewards - rewards.mean(-1, keepdim=True) | Your mean contains the response's \
own reward. Leave it out: the mean of the G - 1 others.
return rewards - (rewards.sum() - rewards) / (rewards.numel() - 1) | Your others come \
from the whole batch. They are the other responses to the same prompt: the same row.
dim=-1 => dim=0 && (rewards.shape[-1] - 1) => max(len(rewards) - 1, 1) | Your others \
are the responses to other prompts. They are the other responses to the same prompt: \
sum along trial, the last axis.
"""


# Ways to make deltas for 3.2, as they are found in the wild; each shows its name.


def reward_of_the_first_best(rewards: Tensor) -> Tensor:
    first = one_hot(rewards.argmax(dim=-1), rewards.shape[-1])
    return rewards * first


def reward_of_the_median(rewards: Tensor) -> Tensor:
    one = one_hot(rewards.median(dim=-1).indices, rewards.shape[-1])
    return rewards * one


def centered_ranks(rewards: Tensor) -> Tensor:
    ranks = rewards.argsort(dim=-1).argsort(dim=-1).float()
    return ranks - ranks.mean(dim=-1, keepdim=True)


def reward_below_full_marks(rewards: Tensor) -> Tensor:
    return rewards - 5000


def centered_by_batch(rewards: Tensor) -> Tensor:
    return rewards - rewards.mean()


def none_below_zero(rewards: Tensor) -> Tensor:
    deltas = center(rewards)
    return deltas - deltas.min()


def a_little_for_all(rewards: Tensor) -> Tensor:
    return center(rewards) + 0.01


def a_little_for_the_first(rewards: Tensor) -> Tensor:
    first = one_hot(torch.zeros_like(rewards[..., 0]).long(), rewards.shape[-1])
    return center(rewards) + 0.007 * first


def centered_with_rounding(rewards: Tensor) -> Tensor:
    return rewards - rewards.mean(dim=-1, keepdim=True)


def one_by_one(rewards: Tensor) -> Tensor:
    """Their sum, in an order that rounds alike on every machine."""
    return reduce(torch.add, rewards.unbind(-1))


def rounded(rewards: Tensor, epsilon: float) -> Tensor:
    """Divided by the spread, with what rounding leaves of a tied group."""
    trials = rewards.shape[-1]
    deltas = rewards - (one_by_one(rewards) / trials)[..., None]
    squares = one_by_one(deltas.square()) / (trials - 1)
    return deltas / (squares.sqrt()[..., None] + epsilon)


def divided_epsilon_1e_8(rewards: Tensor) -> Tensor:
    return rounded(rewards, 1e-8)


def divided_epsilon_1e_4(rewards: Tensor) -> Tensor:
    return rounded(rewards, 1e-4)


def divided_by_mean_deviation(rewards: Tensor) -> Tensor:
    deltas = rewards - (one_by_one(rewards) / rewards.shape[-1])[..., None]
    return deltas / (deltas.abs().mean(dim=-1, keepdim=True) + 1e-8)


def said(test: Callable, deltas_of: Callable) -> str | None:
    """What a test says of a way to make deltas."""
    answer = test(deltas_of)
    if isinstance(answer, Tensor) and answer.numel() != 1:
        raise TypeError(
            f"a test returns one yes or no; this is a tensor of {answer.numel()}. "
            "Take .all(), or the largest deviation before you compare."
        )
    return None if answer is None else "yes" if answer else "no"


ALARM = (
    "It pushes no tied group, beyond a rounding error of 1e-4, and your test says "
    "that it does. Look at the tied group alone, and allow for rounding. True means "
    "that nothing is pushed."
)
OVERLOOKED = {
    keep_rewards: (
        "Raw rewards of a tied group push as hard as the rewards are large. Were yours"
        " all zero?"
    ),
    softmax_weights: "Each weight of a tied group is 1/G, whatever the rewards are.",
    keep_max: (
        "In a tied group every response is the best, and keeps its reward. Were yours "
        "all zero?"
    ),
    reward_of_the_first_best: (
        "Of equals this one picks the first, and pushes that one alone. Ask it of all "
        "responses."
    ),
    reward_of_the_median: (
        "Of equals this one picks one in the middle, and pushes that one alone. Ask it "
        "of all responses."
    ),
    centered_ranks: (
        "Ranks put equal rewards in some order, so this one pushes some of them up and"
        " others down. The pushes cancel in their sum: ask it of each response."
    ),
    reward_below_full_marks: (
        "This one pushes tied groups down. A push downwards is a push: take abs() "
        "before you compare."
    ),
    centered_by_batch: (
        "Alone in its batch, or beside ties at the same number, a tied group gets zero "
        "here. Put a group with other rewards beside it."
    ),
    none_below_zero: (
        "Beside other ties a tied group gets zero here, and beside a group whose \
rewards"
        " differ it is pushed up. Put such a group beside it."
    ),
    a_little_for_all: (
        "This one pushes every response up by 0.01, a tied group as well. Rounding is "
        "smaller: ask for less than 0.001."
    ),
    a_little_for_the_first: (
        "This one pushes a single response of a group up by 0.007, and the mean size of"
        " eight deltas is smaller than 0.001. Ask it of each response."
    ),
    divided_epsilon_1e_8: (
        "Its mean of eight rewards of 0.1 is rounded, and the spread is as small as the"
        " rounding. Tie eight rewards whose mean is rounded: that of four, or of 5.0, "
        "is exact."
    ),
    divided_epsilon_1e_4: (
        "At 0.1 its epsilon is larger than the rounding, and at 1000.1 it is not. Tie "
        "eight large rewards that are no whole numbers."
    ),
    divided_by_mean_deviation: (
        "Its mean of rewards is rounded, and it divides by the mean size of the rest. "
        "Tie eight rewards whose mean is rounded."
    ),
}


@exercise("3.2", use=said, exact=True)
def ties_push_nothing(deltas_of):
    """a function from rewards to deltas, such as those above -> True or False"""
    tied, other = [1000.1] * 8, [0.0, 1.0, 2.0, 3.0] * 2
    deltas = deltas_of(torch.tensor([tied, other]))
    return bool((deltas[0].abs() < 1e-3).all())


ties_push_nothing.insight = (
    "It judges each of these functions rightly. A few lines find faults that no "
    "training curve shows."
)
ties_push_nothing.cases = (
    case("this one pushes no tied group", ALARM, deltas_of=center),
    *(
        case("this one pushes some tied groups", hint, deltas_of=deltas_of)
        for deltas_of, hint in OVERLOOKED.items()
    ),
    *(
        case("this one pushes no tied group", ALARM, deltas_of=deltas_of)
        for deltas_of in (
            *(normalize, normalize_by_batch, keep_centered_max),
            centered_with_rounding,
        )
    ),
)
ties_push_nothing.mistakes = """
return True | Your test says yes to everything, raw rewards as well: whatever it \
looks at, it is not a tied group whose rewards are large.
[1000.1] * 8 => [5.0] * 8 | The mean of your tied rewards is exact, so a function \
whose fault is rounding passes. Tie eight rewards whose mean is rounded, and large ones.
[1000.1] * 8 => [0.1] * 8 | At 0.1 the rounding is smaller than an epsilon of 1e-4, \
and it grows with the rewards. Tie larger ones.
[1000.1] * 8 => [0.0] * 8 | Your tied rewards are all zero, and there even raw \
rewards push nothing. Tie them at other numbers.
[tied, other] => [tied] | Your tied group is alone in its batch, so a mean over the \
whole batch looks like its own. Put a group with other rewards beside it.
[0.0, 1.0, 2.0, 3.0] * 2 => [5.0] * 8 | Both of your groups are tied, and some \
faults show only beside a group whose rewards differ. Put such a group into the batch.
deltas[0].abs() < 1e-3 => deltas[0] == 0 | You allow no rounding, or less than \
float32 needs. A delta of 1e-5 pushes nothing that anybody could notice: ask for less \
than 1e-3, of rewards between -2000 and 2000. Near a million float32 itself is off by \
more.
(deltas[0].abs() < 1e-3).all() => deltas[0].sum().abs() < 1e-2 | You add the deltas \
up, where pushes in both directions cancel, as those of ranks do. Ask it of each \
response.
(deltas[0].abs() < 1e-3).all() => deltas[0].abs().mean() < 1e-3 | This one pushes a \
single response of a group up by 0.007, and the mean size of eight deltas is smaller \
than 0.001. Ask it of each response.
(deltas[0].abs() < 1e-3).all() => (deltas[0] < 1e-3).all() | A large push downwards \
is a push as well: take abs() before you compare.
"""
