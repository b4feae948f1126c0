"""The exercises of 01_rewards."""

from collections import Counter
from itertools import pairwise

import torch

from grpo_course.classroom.check import Case, case, exercise


def lists(description, prompt, response, hint=""):
    """A prompt and a response, as lists."""
    return Case(description, {"prompt": prompt, "response": response}, hint)


@exercise("1.1")
def is_dead_end(rewards):
    """float [first second third] -> bool [first second third], of any size"""
    stuck = rewards < rewards.max()
    for axis in range(3):
        stuck &= rewards == rewards.amax(dim=axis, keepdim=True)
    return stuck


def _above_its_neighbours(rewards):
    """Whether the next cell, in each direction, holds no larger reward."""
    stuck = rewards < rewards.max()
    for axis in range(3):
        rise = rewards.diff(dim=axis)
        edge = torch.zeros_like(rewards.narrow(axis, 0, 1))
        stuck &= torch.cat([rise, edge], axis) <= 0  # the next
        stuck &= torch.cat([edge, rise], axis) >= 0  # the one before
    return stuck


def _alone_on_top(rewards):
    """Whether all other cells of its three lines hold smaller rewards."""
    stuck = rewards < rewards.max()
    for axis in range(3):
        top = rewards == rewards.amax(dim=axis, keepdim=True)
        stuck &= top & (top.sum(dim=axis, keepdim=True) == 1)
    return stuck


def _top_of_tables(rewards):
    """Whether it is the largest of the three tables through its cell."""
    tops = [rewards.amax(dim=axes, keepdim=True) for axes in ((0, 1), (0, 2), (1, 2))]
    return sum(rewards == top for top in tops) == 3


is_dead_end.insight = (
    "A reward can pay for many parts of an answer, and still leave a policy where no "
    "small improvement earns more."
)
is_dead_end.cases = (
    case(
        "a best reward, and another across from it",
        rewards=[[[3.0], [1.0]], [[1.0], [2.0]]],
        hint="By hand: the 2 is a dead end, since its lines hold 1, 1 and nothing "
        "else. The 3 is the best, and from each 1 a change leads to the 3.",
    ),
    case(
        "two equal rewards on a line",
        rewards=[[[3.0], [1.0]], [[2.0], [2.0]]],
        hint="By hand: from the second 2, changes lead to the 1 and to the other 2, "
        "which earns no more. So it is a dead end, and the first 2 is not: its other "
        "line holds the 3.",
    ),
    case("more at the far end of a line", rewards=[[[2.0, 0.0, 1.0, 3.0]]]),
    case("two that earn most", rewards=[[[4.0], [1.0]], [[0.0], [4.0]]]),
    case("all earn the same", rewards=[[[1.0, 1.0], [1.0, 1.0]]]),
    case("rewards below zero", rewards=[[[-1.0], [-4.0]], [[-3.0], [-2.0]]]),
    case(
        "two by three by two",
        rewards=[
            [[0.0, 2.0], [1.0, 0.0], [3.0, 1.0]],
            [[2.0, 1.0], [0.0, 4.0], [1.0, 2.0]],
        ],
    ),
    case(
        "as long along each axis",
        rewards=[
            [[3.0, 4.0, 4.0], [3.0, 4.0, 5.0], [2.0, 4.0, 4.0]],
            [[3.0, 3.0, 4.0], [2.0, 3.0, 4.0], [4.0, 3.0, 4.0]],
            [[2.0, 4.0, 3.0], [4.0, 3.0, 3.0], [3.0, 2.0, 1.0]],
        ],
    ),
)
is_dead_end.mistakes = """
rewards < rewards.max() => torch.ones_like(rewards, dtype=torch.bool) | You mark the \
best response, too. It is no dead end: no other response earns more.
return rewards == rewards.max() | You mark the best response. A dead end is one that \
earns less, while no change of a single number earns more.
range(3) => range(1) | You look along the first axis only. Is the `return` inside the \
loop? Any of the three numbers may change.
return (rewards < rewards.max()) & torch.stack([rewards == rewards.amax(a, True) for \
a in range(3)]).any(0) | You ask for one line on which nothing earns more. At a dead \
end that must hold for all three lines: & and not |.
return _above_its_neighbours(rewards) | You look at the next cells only. A number may \
change to any other number, so compare with the whole line.
return _alone_on_top(rewards) | You ask that all changes earn less. One that earns the \
same does not earn more, so a tie on a line leaves a dead end.
return _top_of_tables(rewards) & (rewards < rewards.max()) | You compare with whole \
tables, in which two numbers change at once. A line is what a single axis holds: give \
amax one dim.
return _top_of_tables(rewards) | You compare with whole tables, in which two numbers \
change at once. A line is what a single axis holds: give amax one dim.
"""


@exercise("1.2")
def duplicate_proof_reward(prompt, response):
    """two lists of the same length -> inclusion points + ordering points"""
    shared = Counter(prompt) & Counter(response)
    ordering = sum(1 for x, y in zip(response, response[1:]) if x <= y)
    return float(shared.total() + ordering)


def _and_order(points, response):
    """Points for inclusion, and those for the order of the response."""
    return points + sum(x <= y for x, y in pairwise(response))


def _shared(prompt, response):
    """Points for inclusion, as they are right."""
    return (Counter(prompt) & Counter(response)).total()


duplicate_proof_reward.insight = (
    "Only a sorted response earns full score now. Look for gaps in a reward before a "
    "policy falls into one."
)
duplicate_proof_reward.cases = (
    lists(
        "the hack",
        [2, 2, 0],
        [0, 0, 2],
        hint="By hand: the response covers the 0 and one of the 2s, which is two "
        "points, and its pairs 0 0 and 0 2 are in order, which is two more.",
    ),
    lists(
        "the sorted response",
        [2, 2, 0],
        [0, 2, 2],
        hint="By hand: three numbers covered and two pairs in order are 3 + 2 points.",
    ),
    lists(
        "numbers all different",
        [3, 1, 0, 2],
        [0, 3, 1, 2],
        hint="By hand: all four numbers are covered, and of the pairs 0 3, 3 1 and "
        "1 2, taken as they stand, two are in order, though one between them is not.",
    ),
    lists(
        "numbers not in the prompt",
        [0, 1, 2, 3],
        [7, 2, 2, 5],
        hint="By hand: the response covers the 2 alone, and two of its three pairs "
        "are in order. The first number has nothing before it.",
    ),
    lists("a descending response", [1, 1, 2], [2, 1, 1]),
    lists("one number over and over", [0, 0, 0], [0, 1, 3]),
    lists("in order towards the end", [0, 1, 2, 3], [2, 0, 1, 3]),
    lists("up again behind a step down", [2, 2, 2], [2, 0, 2]),
    lists("a copy too few of one, too many of another", [3, 1, 1, 0], [3, 1, 0, 0]),
)
duplicate_proof_reward.mistakes = """
x <= y => x < y | You use a strict < for neighbours. A sorted list may repeat a \
number, so a tie is in order: x <= y.
return _and_order(sum(x == y for x, y in zip(sorted(prompt), response)), response) | \
You pay for right positions, as the reward of 1.1 does. Inclusion asks which numbers \
the response holds, wherever they stand.
shared.total() + ordering => shared.total() | The points for order are missing: add \
one for each adjacent pair of the response with x <= y.
shared.total() + ordering => ordering | The points for inclusion are missing: each \
number of the prompt that the response covers earns one.
return _and_order(sum(x in response for x in prompt), response) | `x in response`, or \
a difference of sets, lets one number of the response cover the same number of the \
prompt twice: this is the hack. Use up what is covered.
return _and_order(len(set(prompt) & set(response)), response) | A repeated number \
earns only once: a set forgets how often a number occurs, and len() of a Counter \
counts different ones. Count with multiplicity: .total() adds up what a Counter holds.
return _and_order(sum(min(prompt.count(x), response.count(x)) for x in prompt), \
response) | A number that stands twice in the prompt is met twice on your way through \
it, and its points are paid each time. Go through set(prompt).
return _and_order(sum(y in prompt for y in response), response) | You count numbers of \
the response that occur in the prompt, so repeating one pays. Count prompt numbers, \
each covered once.
return _shared(prompt, response) + (response == sorted(response)) | You pay one point \
if the whole response is in order. Each pair of neighbours in order earns a point of \
its own.
"""
