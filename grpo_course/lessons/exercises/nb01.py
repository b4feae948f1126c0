"""The exercises of 01_rewards."""

from collections import Counter
from itertools import pairwise

from grpo_course.classroom.check import Case, exercise


def lists(description, prompt, response, hint=""):
    """A prompt and a response, as lists."""
    return Case(description, {"prompt": prompt, "response": response}, hint)


@exercise("1.1")
def count_matches(prompt, response):
    """two lists of the same length -> number of right positions"""
    truth = sorted(prompt)
    return sum(1.0 for x, y in zip(response, truth) if x == y)


def _matches_until_wrong(prompt, response):
    """How many positions are right before the first wrong one."""
    pairs = zip(sorted(prompt), response, strict=True)
    wrong = [place for place, (x, y) in enumerate(pairs) if x != y]
    return min(wrong, default=len(prompt))


count_matches.insight = (
    "A partly right response earns part of the reward: that is a signal to learn from "
    "before the first perfect response turns up."
)
COPIES = (
    "Each copy of a repeated number has a place of its own. set(), index() and a "
    "dictionary know of one copy: compare position by position."
)
count_matches.cases = (
    lists("a half-sorted response", [3, 1, 0, 2], [0, 3, 1, 2]),
    lists("the sorted response", [3, 1, 0, 2], [0, 1, 2, 3]),
    lists("a response far off", [3, 1, 0, 2], [7, 2, 2, 5]),
    lists("a response in order, of other numbers", [3, 1, 0, 2], [0, 0, 1, 3]),
    lists("the prompt itself", [2, 0, 1], [2, 0, 1]),
    lists("a repeated number", [2, 0, 2], [2, 2, 0], hint=COPIES),
    lists("a repeated number, sorted", [2, 2, 0], [0, 2, 2], hint=COPIES),
    lists("a prompt of one number", [5], [5]),
)
count_matches.mistakes = """
sorted(prompt) => prompt | You compare with the prompt as it stands. The truth is the \
sorted prompt: compare with sorted(prompt).
sorted(prompt) => sorted(prompt); response = sorted(response) | You sort the response \
too, which does the policy's work for it. Sort the prompt only.
if x == y) => if x == y) / len(truth) | You return the share of right positions. \
Count them: a point for each.
zip(response, truth) => zip(response[:-1], truth) | The last position is missing. A \
list of n numbers has the positions 0 to n - 1, as range(n) has.
zip(response, truth) => zip(response[:1], truth) | You look at the first position \
only. Is the `return` inside the loop?
return sum(y in prompt for y in response) | You count numbers that occur anywhere. A \
point needs the right number at the right position: compare position by position with \
zip.
return sum(x in response for x in prompt) | You count numbers that occur anywhere. A \
point needs the right number at the right position: compare position by position with \
zip.
return float(sorted(prompt) == response) | You give all or nothing. Partial credit \
gives one point for each position that is right.
return _matches_until_wrong(prompt, response) | You stop at the first wrong position. \
Later ones that are right earn their points too.
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
    "Only a sorted response earns full score now. A policy finds each gap in a reward, "
    "so look for gaps before it does."
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
