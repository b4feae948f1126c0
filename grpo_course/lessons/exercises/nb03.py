"""The exercises of 03_deltas."""

import torch

from grpo_course.classroom.check import case, exercise

CLOSE_TOGETHER = case(
    "rewards that lie close together",
    "A small difference is a difference: divided by its spread it is as large "
    "as any. Do not round, and keep epsilon near 1e-4.",
    rewards=[[0.0, 0.001], [0.001, 0.0]],
    within=0.15,
)


TWO_GROUPS = case("two groups", rewards=[[0.0, 1.0, 3.0, 4.0], [5.0, 5.0, 5.0, 9.0]])
SQUARE = case(
    "as many groups as responses",
    rewards=[[2.0, 1.0, 6.0], [0.0, 0.0, 3.0], [8.0, 4.0, 9.0]],
)
ALONE = case("one group", rewards=[[-1.0, 0.5, -4.0, 1.5]])
TIED = case("a group whose rewards tie", rewards=[[1.0, 1.0, 1.0], [0.0, 2.0, 4.0]])


@exercise("3.1")
def center_by_group(rewards):
    """float [batch trial] -> float [batch trial], each row sums to zero"""
    return rewards - rewards.mean(dim=-1, keepdim=True)


center_by_group.insight = (
    "The deltas of each group sum to zero, and a tied group says nothing."
)
center_by_group.cases = (TWO_GROUPS, SQUARE, TIED, ALONE)
center_by_group.mistakes = """
.mean(dim=-1, keepdim=True) => .mean() | Your deltas do not sum to zero in each group: you averaged over the whole batch. Each prompt has its own mean.
dim=-1 => dim=0 | You averaged over the batch axis, across prompts. A group is a row: take the mean along trial, the last axis.
, keepdim=True => | The group mean lost its axis, so group i's mean meets response i. Keep an axis of size 1: mean(dim=-1, keepdim=True).
rewards - rewards => rewards | You return the mean itself. The delta is the reward minus it, one for each response.
rewards - rewards.mean(dim=-1, keepdim=True) => rewards.mean(dim=-1, keepdim=True) - rewards | The sign is reversed: a response better than its group needs a positive delta. Reward minus mean, not mean minus reward.
return (rewards - rewards.mean(-1, keepdim=True)) / rewards.std(-1, keepdim=True) | You also divide by the spread: that is normalizing, exercise 3.3. Centering only takes the mean away.
return rewards - rewards[:, :1] | You subtract the first reward of the group. The delta is the reward minus the mean of all of them.
return rewards - rewards.amax(-1, keepdim=True) | You subtract the largest reward, so no delta is positive. Subtract the mean of the group.
return rewards - (rewards.sum(-1, keepdim=True) - rewards) / (rewards.shape[-1] - 1) | Your mean is that of the other responses: that is leave-one-out, exercise 3.2. Here it is the mean of the whole group, the response itself among them.
.mean( => .sum( | You subtract the sum of the group. Divide it by the number of responses: that is their mean.
.mean(dim=-1, keepdim=True) => .median(dim=-1, keepdim=True).values | You subtract the median. With it the deltas of a group need not sum to zero: take the mean.
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


leave_one_out.insight = "A baseline without the response's own reward leaves the gradient unbiased. It equals centering times G / (G - 1)."
leave_one_out.cases = (
    TWO_GROUPS,
    SQUARE,
    TIED,
    ALONE,
    case("groups of two", rewards=[[0.0, 1.0], [7.0, 3.0], [2.0, 2.0]]),
)
leave_one_out.mistakes = """
 / (rewards.shape[-1] - 1) => | You subtract the sum of the others. Divide it by their number, G - 1.
(rewards.shape[-1] - 1) => rewards.shape[-1] - 1 | The division comes before the minus: you divide by G, and then take 1 away. Put G - 1 into brackets.
(rewards.shape[-1] - 1) => rewards.shape[-1] | You divide the sum of the others by G. There are only G - 1 of them.
shape[-1] => shape[0] | You divide by the number of prompts less one. shape[0] is the batch axis; the group size is shape[-1].
keepdim=True) - rewards => keepdim=True) | Your sum is that of the whole group. Take the response's own reward off before you divide.
rewards - others / => others / | You return the baseline itself. The delta is the reward minus it.
rewards - others / (rewards.shape[-1] - 1) => others / (rewards.shape[-1] - 1) - rewards | The sign is reversed: a response better than the others needs a positive delta. Reward minus baseline.
return rewards - rewards.mean(-1, keepdim=True) | Your mean contains the response's own reward. Leave it out: the mean of the G - 1 others.
return (rewards - rewards.mean(-1, keepdim=True)) * (rewards.shape[-1] - 1) / rewards.shape[-1] | The factor is upside down: centering is leave-one-out times (G - 1) / G, so leave-one-out is centering times G / (G - 1).
return rewards - rewards.roll(1, -1) | You subtract the reward of one neighbour. The baseline is the mean of all the others.
return rewards - _unequal_mean(rewards) | You leave out every reward that equals the response's own. Leave out its place alone: another response with the same reward counts.
return rewards - (rewards.sum() - rewards) / (rewards.numel() - 1) | Your others come from the whole batch. They are the other responses to the same prompt: the same row.
dim=-1 => dim=0 && (rewards.shape[-1] - 1) => max(len(rewards) - 1, 1) | Your others are the responses to other prompts. They are the other responses to the same prompt: sum along trial, the last axis.
"""

EPSILON = (
    "A tied group must give zero. The mean of equal rewards is off by a rounding "
    "error, and your epsilon is too small against it."
)
NEAR_1000 = (
    "A tied group must give zero. Near 1000 a rounding error is larger than your "
    "epsilon: take one reward of the group off before you average."
)


@exercise("3.3", tolerance=1e-3)  # with or without an epsilon of 1e-4
def normalize_by_group(rewards):
    """float [batch trial] -> float [batch trial]"""
    shifted = rewards - rewards[:, :1]  # exactly zero in a tied group
    centered = shifted - shifted.mean(dim=-1, keepdim=True)
    return centered / (centered.std(dim=-1, keepdim=True) + 1e-4)


normalize_by_group.insight = "Deltas are now in units of their group's spread, so prompts with large rewards no longer outweigh the others."
normalize_by_group.cases = (
    TWO_GROUPS,
    SQUARE,
    TIED,
    ALONE,
    case("eight rewards that tie at 0.1", EPSILON, rewards=[[0.1] * 8]),
    case("eight rewards that tie at 1000.1", NEAR_1000, rewards=[[1000.1] * 8]),
    case(
        "a tied group beside two that are not",
        "Each group is tied on its own, if all its rewards are equal, and needs a shift of its own: one of its own rewards.",
        rewards=[
            [1.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 1.0],
            [1000.1] * 8,
            [3.0, 1.0] * 4,
        ],
    ),
    CLOSE_TOGETHER,
    case(
        "rewards near 1000 that lie close together",
        "These differ, so the group is not tied. Compare exactly, as max == min does: isclose allows a hundredth at 1000.",
        rewards=[[1000.0, 1000.005], [1000.005, 1000.0]],
        within=0.15,
    ),
)
normalize_by_group.mistakes = """
return rewards - rewards.mean(-1, keepdim=True) | You center but do not divide: the spread is missing.
rewards - rewards[:, :1] => rewards | Near 1000 a tied group must give zero too, and there a rounding error is larger than your epsilon: take one reward of the group off before you average.
shifted - shifted.mean(dim=-1, keepdim=True) => shifted | You take one reward of the group off, and not the mean: these deltas are not centered.
return rewards / (rewards.std(-1, keepdim=True) + 1e-4) | You divide by the spread but do not take the mean away: these deltas are not centered.
return (rewards - rewards.mean(-1, keepdim=True)) / rewards.std(-1, keepdim=True) | A tied group has no spread: 0/0 is not a number, and a rounding error over a rounding error is noise. Its deltas must be exactly zero.
 + 1e-4) => ) | A tied group has no spread: 0/0 is not a number. Its deltas must be exactly zero: add a small epsilon to the spread.
1e-4 => 1e-2 | Your epsilon is too large: it counts as part of the spread, and beside a small spread it makes the deltas vanish. Keep it near 1e-4.
return rewards - rewards.mean(-1, keepdim=True) / (rewards.std(-1, keepdim=True) + 1e-4) | Only the mean is divided. Put brackets around reward minus mean, and divide the difference.
centered.std(dim=-1, keepdim=True) => centered.std(dim=-1, keepdim=True, correction=0) | You divide the squares by G. The sample standard deviation divides them by G - 1, as std does.
return (rewards - rewards.mean(-1, keepdim=True)) / ((rewards - rewards.mean(-1, keepdim=True)).abs().mean(-1, keepdim=True) + 1e-4) | You divide by the mean distance from the mean. The spread is the standard deviation: std(dim=-1, keepdim=True).
return (rewards - rewards.mean(-1, keepdim=True)) / (rewards.amax(-1, keepdim=True) - rewards.amin(-1, keepdim=True) + 1e-4) | You divide by the range, largest minus smallest. The spread is the standard deviation: std(dim=-1, keepdim=True).
centered.std( => centered.var( | You divide by the variance. The spread is its root, the standard deviation: std.
centered.std(dim=-1, keepdim=True) => rewards.std() | Your spread is that of the whole batch: it mixes what stands along batch. Each group has its own: std(dim=-1, keepdim=True).
shifted.mean(dim=-1, keepdim=True) => shifted.mean() | Your mean is that of the whole batch. Each group has its own: mean(dim=-1, keepdim=True).
"""


@exercise("3.4")
def softmax_minus_uniform(rewards):
    """float [batch trial] -> float [batch trial], each row sums to zero"""
    return rewards.softmax(dim=-1) - 1 / rewards.shape[-1]


softmax_minus_uniform.insight = "With 1/G taken away, the weights of a group sum to zero: a tied group pushes nothing any more."
softmax_minus_uniform.cases = (
    TWO_GROUPS,
    SQUARE,
    TIED,
    ALONE,
    case(
        "large rewards",
        "exp(200) is infinite in float32, and exp(1000) in any float. Use softmax, which takes the largest reward of each group away first.",
        rewards=[[1000.0, 1001.0, 999.0], [0.0, 0.0, 1000.0]],
    ),
    case(
        "a group of large rewards beside one of small",
        "You take the largest reward of the whole batch away, and exp of what is left is zero in the other group. softmax does it for each row.",
        rewards=[[0.0, 1.0, 2.0], [200.0, 201.0, 199.0]],
    ),
)
softmax_minus_uniform.mistakes = """
return rewards.softmax(dim=-1) | These weights are all positive: wrong answers are pushed up too. Subtract their mean, which is 1/G.
return rewards.softmax(0) - 1 / rewards.shape[-1] | Your softmax runs over the batch, so prompts compete. Responses to one prompt do: softmax along trial.
rewards.shape[-1] => rewards.numel() | You subtract 1 over the number of all rewards, and the weights of a group do not sum to zero. A group has G responses: the size of the last axis.
shape[-1] => shape[0] | You subtract 1 over the number of prompts. A group has G responses: the size of the last axis.
1 / rewards => rewards | You subtract G itself. The mean of the weights is 1/G: they sum to 1, and there are G of them.
return rewards / rewards.sum(-1, keepdim=True) - 1 / rewards.shape[-1] | You divide the rewards by their sum: that is no softmax, and fails where rewards are negative or all zero. Weights come from rewards.softmax(dim=-1).
return 1 / rewards.shape[-1] - rewards.softmax(-1) | The sign is reversed: the best response needs a positive delta. Weight minus 1/G.
return rewards.softmax(-1) - 0.25 | You subtract 1/4, which fits groups of four only. A group has rewards.shape[-1] responses.
1 / rewards.shape[-1] => rewards.mean(-1, keepdim=True) | You subtract the mean reward from the weights. Subtract the mean weight: 1/G.
return rewards.log_softmax(-1) | You used log_softmax: logs of weights. The weights themselves come from softmax.
"""
