"""What `judge_reward` finds in rewards of learners, and in the course's own."""

from itertools import pairwise

import pytest

from grpo_course import (
    sort_distance_reward,
    sort_exact_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
)
from grpo_course.classroom.old_check.report import wrap
from grpo_course.classroom.own_reward import judge_reward


@pytest.fixture
def judged(capsys):
    """What is printed about a reward: its marks, and all words in one line."""

    def judge(reward_fn):
        judge_reward(reward_fn)
        lines = capsys.readouterr().out.splitlines()
        marks = "".join(line[1] for line in lines if line.startswith("["))
        return marks, " ".join(line.strip() for line in lines)

    return judge


def by_size(prompt, response):
    return -sum(abs(x - y) for x, y in zip(sorted(prompt), response, strict=True))


def with_bonus(prompt, response):
    return sort_distance_reward(prompt, response) + 5 * sort_exact_reward(
        prompt, response
    )


GOOD = [sort_distance_reward, sort_multiset_reward, by_size, with_bonus]


@pytest.mark.parametrize("reward_fn", GOOD)
def test_a_reward_without_a_gap_passes(judged, reward_fn):
    assert judged(reward_fn)[0] == "vvv"


def test_the_hack_of_repeats_is_named(judged):
    marks, words = judged(sort_inclusion_ordering_reward)
    assert marks == "vxv"
    assert "for 65 of the 125 prompts" in words
    assert "All of these prompts hold a number twice" in words


def test_all_or_nothing_gives_no_partial_credit(judged):
    marks, words = judged(sort_exact_reward)
    assert marks == "vvx"
    assert "No partial credit: to [1, 0, 2], [0, 1, 4]" in words


def same_total(prompt, response):
    order = sum(x <= y for x, y in pairwise(response))
    return order - abs(sum(response) - sum(prompt))


def test_a_gap_without_repeats_is_named_with_what_it_pays(judged):
    marks, words = judged(same_total)
    assert marks == "vxv"
    assert "To [0, 1, 2], [0, 0, 3] earns 2 and the sorted [0, 1, 2] 2." in words
    assert "twice" not in words


def test_a_penalty_is_paid_for_what_is_wrong(judged):
    marks, words = judged(lambda p, r: -sort_distance_reward(p, r))
    assert marks == "vxx"
    assert "for 125 of the 125 prompts" in words


def test_a_constant_teaches_nothing(judged):
    marks, words = judged(lambda p, r: 1.0)
    assert marks == "vxx"
    assert "Every response to a prompt earns the same" in words


def sorts_in_place(prompt, response):
    prompt.sort()
    return float(prompt == response)


calls = []


def counts_its_calls(prompt, response):
    calls.append(response)
    return len(calls)


NO_REWARDS = {
    "Is its `return` missing?": lambda p, r: None,
    "changes a list that it is given": sorts_in_place,
    "the first time": counts_its_calls,
    "Pay a finite number": lambda p, r: float("nan"),
    "ZeroDivisionError": lambda p, r: 1 / len(set(p) & set(r)),
}


@pytest.mark.parametrize("words", NO_REWARDS)
def test_what_is_no_reward_says_why(judged, words):
    marks, told = judged(NO_REWARDS[words])
    assert marks == "x"
    assert words in told


def test_a_list_is_not_broken_over_two_lines():
    told = f"{'word ' * 13}and to [0, 1, 2] it pays"
    lines = wrap(told)
    assert [line.strip() for line in lines] == [
        ("word " * 13).strip() + " and to",
        "[0, 1, 2] it pays",
    ]
    assert " ".join(line.strip() for line in lines) == told
