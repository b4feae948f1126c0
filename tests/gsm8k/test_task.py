"""GSM8K as a task: its splits, its settings, and what its demonstrations show."""

import random
from collections import Counter
from math import nan

import pytest

from grpo_course.gsm8k import (
    FORMS,
    GSM8K,
    WordProblem,
    demonstration,
    is_correct,
    load_gsm8k,
    load_run_split,
    make_problems,
    with_slip,
)
from grpo_course.tasks import TAGS
from grpo_course.training import GRPOConfig, load_problems

PROBLEMS = make_problems("train", 300, seed=3)
FULL = (1, 0, 0, 0)


@pytest.fixture
def folder(tmp_path, save_gsm8k):
    def filled(rows):
        save_gsm8k(make_problems("train", rows, seed=0), tmp_path / "train.jsonl")
        save_gsm8k(make_problems("train", 7, seed=1), tmp_path / "test.jsonl")
        return tmp_path

    return filled


@pytest.mark.parametrize(("rows", "last"), [(3000, 256), (40, 4), (9, 0)])
def test_validation_is_the_end_of_train(folder, rows, last):
    path = folder(rows)
    whole = load_gsm8k("train", path)
    kept, held = load_run_split("train", path), load_run_split("validation", path)
    assert len(whole) == rows and len(held) == last
    assert kept + held == whole
    assert load_run_split("test", path) == load_gsm8k("test", path)


def test_a_run_knows_them(folder):
    """Settings are chosen on problems that are neither end's."""
    settings = {"data": str(folder(40))}
    config = GRPOConfig(task_settings=settings)
    splits = GSM8K(**settings).splits
    assert splits == ("test", "validation", "train")
    sizes = [len(load_problems(config, split)) for split in splits]
    assert sizes == [7, 4, 36]
    assert len(load_problems(config, "validation", 3)) == 3
    with pytest.raises(ValueError, match=r"split='unseen'.*'validation'"):
        load_problems(config, "unseen")


def test_generated_problems_are_as_many_as_wanted():
    with pytest.raises(ValueError, match="num_problems=None asks for all problems"):
        GSM8K().problems("train", None, 0)
    assert GSM8K().splits[0] == "unseen_problems" and len(GSM8K().splits) == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("slips", 3),
        ("slips", -0.1),
        ("slips", nan),
        ("forms", (1.0, 1.0)),
        ("forms", (0, 0, 0, 0)),
        ("forms", (1, -1, 1, 1)),
        ("forms", (1, nan, 1, 1)),
        ("operands", (1, 2, 3)),
        ("operands", 5),
        ("operands", [1, "9"]),
        ("operations", "%"),
        ("steps", (1.5,)),
        ("data", 3),
    ],
)
def test_a_value_out_of_range_is_told(name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        GSM8K(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("operands", (9, 1), r"operands\[1\]=1.*at least 9"),
        ("operands", (-1, 1), "operands=-1.*at least 0"),
        ("operations", "", "operations and steps each need"),
        ("steps", (), "operations and steps each need"),
        ("steps", (1, 0), "steps=0.*at least 1"),
    ],
)
def test_problems_that_cannot_be_made_are_told(name, value, says):
    with pytest.raises(ValueError, match=says):
        GSM8K(**{name: value})


def test_an_unknown_setting_is_told():
    with pytest.raises(ValueError, match=r"GSM8K has no 'operand'.*mean 'operands'"):
        GSM8K(operand=(1, 4))


def test_gold_earns_every_reward_that_pays():
    golds = [GSM8K().gold(problem) for problem in PROBLEMS]
    answers = [problem.answer for problem in PROBLEMS]
    for name, (reward, _) in GSM8K.rewards.items():
        best = 0.0 if name == "length_reward" else 1.0
        assert reward(golds, answer=answers) == [best] * len(golds)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_slips(share):
    task, rng = GSM8K(slips=share, forms=FULL), random.Random(0)
    texts = [task.demonstration(problem, rng) for problem in PROBLEMS]
    pairs = zip(texts, PROBLEMS, strict=True)
    wrong = sum(not is_correct(text, p.answer) for text, p in pairs) / len(texts)
    assert abs(wrong - share) <= 4 * (share * (1 - share) / len(texts)) ** 0.5


def form_of(text):
    """Which of FORMS a demonstration has."""
    there = tuple(tag in text for tag in TAGS)
    by_tags = {
        (True, True, True, True): "full",
        (False, False, False, False): "no_tags",
        (True, True, False, False): "no_answer_tag",
        (False, False, True, True): "no_think_tag",
    }
    return by_tags[there]


def test_forms_come_as_often_as_their_weights():
    rng, task = random.Random(0), GSM8K(forms=(3, 1, 0, 0))
    texts = [task.demonstration(PROBLEMS[i % 300], rng) for i in range(4000)]
    counts = Counter(map(form_of, texts))
    assert set(counts) == {"full", "no_tags"}
    assert 2850 < counts["full"] < 3150  # 3000 and five standard errors
    even = GSM8K(forms=(1, 1, 1, 1))
    some = {form_of(even.demonstration(PROBLEMS[0], rng)) for _ in range(200)}
    assert some == set(FORMS)


def test_a_slip_is_off_by_one_either_way_and_carried_on():
    changes = []
    for i, problem in enumerate(PROBLEMS):
        slip = with_slip(problem, random.Random(i))
        changes.append(int(slip.answer) - int(problem.answer))
        assert slip.question == problem.question
        *lines, last = slip.solution.split("\n")
        assert last == f"#### {slip.answer}" and lines[-1].endswith(f"={slip.answer}")
        assert len(lines) == len(problem.operations)
        results = [int(line.partition("=")[2]) for line in lines]
        assert min(results) >= 0
        if len(lines) == 2:  # the second sum begins with what the first said
            assert lines[1].startswith(f"{results[0]}{problem.operations[1]}")
    assert set(changes) == {-1, 1}
    assert min(changes.count(-1), changes.count(1)) > 100  # of 300


def test_a_result_that_would_be_negative_goes_up():
    nothing = next(p for p in PROBLEMS if p.kind == "-" and p.answer == "0")
    slips = {with_slip(nothing, random.Random(i)).answer for i in range(20)}
    assert slips == {"1"}


def test_a_slip_needs_a_problem_that_was_made_by_rule():
    problem = WordProblem("What is 3+4?", "7", "3+4=7\n#### 7")
    with pytest.raises(ValueError, match=r"was not made by rule.*slips=0"):
        with_slip(problem, random.Random(0))


def test_a_demonstration_without_a_slip_is_the_solution():
    task = GSM8K(forms=FULL)
    assert task.demonstration(PROBLEMS[0], random.Random(0)) == demonstration(
        PROBLEMS[0]
    )
