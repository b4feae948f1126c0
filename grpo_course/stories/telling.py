"""From a plan to an English story."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from grpo_course.stories import verbs, words
from grpo_course.stories.cast import Cast
from grpo_course.stories.frames import expand, own_frames
from grpo_course.stories.plans import SHIFT, SHRINKS, Event, Plan
from grpo_course.stories.scenes import DEFAULT, scenes

LEADS = ("Then", "Later", "After that", "The next day", "Soon", "A little later")
TIMES = ("today", "in the morning", "on {day}")  # not after such a lead
# Roles whose sentences have a tense of their own; a pattern that begins with ! has too.
PRESENT = ("distractor", "late_start")
NOW = re.compile(r"\b(now|that|got|differ|apart|difference)\b")  # a question of today
VERB = re.compile(rf"(?<![{{\w'])\b({'|'.join(verbs.PAST)})\b(?![\w}}'])")
LEFT = re.compile(r"\b(left|remain|remains|remaining|over|leave|leaves|still)\b")
SUM = re.compile(r"\b(total|altogether|in all)\b", re.IGNORECASE)
KIN = re.compile(rf"\b({'|'.join([*words.SHE_KIN, *words.HE_KIN])}) \{{B\}}")
# A comparison that says with whom, and one that points back to what was just told.
EXPLICIT, VAGUE = re.compile(r"\{(A|first)\b"), re.compile(r"\b[Tt]hat\b")
SO_FAR = re.compile(r"has (already )?\{done\}")  # what is said once
DOUBLES = {"times": "double", "other_times": "other_double"}  # where it is twice
ARTICLE = re.compile(r"\b([Aa]) (?=[aeio]|u(?!s|ni))(?!one\b)")  # where it is "an"
MOST_TRIES = 40
# How often a story is of the past, and something is doubled where it is twice as much.
PAST, DOUBLE = 0.4, 0.4


@dataclass(frozen=True)
class Manner:
    """How a story is told."""

    unseen: bool = False  # in held-out frames
    scene: str = DEFAULT
    distractor: bool = False  # with a number that is beside the point
    out_of_order: bool = False  # not in the order of the steps
    remark: bool = False  # with a sentence that holds no number


class Teller(Cast):
    """One story in the making: who it is about, and what was named so far."""

    def __init__(
        self, rng: random.Random, manner: Manner, plan: Plan | None = None
    ) -> None:
        events = plan.events if plan else []
        compares = any(role.startswith("ask_difference") for role, _ in events)
        super().__init__(rng, scenes()[manner.scene], third_person=compares)
        self.manner = manner
        self.past = self.people[0][1] in words.PLURAL or rng.random() < PAST
        self.many = events[0][1][0] if events and events[0][1] else 0
        self.shrinks = any(role in SHRINKS for role, _ in events)
        self.frames: list[str] = []  # those that were used
        self.before = ""  # the role before
        self.shift = False  # told of the second and third person

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
        first, last = (numbers[0], numbers[-1]) if numbers else (self.many, 0)
        fill = self.numbers(numbers, first, last) | self.words(first)
        fill |= self.persons(swap, "BC" if shift else "AB") | self.own_words()
        return self.filled(way, fill, shift)

    def filled(self, way: str, fill: dict[str, Callable[[], str]], shift: bool) -> str:
        """A frame with its places filled, as a sentence."""
        way = verbs.agree(way, self.people[shift])
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
            lambda found: verbs.past(found[1], frame[: found.start()]), frame
        )
