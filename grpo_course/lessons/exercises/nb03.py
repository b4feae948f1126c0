"""The exercises of 03_deltas."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from grpo_course.classroom.check import case, exercise
from grpo_course.formulas import (
    center,
    group_spread,
    keep_centered_max,
    keep_max,
    keep_rewards,
    normalize,
    normalize_by_batch,
    softmax_weights,
)
from grpo_course.sort import response_probs, response_scores

CLOSE_TOGETHER = case(
    "rewards that lie close together",
    "A small difference is a difference: divided by its spread it is as large "
    "as any. Do not round, and keep epsilon near 1e-4.",
    rewards=[[0.0, 0.001], [0.001, 0.0]],
    within=0.15,
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


def policy(*logits: list[float]) -> tuple[Tensor, Tensor]:
    """Probabilities and scores of all responses, from the logits of each position."""
    table = torch.tensor(logits)
    return response_probs(table), response_scores(table)


COIN, SURE = policy([0.0, 0.0]), policy([2.0, 0.0, -1.0])
TWO_PLACES = policy([1.0, 0.0, 0.5], [0.0, -2.0, 1.0])
NINE = torch.tensor([0.0, 1.0, 3.0, 2.0, 0.0, 0.0, 5.0, 1.0, 4.0])


@exercise("3.1", tolerance=1e-4)
def gradient_variance(probs, scores, rewards, baseline):
    """float [all], float [all pos vocab], float [all], number -> scalar"""
    estimates = (rewards - baseline)[:, None, None] * scores  # [all pos vocab]
    mean = (probs[:, None, None] * estimates).sum(dim=0)  # [pos vocab]
    lengths = estimates.square().sum(dim=(1, 2))  # squared, [all]
    return (probs * lengths).sum() - mean.square().sum()


gradient_variance.insight = (
    "The mean estimate does not depend on the baseline, which moves the first term "
    "alone."
)
TWO_PARTS = (
    "Print your two parts. Here the mean of the squared lengths is 4.30, and the squared "
    "length of the mean estimate 0.49, each response weighed with its probability."
)
gradient_variance.cases = tuple(
    case(words, hint, probs=probs, scores=scores, rewards=rewards, baseline=baseline)
    for words, hint, (probs, scores), rewards, baseline in (
        ("two positions", TWO_PARTS, TWO_PLACES, NINE, 1.5),
        (
            "one position, two equally likely answers",
            "",
            COIN,
            torch.tensor([3.0, 1.0]),
            1.0,
        ),
        ("one position, three answers", "", SURE, torch.tensor([2.0, 0.0, 4.0]), 0.5),
        ("no baseline", "", TWO_PLACES, NINE, 0.0),
        ("a baseline below zero", "", TWO_PLACES, NINE, -10.0),
    )
)
gradient_variance.mistakes = """
- mean.square().sum() => | That is the mean of the squared lengths. The variance is \
less: take off the squared length of the mean estimate, squared logit by logit and \
then added.
(probs * lengths).sum() => lengths.mean() && (probs[:, None, None] * \
estimates).sum(dim=0) => estimates.mean(dim=0) | You average as if all responses were \
equally likely. Weigh each with its probability, in both averages.
(probs[:, None, None] * estimates).sum(dim=0) => estimates.mean(dim=0) | Your mean \
estimate counts all responses alike. Weigh each with its probability.
return ((rewards - baseline)[:, None, None] * scores).var(dim=0).sum() | var() takes \
its rows for samples, all of which count alike. Here each row is a response with its \
own probability.
(rewards - baseline)[:, None, None] => rewards[:, None, None] | The baseline changes \
nothing in your result. Take it off the reward, before the product with the score.
.sum(dim=(1, 2)) => .sum(dim=(1, 2)).sqrt() | You average the lengths of the \
estimates. The variance averages their squares: leave out the root.
mean.square().sum() => mean.square().sum().sqrt() | You take off the length of the \
mean estimate. Take off its square: leave out the root.
(probs * lengths).sum() => (probs.square() * lengths).sum() | You square the \
probabilities together with the estimates. They are weights: square the estimates \
alone, then weigh.
estimates.square().sum(dim=(1, 2)) => estimates.sum(dim=(1, 2)).square() | You add \
the logits before you square. The variance is wanted logit by logit: square first, \
then add.
"""


@exercise("3.2")
def leave_one_out(rewards):
    """float [batch trial] -> float [batch trial]"""
    others = rewards.sum(dim=-1, keepdim=True) - rewards
    return rewards - others / (rewards.shape[-1] - 1)


def _unequal_mean(rewards):
    """The mean of the rewards that are not as large. [batch trial] -> [batch trial]"""
    unequal = (rewards[..., None, :] != rewards[..., None]).float()
    sums = (unequal * rewards[..., None, :]).sum(dim=-1)
    return torch.where(unequal.any(dim=-1), sums / unequal.sum(dim=-1), rewards)


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
/ (rewards.shape[-1] - 1) => | You subtract the sum of the others. Divide it by their \
number, G - 1.
(rewards.shape[-1] - 1) => rewards.shape[-1] - 1 | The division comes before the \
minus: you divide by G, and then take 1 away. Put G - 1 into brackets.
(rewards.shape[-1] - 1) => rewards.shape[-1] | You divide the sum of the others by G. \
There are only G - 1 of them.
shape[-1] => shape[0] | You divide by the number of prompts less one. shape[0] is the \
batch axis; the group size is shape[-1].
keepdim=True) - rewards => keepdim=True) | Your sum is that of the whole group. Take \
the response's own reward off before you divide.
return rewards - rewards.mean(-1, keepdim=True) | Your mean contains the response's \
own reward. Leave it out: the mean of the G - 1 others.
return rewards - _unequal_mean(rewards) | You leave out every reward that equals the \
response's own. Leave out its place alone: another response with the same reward \
counts.
return rewards - (rewards.sum() - rewards) / (rewards.numel() - 1) | Your others come \
from the whole batch. They are the other responses to the same prompt: the same row.
dim=-1 => dim=0 && (rewards.shape[-1] - 1) => max(len(rewards) - 1, 1) | Your others \
are the responses to other prompts. They are the other responses to the same prompt: \
sum along trial, the last axis.
"""

EPSILON = (
    "A tied group must give zero. The mean of equal rewards is off by a rounding "
    "error, and your epsilon is too small against it."
)
NEAR_1000 = (
    "A tied group must give zero. Near 1000 a rounding error is larger than your "
    "epsilon: take one reward of the group off before you average."
)


def _silenced(where, rewards):
    """Normalized deltas, but for zeros at some places."""
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    return torch.where(where, 0.0, centered / rewards.std(dim=-1, keepdim=True))


@exercise("3.3", tolerance=1e-3)  # with or without an epsilon of 1e-4
def normalize_by_group(rewards):
    """float [batch trial] -> float [batch trial]"""
    shifted = rewards - rewards[:, :1]  # exactly zero in a tied group
    centered = shifted - shifted.mean(dim=-1, keepdim=True)
    return centered / (centered.std(dim=-1, keepdim=True) + 1e-4)


normalize_by_group.insight = (
    "Deltas are now in units of their group's spread, so prompts with large rewards no"
    " longer outweigh the others."
)
normalize_by_group.cases = (
    TWO_GROUPS,
    SQUARE,
    TIED,
    ALONE,
    case("eight rewards that tie at 0.1", EPSILON, rewards=[[0.1] * 8]),
    case("eight rewards that tie at 1000.1", NEAR_1000, rewards=[[1000.1] * 8]),
    case(
        "a tied group beside two that are not",
        "Each group is tied on its own, if all its rewards are equal, and needs a "
        "shift of its own: one of its own rewards.",
        rewards=[
            [1.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 1.0],
            [1000.1] * 8,
            [3.0, 1.0] * 4,
        ],
    ),
    CLOSE_TOGETHER,
    case(
        "rewards near 1000 that lie close together",
        "These differ, so the group is not tied. Compare exactly, as max == min does: "
        "isclose allows a hundredth at 1000.",
        rewards=[[1000.0, 1000.005], [1000.005, 1000.0]],
        within=0.15,
    ),
)
normalize_by_group.mistakes = """
return rewards - rewards.mean(-1, keepdim=True) | You center but do not divide: the \
spread is missing.
rewards - rewards[:, :1] => rewards | Near 1000 a tied group must give zero too, and \
there a rounding error is larger than your epsilon: take one reward of the group off \
before you average.
shifted - shifted.mean(dim=-1, keepdim=True) => shifted | You take one reward of the \
group off, and not the mean: these deltas are not centered.
return (rewards - rewards.mean(-1, keepdim=True)) / rewards.std(-1, keepdim=True) | A \
tied group has no spread: 0/0 is not a number, and a rounding error over a rounding \
error is noise. Its deltas must be exactly zero.
1e-4 => 1e-2 | Your epsilon is too large: it counts as part of the spread, and beside \
a small spread it makes the deltas vanish. Keep it near 1e-4.
centered.std(dim=-1, keepdim=True) => centered.std(dim=-1, keepdim=True, \
correction=0) | You divide the squares by G. The sample standard deviation divides \
them by G - 1, as std does.
return (rewards - rewards.mean()) / (rewards.std() + 1e-4) | You compare with mean \
and spread of the whole batch, across prompts. Each row is a group of its own: say \
along which axis, and keep it.
return _silenced((rewards[:, 1:] == rewards[:, :1]).any(dim=-1, keepdim=True), \
rewards) | You silence each group in which some rewards agree. A group is tied if all \
of them do: .all(), or max == min.
return _silenced((rewards == rewards[:, :1]).all(dim=-1).any(), rewards) | One tied \
group silences the whole batch. Ask each group, keep its axis, and choose with \
torch.where.
"""


# Ways to make deltas for 3.4, as they are found in the wild; each shows its name.


def divided_by_spread_plus_1e8(rewards: Tensor) -> Tensor:
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    return centered / (rewards.std(dim=-1, keepdim=True) + 1e-8)


def divided_by_spread_plus_1e4(rewards: Tensor) -> Tensor:
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    return centered / (rewards.std(dim=-1, keepdim=True) + 1e-4)


def divided_by_spread(rewards: Tensor) -> Tensor:
    return center(rewards) / group_spread(rewards)


def reward_of_the_first_best(rewards: Tensor) -> Tensor:
    first = one_hot(rewards.argmax(dim=-1), rewards.shape[-1])
    return rewards * first


def reward_of_the_last_best(rewards: Tensor) -> Tensor:
    return reward_of_the_first_best(rewards.flip(-1)).flip(-1)


def centered_ranks(rewards: Tensor) -> Tensor:
    ranks = rewards.argsort(dim=-1).argsort(dim=-1).float()
    return ranks - ranks.mean(dim=-1, keepdim=True)


def reward_below_full_marks(rewards: Tensor) -> Tensor:
    return rewards - 2000


def centered_by_batch(rewards: Tensor) -> Tensor:
    return rewards - rewards.mean()


def centered_with_rounding(rewards: Tensor) -> Tensor:
    return rewards - rewards.mean(dim=-1, keepdim=True)


def said(probe: Callable, deltas_of: Callable) -> str | None:
    """What a probe says of a way to make deltas."""
    answer = probe(deltas_of)
    if isinstance(answer, Tensor) and answer.numel() != 1:
        raise TypeError(
            f"a probe returns one yes or no; this is a tensor of {answer.numel()}. "
            "Take .all(), or the largest deviation before you compare."
        )
    return None if answer is None else "yes" if answer else "no"


ALARM = (
    "It pushes no tied group, beyond a rounding error of 1e-4, and your probe says "
    "that it does. Look at the tied group alone, and allow for rounding."
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
    reward_of_the_last_best: (
        "Of equals this one picks the last, and pushes that one alone. Ask it of all "
        "responses."
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
        "Alone in its batch a tied group gets zero here. Put another group beside it."
    ),
    divided_by_spread_plus_1e8: (
        "Rewards such as 2 have an exact mean, and any four equal ones. Eight rewards "
        "of 0.1 have none, and this divides their rounding error by 1e-8."
    ),
    divided_by_spread_plus_1e4: (
        "At 0.1 the epsilon is large enough, and near 1000 it is not: try eight "
        "rewards of 1000.1."
    ),
    divided_by_spread: (
        "A spread of zero makes 0/0, which is not a number, and any comparison with it"
        " is False: so ask whether all deltas are small, not whether one is large."
    ),
}


@exercise("3.4", use=said, exact=True)
def ties_push_nothing(deltas_of):
    """a function from rewards to deltas, such as those above -> True or False"""
    tied, other = [1000.1] * 8, [0.0, 1.0, 2.0, 3.0] * 2
    deltas = deltas_of(torch.tensor([tied, other]))
    return bool((deltas[0].abs() < 1e-3).all())


ties_push_nothing.insight = (
    "A few lines, and they find faults that no training curve shows."
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
return True | Your probe says yes to everything, raw rewards as well: whatever it \
looks at, it is not a tied group whose rewards are large.
[1000.1] * 8 => [0.0] * 8 | Your tied rewards are all zero, and there even raw \
rewards push nothing. Tie them at other numbers.
[1000.1] * 8 => [2.0] * 8 | Your tied rewards have an exact mean, as whole numbers \
and any four equal ones have, so no rounding shows. Tie eight rewards at 0.1, and at \
1000.1, where it is larger.
[1000.1] * 8 => [0.1] * 8 | Your probe finds rounding that an epsilon of 1e-8 lets \
through, and not what passes 1e-4. Near 1000 it is larger: tie the rewards at 1000.1 \
as well.
[tied, other] => [tied] | Your tied group is alone in its batch, so a mean over the \
whole batch looks like its own. Put a group with other rewards beside it.
(deltas[0].abs() < 1e-3).all() => not (deltas[0].abs() > 1e-3).any() | Where 0/0 \
makes deltas that are not numbers, your probe says yes: NaN is not larger than \
anything. Ask whether all deltas are small.
deltas[0].abs() < 1e-3 => deltas[0] == 0 | You allow no rounding, or less than \
float32 needs. A delta of 1e-5 pushes nothing that anybody could notice: ask for less \
than 1e-3, of rewards between -2000 and 2000. Near a million float32 itself is off by \
more.
(deltas[0].abs() < 1e-3).all() => deltas[0].sum().abs() < 1e-2 | You add the deltas \
up, where pushes in both directions cancel, as those of ranks do. Ask it of each \
response.
(deltas[0].abs() < 1e-3).all() => (deltas[0] < 1e-3).all() | A large push downwards \
is a push as well: take abs() before you compare.
"""
