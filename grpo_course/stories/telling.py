"""From a plan to an English story."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from grpo_course.stories import words
from grpo_course.stories.frames import expand, own_frames
from grpo_course.stories.plans import SHIFT, SHRINKS, Event, Plan
from grpo_course.stories.scenes import DEFAULT, scenes

LEADS = ("Then", "Later", "After that", "The next day", "Soon", "A little later")
TIMES = ("today", "in the morning", "on {day}")  # not after such a lead
# Roles whose sentences have a tense of their own; a pattern that begins with ! has too.
PRESENT = ("distractor", "late_start")
NOW = re.compile(r"\b(now|that|got|differ|apart|difference)\b")  # a question of today
VERB = re.compile(rf"(?<![{{\w'])\b({'|'.join(words.PAST)})\b(?![\w}}'])")
LEFT = re.compile(r"\b(left|remain|remains|remaining|over|leave|leaves|still)\b")
SUM = re.compile(r"\b(total|altogether|in all)\b", re.IGNORECASE)
KIN = re.compile(rf"\b({'|'.join([*words.SHE_KIN, *words.HE_KIN])}) \{{B\}}")
# A comparison that says with whom, and one that points back to what was just told.
EXPLICIT, VAGUE = re.compile(r"\{(A|first)\b"), re.compile(r"\b[Tt]hat\b")
SO_FAR = re.compile(r"has (already )?\{done\}")  # what is said once
DOUBLES = {"times": "double", "other_times": "other_double"}  # where it is twice
ARTICLE = re.compile(r"\b([Aa]) (?=[aeio]|u(?!s|ni))(?!one\b)")  # where it is "an"
MOST_TRIES = 40
# How often a word is left out that the story has had, and a story is of the past.
SHORTER, PRONOUN, PAST, DOUBLE = 0.4, 0.7, 0.4, 0.4


@dataclass(frozen=True)
class Manner:
    """How a story is told."""

    unseen: bool = False  # in held-out frames
    scene: str = DEFAULT
    distractor: bool = False  # with a number that is beside the point
    out_of_order: bool = False  # not in the order of the steps
    remark: bool = False  # with a sentence that holds no number


class Teller:
    """One story in the making: who it is about, and what was named so far."""

    def __init__(
        self, rng: random.Random, manner: Manner, plan: Plan | None = None
    ) -> None:
        self.rng, self.manner = rng, manner
        self.scene = scenes()[manner.scene]
        events = plan.events if plan else []
        compares = any(role.startswith("ask_difference") for role, _ in events)
        self.people = words.draw_people(rng, third_person=compares)
        self.things, self.others = words.draw_things(rng)
        self.drawn = self.scene.draw(rng)
        self.own_things = "things" in self.drawn  # the scene's, which must be named
        self.things = self.drawn.get("things", self.things)
        self.past = self.people[0][1] in words.PLURAL or rng.random() < PAST
        self.things_named = False
        self.people_named: set[str] = set()
        self.frames: list[str] = []  # those that were used
        self.before = ""  # the role before
        self.shift = False  # told of the second and third person
        self.many = events[0][1][0] if events and events[0][1] else 0
        self.shrinks = any(role in SHRINKS for role, _ in events)

    def who(self, letter: str, case: int) -> str:
        """A person by name, or by pronoun where nobody else was named so far.

        `case` is a place in words.PEOPLE: 1 he, 2 him, 3 his.
        """
        person = self.people["ABC".index(letter)]
        known = self.people_named == {letter}
        self.people_named.add(letter)
        if person[1] == person[0] or (known and self.rng.random() < PRONOUN):
            return person[case]
        ending = "'" if person[0].endswith("s") else "'s"
        return person[0] + (ending if case == 3 else "")

    def name_things(self) -> str:
        """What is counted."""
        self.things_named = True
        return self.things

    def may_leave_out(self) -> bool:
        """Whether the things go without saying; a scene's own never do."""
        known = self.things_named and not self.own_things
        return known and self.rng.random() < SHORTER

    def count(self, number: int, word: str = "") -> str:
        """A number with the things it counts; they may be left out once named."""
        told = f"{number} {word}".strip()
        return told if self.may_leave_out() else f"{told} {self.name_things()}"

    def sentence(self, event: Event) -> str:
        """One sentence for an event, in a frame of the split."""
        role, numbers = event
        shift = self.shift = role.startswith(SHIFT)
        role = role.removeprefix(SHIFT)
        swap = role.endswith("_other") and role.startswith("ask_difference")
        role = self.role_of("ask_difference" if swap else role, numbers)
        frame = self.choose(role)
        self.frames.append(frame)
        self.before = role
        ways = expand(frame, "(", ")")
        if not self.people_named and not self.things_named:  # nothing came before
            ways = [way for way in ways if not way.startswith(LEADS)] or ways
        timed = [
            way for way in ways if not (way.startswith(LEADS) and way.endswith(TIMES))
        ]
        way = self.in_tense(role, self.with_verbs(self.rng.choice(timed or ways)))
        return self.filled(way, self.places(numbers, swap, shift), shift)

    def filled(self, way: str, fill: dict[str, Callable[[], str]], shift: bool) -> str:
        """A frame with its places filled, as a sentence."""
        way = words.agree(way, self.people[shift])
        text = re.sub(r"\{([^}]*)\}", lambda found: fill[found[1]](), way)
        text = ARTICLE.sub(r"\1n ", text)
        text = re.sub(r" +([.,?]|$)", r"\1", " ".join(text.split()))
        text = text if text[-1] in ".?" else text + "."
        return text[0].upper() + text[1:]

    def with_verbs(self, way: str) -> str:
        """A frame with the scene's own verbs in it: the places with a capital."""
        verbs = {name: text for name, text in self.drawn.items() if name.istitle()}
        for name, text in verbs.items():
            way = way.replace(f"{{{name}}}", text)
        return way

    def role_of(self, role: str, numbers: tuple[int, ...]) -> str:
        """The role, or where something is doubled that one, now and then."""
        double = DOUBLES.get(role, "") if numbers == (2,) else ""
        told = double in self.scene.patterns and self.rng.random() < DOUBLE
        return double if told else role

    def choose(self, role: str) -> str:
        """A frame of a role that suits what happened, if one is found."""
        frames = own_frames(role, self.manner.scene, self.manner.unseen)
        frame = self.rng.choice(frames)
        for _ in range(MOST_TRIES):
            if self.suits(role, frame):
                break
            frame = self.rng.choice(frames)
        return frame

    def suits(self, role: str, frame: str) -> bool:
        """Whether a frame may follow what was told before."""
        kin = KIN.search(frame)
        if kin and not words.may_be(kin[1], self.people[1 + self.shift]):
            return False
        if role == "ask":
            return not (SUM if self.shrinks else LEFT).search(frame)
        if SO_FAR.search(frame) and self.before not in ("", "start", "groups"):
            return False
        if not role.startswith("other_"):
            return True
        if self.manner.out_of_order:
            return bool(EXPLICIT.search(frame))
        return self.before in ("start", "other") or not VAGUE.search(frame)

    def in_tense(self, role: str, frame: str) -> str:
        """The frame, or in a story of the past its past form."""
        if frame.startswith("!"):
            return frame[1:]
        asked_now = role.startswith("ask") and NOW.search(frame)
        if not self.past or role in PRESENT or asked_now:
            return frame
        return VERB.sub(
            lambda found: words.past(found[1], frame[: found.start()]), frame
        )

    def places(
        self, numbers: tuple[int, ...], swap: bool, shift: bool
    ) -> dict[str, Callable[[], str]]:
        """What stands in each place of a frame."""
        first, last = (numbers[0], numbers[-1]) if numbers else (self.many, 0)
        rng = self.rng
        own = {name: lambda text=text: text for name, text in self.drawn.items()}
        return (
            {
                "n": lambda: self.count(last),
                "more": lambda: self.count(last, "more"),
                "bare": lambda: str(last),
                "many": lambda: str(first),
                "also": lambda: str(numbers[1]),
                "third": lambda: str(numbers[2]),
                "number": lambda: str(last),
                "times": lambda: "twice" if last == 2 else f"{last} times",
                "holders": lambda: f"{first} {words.pick(rng, words.HOLDERS)}",
                "members": lambda: f"{first} {words.pick(rng, words.MEMBERS)}",
                "goods": lambda: f"{first} {words.pick(rng, words.GOODS)}",
                "days": lambda: f"{first} {rng.choice(words.SPANS)}",
                "things": self.name_things,
                "things?": lambda: "" if self.may_leave_out() else self.name_things(),
                "them": lambda: (
                    "them" if self.things_named else f"the {self.name_things()}"
                ),
                "place": lambda: words.pick(rng, words.PLACES, ending=""),
                "day": lambda: rng.choice(words.DAYS),
                "others": lambda: self.others,
                "friend": lambda: rng.choice(words.FRIENDS),
            }
            | self.persons(swap, "BC" if shift else "AB")
            | own
        )

    def persons(self, swap: bool, letters: str) -> dict[str, Callable[[], str]]:
        """Who stands in each place of a frame; with `swap` B has the larger number."""
        one, other = letters
        return {
            "A": lambda: self.who(one, 1),
            "A.": lambda: self.who(one, 2),
            "A's": lambda: self.who(one, 3),
            "B": lambda: self.who(other, 1),
            "B.": lambda: self.who(other, 2),
            "B's": lambda: self.who(other, 3),
            "C": lambda: self.who("C", 1),
            "larger": lambda: self.people[swap][0],
            "smaller": lambda: self.people[not swap][0],
        }
