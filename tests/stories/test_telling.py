"""How stories are told: tense, unknown words, and sentences that go on."""

import random

import pytest

from grpo_course.stories import composing, verbs, words
from grpo_course.stories.composing import joined, tell
from grpo_course.stories.frames import held_out_frames
from grpo_course.stories.problems import make_stories
from grpo_course.stories.questions import draw_plan
from grpo_course.stories.scenes import scenes
from grpo_course.stories.telling import Manner, Teller
from grpo_course.stories.words import PEOPLE, THINGS, pick, unknown_word


@pytest.mark.parametrize(
    ("role", "frame", "past"),
    [
        ("gain", "{A} gets {more}.", "{A} got {more}."),
        (
            "gain",
            "After that, {A} is given {more}.",
            "After that, {A} was given {more}.",
        ),
        ("lose", "{bare} of {them} are lost.", "{bare} of {them} were lost."),
        ("distractor", "It is {bare} degrees outside.", None),
        ("late_start", "{A} started with {n}.", None),
        (
            "ask",
            "How many {things} does {A} have left?",
            "How many {things} did {A} have left?",
        ),
        ("ask", "How many {things} does {A} have now?", None),
    ],
)
def test_a_story_of_the_past(role, frame, past):
    teller = Teller(random.Random(0), Manner())
    teller.past = True
    assert teller.in_tense(role, frame) == (past or frame)
    teller.past = False
    assert teller.in_tense(role, frame) == frame


def test_some_words_are_unknown():
    rng = random.Random(0)
    picked = [pick(rng, THINGS) for _ in range(400)]
    unknown = [word for word in picked if word not in THINGS]
    assert 0.08 < len(unknown) / 400 < 0.25 and all(w.endswith("s") for w in unknown)
    assert len({unknown_word(rng) for _ in range(100)}) > 90


def test_sentences_go_on_and_names_keep_their_capital(monkeypatch):
    monkeypatch.setattr(composing, "JOINED", 1.0)
    teller = Teller(random.Random(1), Manner())
    teller.people = PEOPLE[:2]
    name = PEOPLE[0][0]
    told = ["One.", f"{name} goes.", "Then he sits."]
    ours = joined(random.Random(0), told, teller)
    assert ours == [f"One, and {name} goes, and then he sits."]
    monkeypatch.setattr(composing, "JOINED", 0.0)
    assert joined(random.Random(0), told, teller) == told


def test_both_tenses_are_told():
    questions = [story.question for story in make_stories("train", 200, 3)]
    past = sum(" did " in q or " had " in q for q in questions)
    assert 40 < past < 180


@pytest.mark.parametrize(
    ("frame", "one", "several"),
    [
        ("{A} has {n}.", "I have", "we have"),
        ("{A} was given {more}.", "I was", "we were"),
        ("How many does {A} carry?", "do I", "do we"),
        ("{A} also carries {n}.", "I also carry", "we also carry"),
    ],
)
def test_verbs_agree_with_me_and_us(frame, one, several):
    for person, wanted in zip(words.WE[:2], (one, several), strict=True):
        assert wanted in verbs.agree(frame, person).replace("{A}", person[0])
    assert verbs.agree(frame, PEOPLE[0]) == frame


@pytest.mark.parametrize(
    ("verb", "before", "past"),
    [
        ("leave", "{bare} ", "left"),
        ("have", "How many does {A} ", "have"),
        ("give", "{A} wants to ", "give"),
        ("visit", "After a ", "visit"),
    ],
)
def test_only_what_happened_is_told_in_the_past(verb, before, past):
    assert verbs.past(verb, before) == past


def test_numbers_in_words(monkeypatch):
    assert [composing.spelled(n, 99) for n in ("7", "40", "58")] == [
        "seven",
        "forty",
        "fifty-eight",
    ]
    assert composing.spelled("58", 12) == "58"
    monkeypatch.setattr(composing, "SMALL_IN_WORDS", 1.0)
    told = composing.in_words(random.Random(0), "12 eggs and 3 hats. 40 more.", "eggs")
    assert told == "A dozen eggs and three hats. 40 more."


@pytest.mark.parametrize("scene", scenes())
@pytest.mark.parametrize("unseen", [False, True])
def test_every_scene_is_told(scene, unseen):
    """In frames of training as in held-out ones, with every place filled."""
    rng, told = random.Random(0), []
    patterns = scenes()[scene].patterns
    while len(told) < 10:
        plan = draw_plan(rng, rng.choice((1, 2)), patterns, scenes()[scene].largest)
        if plan is not None:
            told.append(tell(rng, plan, Manner(unseen=unseen, scene=scene)))
    for text, frames in told:
        assert "{" not in text and (set(frames) <= held_out_frames()) == unseen
    assert len({text for text, _ in told}) == 10
