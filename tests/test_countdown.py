"""Countdown: puzzles with a solution, splits apart, and answers that are only read."""

import pytest

from grpo_course.text.countdown import Countdown, reaches_target, solves, work_out
from grpo_course.text.responses import in_template

GOLD = {"numbers": [3, 4, 5], "target": 17}  # 3*4+5, say
SPLITS = ("train", "validation", "test")


def right(answer, gold=GOLD):
    return solves(in_template("so", answer), gold)


@pytest.mark.parametrize(
    "settings", [{}, {"numbers": 2, "largest": 20}, {"numbers": 6, "largest": 99}]
)
def test_every_puzzle_has_the_solution_that_is_shown(settings):
    task, golds = Countdown(**settings), {}
    for puzzle in task.problems("train", 200, seed=0):
        value, used = work_out(puzzle.solution)
        assert value == puzzle.answer["target"]
        assert sorted(used) == sorted(puzzle.answer["numbers"])
        assert len(used) == task.numbers and 1 <= min(used) <= max(used) <= task.largest
        assert f"Make {value} of " in puzzle.question
        golds[task.gold(puzzle)] = puzzle.answer
    for reward, _ in Countdown.rewards.values():
        assert set(reward(list(golds), answer=list(golds.values()))) == {1.0}


def test_no_two_splits_share_a_puzzle_and_equal_arguments_give_equal_ones():
    task, groups = Countdown(), {}
    for split in SPLITS:
        made = [p for seed in (0, 1) for p in task.problems(split, 150, seed)]
        groups[split] = {problem.group for problem in made}
        assert len(groups[split]) > 100
    assert sum(map(len, groups.values())) == len(set().union(*groups.values()))
    once, again = (task.problems("train", 200, seed=3) for _ in range(2))
    assert once == again != task.problems("train", 200, seed=4)
    assert len({p.question for p in once}) == len(once) == 200
    assert task.problems("train", 50, seed=3) == once[:50]
    few = Countdown(numbers=2, largest=2)
    made = [p.group for split in SPLITS for p in few.problems(split, 1000, seed=0)]
    # 1 1: 2, 0, 1. 1 2: 3, -1, 1, 2. 2 2: 4, 0. Some are asked in two orders.
    assert len(set(made)) == 9 and len(made) < 20


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: Countdown().problems("tests", 5, 0), "split='tests' .*'validation'"),
        (lambda: Countdown().problems("train", None, 0), "num_problems=None asks for"),
        (lambda: Countdown(numbers=7), "numbers"),
        (lambda: reaches_target(["3"] * 2, GOLD), "one right answer for each of the 2"),
    ],
)
def test_bad_calls(call, says):
    with pytest.raises(ValueError, match=says):
        call()


RIGHT = ["3*4+5", "5 + 3*4", "((5))+(4*3)", " 5+4*3 ", "3×4+5"]
WRONG = [
    *("17", "3*4", "3*5+4", "4*4+1", "3*4+5+3-3", "3*4*5-43"),  # others, or twice
    *("3*4+5 = 17", "3*4+5.0", "3*4--5", "+3*4+5", "34+5", "3**4*5", "3*4+05"),
    *("3*4+5)", "3,4,5", "3*4\n+5", "٣*4+5", ""),
]


def test_each_way_to_the_target_is_right_and_no_other():
    assert [answer for answer in RIGHT if not right(answer)] == []
    assert [answer for answer in WRONG if right(answer)] == []
    assert right("4\u22123", {"numbers": [4, 3], "target": 1})


def test_signs_are_not_numbers():
    """-3 is made of 4 and 7 by 4-7 alone."""
    gold = {"numbers": [4, 7], "target": -3}
    assert right("4-7", gold) and not right("-7+4", gold)


@pytest.mark.parametrize(
    "answer",
    [
        "__import__('os').mkdir('planted')",
        "(lambda: open('planted', 'w'))()",
        "9**9**9**9**9",
        "(" * 5000 + "1" + ")" * 5000,
        "1+" * 100_000 + "1",
        "9" * 10_000 + "*" + "9" * 10_000,
        "(" * 49 + "1" + ")" * 49,
        "3(4)",
        "\x00",
    ],
)
def test_nothing_of_an_answer_is_run(answer, tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    assert not right(answer)
    assert not list(tmp_path.iterdir()) and not recwarn.list


def test_only_the_tagged_answer_counts():
    good = in_template("3*4=12", "3*4+5")
    texts = [good, "3*4+5", "<answer>3*4+5</answer>", good.replace("+5<", "-5<")]
    assert reaches_target(texts, [GOLD] * 4) == [1.0, 0.0, 1.0, 0.0]
