"""The stories: as `tools/reader` tells them, right, and in splits that do not mix."""

import re
from collections import Counter
from functools import cache, partial

import pytest

from grpo_course.gsm8k import compute, is_correct
from grpo_course.reader import Stories, all_stories, as_story
from tools.reader import telling
from tools.reader.frames import held_out_frames
from tools.reader.stories import LONG, SPLITS, carries, draw, make_stories, shared

FEW = 60  # of each split, told anew
HALF = re.compile(r"\b(twice|half|double[sd]?|evenly|equally)\b", re.IGNORECASE)
NUMBERS = {telling.spelled(str(n), 99): n for n in range(2, 100)} | {"dozen": 12}
LONGEST_FIRST = "|".join(sorted(NUMBERS, key=len, reverse=True))
IN_WORDS = re.compile(rf"\b({LONGEST_FIRST})\b", re.IGNORECASE)


@cache
def anew(split, count=FEW, seed=0):
    return make_stories(split, count, seed)


def told_numbers(question):
    """The numbers that a story mentions, with 2 for twice and half."""
    in_words = [NUMBERS[word.lower()] for word in IN_WORDS.findall(question)]
    halves = [2 for _ in HALF.findall(question)]
    return Counter([*map(int, re.findall(r"\d+", question)), *in_words, *halves])


def plain(stories):
    """What of a story is in the data."""
    return [(s.question, s.answer, s.solution, s.facts) for s in stories]


@pytest.mark.parametrize("split", [*SPLITS, "sums", "handwritten"])
def test_the_data_is_what_is_told_today(split):
    stored = all_stories()[split]
    assert len(stored) == {"train": 1920, "edge_practice": 1920, "handwritten": 50}.get(
        split, 256
    )
    assert plain(stored[:FEW]) == plain(draw(split, FEW, 0))


def test_the_task_offers_every_split_and_gold_is_right():
    task, known = Stories(), partial(Stories(new_frames=False).problems, seed=0)
    assert task.splits[0] == "edge_both" and "train" not in task.splits
    assert Stories(new_frames=False).splits[0] == "unseen_problems"
    for split in (*task.splits, "train"):
        problems = task.problems(split, 8, 0)
        assert len(problems) == 8
        assert all(is_correct(task.gold(p), p.answer) for p in problems)
    for name, other in (("train", "edge_practice"), ("validation", "edge_validation")):
        assert task.problems(name, None, 0) == all_stories()[other]
        assert known(name, None) == all_stories()[name]
    with pytest.raises(ValueError, match="split='tests'"):
        task.problems("tests", 3, 0)


@pytest.mark.parametrize("split", all_stories())
def test_every_solution_is_right(split):
    """Each step works on numbers of the story or results so far."""
    for story in all_stories()[split]:
        numbers, results = told_numbers(story.question), []
        numbers[3] += "two sisters each" in story.question
        for a, operation, b in story.facts:
            assert {a, b} <= {*numbers, *results}, story
            assert operation != "/" or a % b == 0, story
            results.append(compute(a, operation, b))
        assert story.answer == str(results[-1]) and min(results) > 0
        assert f"#### {story.answer}" in story.solution
        assert not {"{", "|"} & set(story.question) and story.question[-1] in ".?"
    with pytest.raises(ValueError, match=r"step='3\+x'"):
        as_story("?", ["3+x"])


@pytest.mark.slow
@pytest.mark.parametrize("split", [s for s in SPLITS if s != "train"])
def test_splits_share_nothing_with_training(split):
    """Unseen numbers in no order, unseen frames in no sentence, and no text at all."""
    found = shared(anew("train", 5000, 1), anew(split))
    assert found["text"] == 0
    if SPLITS[split].pool == "train":
        assert found["reordered"] > 0  # or the other zeros would say nothing
    else:
        assert found["numbers"] == found["reordered"] == 0
    assert (found["frame"] == 0) == SPLITS[split].unseen_frames
    used = {frame for story in anew(split) for frame in story.frames}
    held = used & held_out_frames()
    assert held == (used if SPLITS[split].unseen_frames else set())


@pytest.mark.slow
def test_skills_are_what_they_say():
    steps = {name: {len(s.facts) for s in anew(name)} for name in SPLITS}
    assert steps["three_step"] == {3} and steps["four_step"] == {4}
    assert steps["unseen_problems"] == steps["train"] == {1, 2, 3, 4}
    for story in anew("two_digit"):
        assert all(map(carries, story.facts)) and min(story.operands) >= 10
    for story in anew("distractor"):
        more = told_numbers(story.question) - Counter(story.operands)
        assert more.total() == 1, story
    for split, alone in (("edge_both", True), ("unseen_both", False)):
        assert all(len(story.facts) in LONG for story in anew(split)) == alone
