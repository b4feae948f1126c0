"""How stories are told: tense, unknown words, and sentences that go on."""

import random

import pytest

from grpo_course.stories import composing
from grpo_course.stories.composing import joined
from grpo_course.stories.problems import make_stories
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
