"""From a plan to an English story."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from grpo_course.stories import words
from grpo_course.stories.frames import expand, own_frames
from grpo_course.stories.plans import Event, Plan

LEADS = ("Then", "Later", "After that", "The next day")  # not for a first sentence
TIMES = ("today", "in the morning", "on {day}")  # not after such a lead
PRESENT = (
    "distractor",
    "late_start",
)  # roles whose sentences have a tense of their own
NOW = re.compile(r"\b(now|that|got|differ|apart|difference)\b")  # a question of today
VERB = re.compile(rf"(?<![{{\w'])\b({'|'.join(words.PAST)})\b(?![\w}}'])")
# How often a word is left out that the story has had, a question stands first, two
# sentences are made one, and a story is of the past.
SHORTER, PRONOUN, ASKED_FIRST, JOINED, PAST = 0.4, 0.7, 0.1, 0.15, 0.4
LARGEST_DISTRACTOR = 60


@dataclass(frozen=True)
class Manner:
    """How a story is told."""

    unseen: bool = False  # in held-out frames
    money: bool = False  # of dollars
    distractor: bool = False  # with a number that is beside the point
    out_of_order: bool = False  # not in the order of the steps


class Teller:
    """One story in the making: who it is about, and what was named so far."""

    def __init__(self, rng: random.Random, manner: Manner) -> None:
        self.rng, self.manner = rng, manner
        self.people = words.draw_people(rng)
        self.things, self.others = words.draw_things(rng)
        if manner.money:
            self.things = "dollars"
        self.past = rng.random() < PAST
        self.things_named = False
        self.people_named: set[str] = set()
        self.frames: list[str] = []  # those that were used

    def who(self, letter: str, case: int) -> str:
        """A person by name, or by pronoun where nobody else was named so far.

        `case` is a place in words.PEOPLE: 1 he, 2 him, 3 his.
        """
        person = self.people["AB".index(letter)]
        known = self.people_named == {letter}
        self.people_named.add(letter)
        if known and self.rng.random() < PRONOUN:
            return person[case]
        return person[0] + ("'s" if case == 3 else "")

    def name_things(self) -> str:
        """What is counted."""
        self.things_named = True
        return self.things

    def may_leave_out(self) -> bool:
        """Whether the things go without saying; dollars never do."""
        known = self.things_named and not self.manner.money
        return known and self.rng.random() < SHORTER

    def count(self, number: int, word: str = "") -> str:
        """A number with the things it counts; they may be left out once named."""
        told = f"{number} {word}".strip()
        return told if self.may_leave_out() else f"{told} {self.name_things()}"

    def sentence(self, event: Event) -> str:
        """One sentence for an event, in a frame of the split."""
        role, numbers = event
        swap = role.endswith("_other") and role.startswith("ask_difference")
        role = "ask_difference" if swap else role
        frame = self.rng.choice(own_frames(role, self.manner.money, self.manner.unseen))
        self.frames.append(frame)
        ways = expand(frame, "(", ")")
        if not self.people_named:  # nothing came before
            ways = [way for way in ways if not way.startswith(LEADS)]
        timed = [
            way for way in ways if not (way.startswith(LEADS) and way.endswith(TIMES))
        ]
        ways = timed or ways
        fill = self.places(numbers, swap)
        way = self.in_tense(role, self.rng.choice(ways))
        text = re.sub(r"\{([^}]*)\}", lambda found: fill[found[1]](), way)
        text = " ".join(text.split())
        text = text if text[-1] in ".?" else text + "."
        return text[0].upper() + text[1:]

    def in_tense(self, role: str, frame: str) -> str:
        """The frame, or in a story of the past its past form."""
        asked_now = role.startswith("ask") and NOW.search(frame)
        if not self.past or role in PRESENT or asked_now:
            return frame
        return VERB.sub(lambda found: words.PAST[found[1]], frame)

    def places(
        self, numbers: tuple[int, ...], swap: bool
    ) -> dict[str, Callable[[], str]]:
        """What stands in each place of a frame."""
        first, last = (numbers[0], numbers[-1]) if numbers else (0, 0)
        rng = self.rng
        return {
            "n": lambda: self.count(last),
            "more": lambda: self.count(last, "more"),
            "bare": lambda: str(last),
            "times": lambda: "twice" if last == 2 else f"{last} times",
            "holders": lambda: f"{first} {words.pick(rng, words.HOLDERS)}",
            "members": lambda: f"{first} {words.pick(rng, words.MEMBERS)}",
            "goods": lambda: f"{first} {words.pick(rng, words.GOODS)}",
            "days": lambda: f"{first} days",
            "things": self.name_things,
            "things?": lambda: "" if self.may_leave_out() else self.name_things(),
            "them": lambda: (
                "them" if self.things_named else f"the {self.name_things()}"
            ),
            "place": lambda: words.pick(rng, words.PLACES, ending=""),
            "day": lambda: rng.choice(words.DAYS),
            "others": lambda: self.others,
            "friend": lambda: rng.choice(words.FRIENDS),
        } | self.persons(swap)

    def persons(self, swap: bool) -> dict[str, Callable[[], str]]:
        """Who stands in each place of a frame; with `swap` B has the larger number."""
        return {
            "A": lambda: self.who("A", 1),
            "A.": lambda: self.who("A", 2),
            "A's": lambda: self.who("A", 3),
            "B": lambda: self.who("B", 1),
            "larger": lambda: self.people[swap][0],
            "smaller": lambda: self.people[not swap][0],
        }


def tell(rng: random.Random, plan: Plan, manner: Manner) -> tuple[str, list] | None:
    """The story of a plan and its frames; None if it has no other order."""
    *in_order, question = plan.events
    events = reordered(in_order) if manner.out_of_order else in_order
    if events is None:
        return None
    if manner.distractor:
        distractor = ("distractor", (rng.randint(2, LARGEST_DISTRACTOR),))
        events.insert(rng.randint(1, len(events)), distractor)
    teller = Teller(rng, manner)
    asks_first = not manner.out_of_order and rng.random() < ASKED_FIRST
    first = [teller.sentence(question)] if asks_first else []
    sentences = joined(rng, [teller.sentence(event) for event in events], teller)
    last = [] if asks_first else [teller.sentence(question)]
    return " ".join([*first, *sentences, *last]), teller.frames


def joined(rng: random.Random, sentences: list[str], teller: Teller) -> list[str]:
    """The sentences, where now and then one goes on with the next."""
    made = sentences[:1]
    names = tuple(person[0] for person in teller.people)
    for sentence in sentences[1:]:
        if rng.random() < JOINED:
            if not sentence.startswith(names):
                sentence = sentence[0].lower() + sentence[1:]
            made[-1] = f"{made[-1][:-1]}, and {sentence}"
        else:
            made.append(sentence)
    return made


def reordered(events: Sequence[Event]) -> list[Event] | None:
    """The same events, told in another order than that of the steps."""
    roles = [role for role, _ in events]
    if len(roles) == 2 and roles[1].startswith("other_"):
        return [*events][::-1]
    if roles[0] == "start" and len(roles) > 1 and roles[1] in ("gain", "lose"):
        others = (i for i, role in enumerate(roles) if role.startswith("other"))
        last = next(others, len(roles))
        return [*events[1:last], ("late_start", events[0][1]), *events[last:]]
    return None
