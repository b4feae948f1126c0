"""Stories: right, told whole, equal for equal seeds, and in splits that do not mix."""

import re
from collections import Counter

import pytest

from grpo_course.gsm8k.grading import is_correct
from grpo_course.gsm8k.problems import compute
from grpo_course.language_model.build import load_problems
from grpo_course.language_model.config import GRPOConfig
from grpo_course.stories import composing
from grpo_course.stories.frames import (
    all_frames,
    frames,
    held_out_frames,
    own_frames,
    roles,
)
from grpo_course.stories.handwritten import as_story, load_handwritten
from grpo_course.stories.overlap import shared
from grpo_course.stories.problems import (
    EDGE,
    LONG,
    SPLITS,
    carries,
    make_stories,
    make_sums,
    pool_of,
)
from grpo_course.stories.task import Stories

COUNT = 200
STORIES = {split: make_stories(split, COUNT, 0) for split in SPLITS}
ALL = [story for stories in STORIES.values() for story in stories]
KNOWN = make_stories("train", 5000, 1)
HALF = re.compile(r"\b(twice|half|double[sd]?|evenly|equally)\b", re.IGNORECASE)
WORDS = {composing.spelled(str(n), 99): n for n in range(2, 100)} | {"dozen": 12}
LONGEST_FIRST = "|".join(sorted(WORDS, key=len, reverse=True))
IN_WORDS = re.compile(rf"\b({LONGEST_FIRST})\b", re.IGNORECASE)


def told_numbers(question):
    """The numbers that a story mentions, with 2 for twice and half."""
    in_words = [WORDS[word.lower()] for word in IN_WORDS.findall(question)]
    halves = [2 for _ in HALF.findall(question)]
    return Counter([*map(int, re.findall(r"\d+", question)), *in_words, *halves])


@pytest.mark.parametrize("split", SPLITS)
def test_every_solution_is_right(split):
    """Each step works on numbers of the story or results so far; none is left out."""
    for story in STORIES[split]:
        used, results = Counter(), []
        for a, operation, b in story.facts:
            assert {a, b} <= {*story.operands, *results}, story
            assert operation != "/" or a % b == 0, story
            used.update((a, b))
            results.append(compute(a, operation, b))
        assert not Counter(story.operands) - used and min(results) > 0
        assert story.answer == str(results[-1])
        assert f"#### {story.answer}" in story.solution


@pytest.mark.parametrize("split", SPLITS)
def test_a_story_mentions_every_operand(split):
    for story in STORIES[split]:
        missing = Counter(story.operands) - told_numbers(story.question)
        assert not missing, story
        assert "{" not in story.question and "|" not in story.question
        assert "  " not in story.question and story.question[-1] in ".?"


def test_a_distractor_is_one_number_more():
    for story in STORIES["distractor"]:
        more = told_numbers(story.question) - Counter(story.operands)
        assert more.total() == 1, story


def test_equal_seeds_give_equal_stories():
    again = make_stories("train", 50, 0)
    assert again == STORIES["train"][:50] == make_stories("train", 50, 0)
    assert make_stories("train", 50, 1) != again
    assert make_sums(20, 0) == make_sums(20, 0) != make_sums(20, 1)


@pytest.mark.parametrize("split", [s for s in SPLITS if s != "train"])
def test_splits_share_nothing_with_training(split):
    """Unseen numbers in no order, unseen frames in no sentence, and no text at all."""
    found = shared(KNOWN, STORIES[split])
    assert found["text"] == 0
    if SPLITS[split].pool == "train":
        assert found["reordered"] > 0  # or the other zeros would say nothing
    else:
        assert found["numbers"] == found["reordered"] == 0
    assert (found["frame"] == 0) == SPLITS[split].unseen_frames
    told = {frame for story in STORIES[split] for frame in story.frames}
    held = told & held_out_frames()
    assert held == (told if SPLITS[split].unseen_frames else set())


def test_bare_sums_of_training_are_not_asked_as_stories():
    """A story of one step and a sum may have the same numbers."""
    sums = make_sums(3000, 0)
    found = shared(sums, STORIES["unseen_problems"] + STORIES["unseen_both"])
    assert found["numbers"] == found["reordered"] == 0
    assert shared(sums, STORIES["train"])["numbers"] > 0
    assert {pool_of(s.operands) for s in make_sums(50, 0, "unseen")} == {"unseen"}


def test_overlap_is_found():
    one, other = KNOWN[:2]
    assert shared([one], [one, other])["text"] == 0.5
    assert shared([one], [other])["text"] == 0


def test_skills_are_what_they_say():
    steps = {name: {len(s.facts) for s in STORIES[name]} for name in SPLITS}
    assert steps["three_step"] == {3} and steps["four_step"] == {4}
    assert steps["unseen_problems"] == steps["train"] == {1, 2, 3, 4}
    for story in STORIES["two_digit"]:
        assert all(map(carries, story.facts)) and min(story.operands) >= 10
    assert carries((15, "+", 17)) and carries((32, "-", 15))
    assert not carries((15, "+", 14)) and not carries((15, "+", 7))


def test_stories_told_out_of_order_are():
    """They do not open as the others do: with what there is at first."""
    openings = {f for role in ("start", "groups") for f in frames(role)}
    told = [(role, scene) for role, scene in roles() if role in ("start", "groups")]
    openings |= {frame for role, scene in told for frame in frames(role, scene)}
    assert not openings & {story.frames[0] for story in STORIES["out_of_order"]}
    usual = [story.frames[0] in openings for story in STORIES["three_step"]]
    assert sum(usual) > COUNT / 2


def test_frames_are_several_hundred_and_a_fifth_is_held_out():
    held, count = held_out_frames(), len(all_frames())
    assert count > 1000 and 0.18 < len(held) / count < 0.22
    for role, money in roles():
        seen, unseen = own_frames(role, money, False), own_frames(role, money, True)
        assert seen and unseen and not set(seen) & set(unseen)


def test_problems_by_hand_are_outside_all_frames_and_right():
    """Each was given its steps; they use the numbers of the text and lead on."""
    problems = load_handwritten()
    assert len({problem.question for problem in problems}) == len(problems) >= 40
    assert shared(KNOWN, problems)["text"] == 0
    for problem in problems:
        known = [*told_numbers(problem.question)]
        known += [3] if "two sisters each" in problem.question else []
        for a, operation, b in problem.facts:
            assert a in known and b in known, problem
            assert operation != "/" or a % b == 0
            known.append(compute(a, operation, b))
    with pytest.raises(ValueError, match=r"step='3\+x'"):
        as_story("?", ["3+x"])


def test_the_edge_is_told_in_its_scenes_alone():
    told = {f for role, scene in roles() if scene in EDGE for f in frames(role, scene)}
    for split, alone in (("edge_both", True), ("unseen_both", False)):
        stories = make_stories(split, 40, "scenes")
        assert all(set(story.frames) <= told for story in stories) == alone
        assert all(len(story.facts) in LONG for story in stories) == alone


def test_the_task_offers_every_split_and_gold_is_right():
    task = Stories()
    assert task.splits[0] == "edge_both" and "train" not in task.splits
    assert Stories(new_frames=False).splits[0] == "unseen_problems"
    for split in (*task.splits, "train"):
        problems = load_problems(GRPOConfig(task="stories"), split, 8)
        assert len(problems) == 8
        for problem in problems:
            assert is_correct(task.gold(problem), problem.answer)
    with pytest.raises(ValueError, match="split='tests'"):
        task.problems("tests", 3, 0)
    with pytest.raises(ValueError, match="num_problems=None"):
        task.problems("train", None, 0)
