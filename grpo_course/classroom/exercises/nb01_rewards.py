"""The exercises of 01_rewards."""

from collections import Counter
from itertools import pairwise, takewhile

from torch import Tensor

from grpo_course.classroom.exercises.shared import case
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake
from grpo_course.sort import sort_distance_reward


def _case(description: str, prompt: list, response: list, hint: str = "") -> Case:
    return Case(description, {"prompt": prompt, "response": response}, hint)


MEMBERSHIP = (
    "You count numbers that occur anywhere. A point needs the right number at the "
    "right position: compare position by position with zip."
)
DISTANCE = (
    "You add up differences |x - y|. Despite its name the distance reward counts "
    "positions: one point where both numbers are equal."
)


def count_matches(prompt, response):
    """two lists of the same length -> number of right positions"""
    truth = sorted(prompt)
    return sum(1.0 for x, y in zip(response, truth) if x == y)


COUNT_MATCHES = Exercise(
    key="1.1",
    name="count_matches",
    solution=count_matches,
    cases=(
        _case("a half-sorted response", [3, 1, 0, 2], [0, 3, 1, 2]),
        _case("the sorted response", [3, 1, 0, 2], [0, 1, 2, 3]),
        _case("a response far off", [3, 1, 0, 2], [7, 2, 2, 5]),
        _case("a response in order, of other numbers", [3, 1, 0, 2], [0, 0, 1, 1]),
        _case("the prompt itself", [2, 0, 1], [2, 0, 1]),
        _case("a repeated number", [2, 0, 2], [2, 2, 0]),
        _case("a prompt of one number", [5], [5]),
    ),
    words={
        "response[:1]": "You look at the first position only. Is the `return` inside "
        "the loop?",
        "not sorted": "You compare with the prompt as it stands. The truth is the "
        "sorted prompt: compare with sorted(prompt).",
        "sorted too much": "You sort the response too, which does the policy's work "
        "for it. Sort the prompt only.",
        "comparison": "You count the positions that are wrong. A reward grows with "
        "what is right: compare with ==.",
    },
    mistakes=(
        Mistake(
            lambda p, r: sum(abs(x - y) for x, y in zip(sorted(p), r, strict=True)),
            DISTANCE,
        ),
        Mistake(
            lambda p, r: -sum(abs(x - y) for x, y in zip(sorted(p), r, strict=True)),
            DISTANCE,
        ),
        Mistake(
            lambda p, r: sort_distance_reward(p, r) / len(p),
            "You return the fraction of matches. The reward is their number: do not "
            "divide by the length.",
        ),
        Mistake(lambda p, r: sum(y in p for y in r), MEMBERSHIP),
        Mistake(lambda p, r: sum(x in r for x in p), MEMBERSHIP),
        Mistake(
            lambda p, r: float(sorted(p) == r),
            "You give all or nothing. Partial credit gives one point for each "
            "position that is right.",
        ),
        Mistake(
            lambda p, r: len(
                list(
                    takewhile(lambda xy: xy[0] == xy[1], zip(sorted(p), r, strict=True))
                )
            ),
            "You stop at the first wrong position. Later ones that are right earn "
            "their points too.",
        ),
    ),
    insight="A partly right response earns part of the reward: that is a signal to "
    "learn from before the first perfect response turns up.",
)


def _matches(prompts: Tensor, responses: Tensor) -> Tensor:
    return prompts.sort(dim=-1).values[:, None, :] == responses


def batch_distance(prompts, responses):
    """int [batch pos], int [batch trial pos] -> float [batch trial]"""
    truth = prompts.sort(dim=-1).values[:, None, :]  # [batch 1 pos]
    return (responses == truth).sum(dim=-1).float()


BATCH_DISTANCE = Exercise(
    key="1.2",
    name="batch_distance",
    solution=batch_distance,
    axes={
        "prompts": "batch pos",
        "responses": "batch trial pos",
        "return": "batch trial",
    },
    cases=(
        case(
            "two prompts, three responses each",
            prompts=[[3, 1, 0, 2], [0, 2, 2, 1]],
            responses=[
                [[0, 3, 1, 2], [0, 1, 2, 3], [7, 2, 2, 5]],
                [[0, 1, 2, 2], [0, 2, 2, 1], [2, 2, 1, 0]],
            ],
        ),
        case(
            "batch, trial and pos of the same size",
            prompts=[[2, 0], [1, 1]],
            responses=[[[0, 2], [1, 1]], [[0, 1], [0, 2]]],
        ),
        case("one prompt, one response", prompts=[[4, 3]], responses=[[[3, 4]]]),
    ),
    words={
        "not sorted": "You compare with the prompts as they stand. The truth is the "
        "sorted prompt: prompts.sort(dim=-1).values.",
        "prompts.sort(dim=0)": "You sort over the batch axis, which mixes prompts. "
        "Sort along pos, the last axis.",
        "mean for sum": "You take the mean over pos: a fraction. The reward is the "
        "number of matches: sum over pos.",
        "(responses == truth).sum(dim=-2)": "You sum over the trial axis. Each "
        "response keeps its own reward: sum over pos, the last axis.",
        "return (...).sum(-1)": "You sum over trial and pos. Each response keeps its "
        "own reward: sum over pos only.",
        "trial axis": "The prompts lack the trial axis, so batch is matched with "
        "trial. Give them one of size 1: [batch 1 pos], by [:, None, :].",
        "number type": "You return whole numbers (int64). Rewards are averaged and "
        "divided later: return floats, with .float().",
    },
    mistakes=(
        Mistake(
            lambda p, r: _matches(p, r).all(-1),
            "You return True and False: all or nothing. Count the matching positions, "
            "as a float.",
        ),
    ),
    equivalent={
        "almost equal": "tokens are whole numbers",
    },
    insight="One comparison replaces three loops: an axis of size 1 lets each prompt "
    "meet all its responses.",
)


def _shared(prompt: list, response: list) -> int:
    return (Counter(prompt) & Counter(response)).total()


def _ordered(response: list) -> int:
    return sum(x <= y for x, y in pairwise(response))


EQUALLY_OFTEN = (
    "You pay for a number only if both lists hold it equally often. Each copy that "
    "both have earns a point: count the smaller of the two counts."
)


def duplicate_proof_reward(prompt, response):
    """two lists of the same length -> inclusion points + ordering points"""
    shared = Counter(prompt) & Counter(response)
    ordering = sum(1 for x, y in zip(response, response[1:]) if x <= y)
    return float(shared.total() + ordering)


DUPLICATE_PROOF_REWARD = Exercise(
    key="1.3",
    name="duplicate_proof_reward",
    solution=duplicate_proof_reward,
    cases=(
        _case("the hack", [2, 2, 0], [0, 0, 2]),
        _case("the sorted response", [2, 2, 0], [0, 2, 2]),
        _case("numbers all different", [3, 1, 0, 2], [0, 3, 1, 2]),
        _case("numbers not in the prompt", [0, 1, 2, 3], [7, 2, 2, 5]),
        _case("a descending response", [1, 1, 2], [2, 1, 1]),
        _case("one number over and over", [0, 0, 0], [0, 1, 3]),
        _case("in order towards the end", [0, 1, 2, 3], [2, 0, 1, 3]),
        _case("up again behind a step down", [2, 2, 2], [2, 0, 2]),
        _case("a copy too few of one, too many of another", [3, 1, 1, 0], [3, 1, 0, 0]),
    ),
    words={
        "x < y": "You use a strict < for neighbours. A sorted list may repeat a "
        "number, so a tie is in order: x <= y.",
        "and for or": "| keeps the larger of two counts, so numbers that only one "
        "list has are paid too. & keeps the smaller: what both have.",
        "shared.total()": "The points for order are missing: add one for each "
        "adjacent pair of the response with x <= y.",
        "ordering": "The points for inclusion are missing: each number of the prompt "
        "that the response covers earns one.",
    },
    mistakes=(
        Mistake(
            lambda p, r: sum(x in r for x in p) + _ordered(r),
            "`x in response` lets one number of the response cover the same number of "
            "the prompt twice: this is the hack. Use up what is covered.",
        ),
        Mistake(
            lambda p, r: len(set(p) & set(r)) + _ordered(r),
            "A set forgets how often a number occurs, so a repeated number earns only "
            "once. Count with multiplicity: Counter keeps the numbers.",
        ),
        Mistake(
            lambda p, r: sum(p.count(x) == r.count(x) for x in p) + _ordered(r),
            EQUALLY_OFTEN,
        ),
        Mistake(
            lambda p, r: sum(p.count(x) == r.count(x) for x in {*p}) + _ordered(r),
            EQUALLY_OFTEN,
        ),
        Mistake(
            lambda p, r: len(p) * (sorted(p) == sorted(r)) + _ordered(r),
            "You pay for inclusion only if the response covers the whole prompt. Each "
            "number that it covers earns a point of its own.",
        ),
        Mistake(
            lambda p, r: sum(y in p for y in r) + _ordered(r),
            "You count numbers of the response that occur in the prompt, so repeating "
            "one pays. Count prompt numbers, each covered once.",
        ),
        Mistake(
            lambda p, r: _shared(p, r) + _ordered(r[:-1]),
            "The last pair is missing: a list of n numbers has n - 1 pairs of "
            "neighbours.",
        ),
        Mistake(
            lambda p, r: _shared(p, r) + sum(x >= y for x, y in pairwise(r)),
            "You pay for neighbours in descending order. Ascending is x <= y.",
        ),
        Mistake(
            lambda p, r: _shared(p, r) + (_ordered(r) == len(r) - 1),
            "You pay one point if the whole response is in order. Each pair of "
            "neighbours in order earns a point of its own.",
        ),
        Mistake(
            lambda p, r: (
                _shared(p, r) + sum(x == y for x, y in zip(r, sorted(r), strict=True))
            ),
            "You pay for positions at which the response agrees with itself sorted. "
            "Ordering compares neighbours: x <= y.",
        ),
    ),
    insight="Only a sorted response earns full score now. A policy finds each gap in "
    "a reward, so look for gaps before it does.",
)
