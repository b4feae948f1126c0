"""From a plan to an English story: who it is about, its sentences, and their order."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.reader import words
from tools.reader.frames import DEFAULT, expand, own_frames, scenes
from tools.reader.plans import CHANGES, SHIFT, SHRINKS, Event, Plan

Fill = dict[str, Callable[[], str]]  # place: what stands there
# How often a word is left out that the story has had, and a pronoun names a person.
SHORTER, PRONOUN = 0.4, 0.7
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


class Teller:
    """One story in the making: who and what it is about, and what was named so far."""

    def __init__(
        self, rng: random.Random, manner: Manner, plan: Plan | None = None
    ) -> None:
        events = plan.events if plan else []
        compares = any(role.startswith("ask_difference") for role, _ in events)
        self.rng, self.manner, self.scene = rng, manner, scenes()[manner.scene]
        self.people = words.draw_people(rng, third_person=compares)
        self.things, self.others = words.draw_things(rng)
        self.drawn = self.scene.draw(rng)
        self.own_things = "things" in self.drawn  # the scene's, which must be named
        self.things = self.drawn.get("things", self.things)
        self.things_named = False
        self.people_named: set[str] = set()
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

    def numbers(self, numbers: tuple[int, ...], first: int, last: int) -> Fill:
        """What stands where a frame tells a number."""
        return {
            "n": lambda: self.count(last),
            "more": lambda: self.count(last, "more"),
            "bare": lambda: str(last),
            "many": lambda: str(first),
            "also": lambda: str(numbers[1]),
            "third": lambda: str(numbers[2]),
            "number": lambda: str(last),
            "times": lambda: "twice" if last == 2 else f"{last} times",
        }

    def words(self, first: int) -> Fill:
        """What stands where a frame tells of things, times and places."""
        rng = self.rng
        return {
            "holders": lambda: f"{first} {words.pick(rng, words.HOLDERS)}",
            "members": lambda: f"{first} {words.pick(rng, words.MEMBERS)}",
            "goods": lambda: f"{first} {words.pick(rng, words.GOODS)}",
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

    def own_words(self) -> Fill:
        """What stands in the places that the scene alone has."""
        own = {name: lambda text=text: text for name, text in self.drawn.items()}
        return {name: told for name, told in own.items() if name != "things"}

    def persons(self, swap: bool, letters: str) -> dict[str, Callable[[], str]]:
        """Who stands in each place of a frame; with `swap` B has the larger number."""
        one, other = letters[0], letters[1]
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


# How often a question stands first, two sentences are made one, those about one person
# share their subject, and a question takes up the sentence before it.
ASKED_FIRST, JOINED, SHARED, TAKEN_UP = 0.08, 0.12, 0.25, 0.12
IN_A_RATE = 0.4  # the same where there is but a rate and a question
LARGEST_DISTRACTOR = 60
# Shares of the stories that have small numbers in words, all numbers, or a money sign.
SMALL_IN_WORDS, ALL_IN_WORDS, SIGN = 0.2, 0.08, 0.35
IF = ("If {0}, {1}", "{1} if {0}?", "{1} after {0}?", "{1} when {0}?")

ONES = words.listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = words.listed("twenty thirty forty fifty sixty seventy eighty ninety")


def tell(rng: random.Random, plan: Plan, manner: Manner) -> tuple[str, list] | None:
    """The story of a plan and its frames; None if it has no other order."""
    *events, question = plan.events
    teller = Teller(rng, manner, plan)
    if manner.out_of_order:
        if (told_otherwise := reordered(events, teller)) is None:
            return None
        events = told_otherwise
    for role, wanted in (("remark", manner.remark), ("distractor", manner.distractor)):
        if wanted:
            numbers = (rng.randint(2, LARGEST_DISTRACTOR),) if role != "remark" else ()
            insert_beside(rng, events, (role, numbers))
    if not manner.out_of_order and rng.random() < ASKED_FIRST:
        asked = teller.sentence(question)
        told = composed(rng, [teller.sentence(event) for event in events], teller)
        text = " ".join([asked, *told])
    else:
        told = [teller.sentence(event) for event in events]
        asked, role = teller.sentence(question), events[-1][0]
        *told, last = taken_up(rng, told, asked, role, teller)
        text = " ".join([*composed(rng, told, teller), last])
    return in_words(rng, text, teller.things), teller.frames


def composed(rng: random.Random, sentences: list[str], teller: Teller) -> list[str]:
    """The sentences, some of them made one."""
    return joined(rng, with_shared_subject(rng, sentences, teller), teller)


def uncapitalized(sentence: str, teller: Teller) -> str:
    """The sentence as it goes on after a comma: a name keeps its capital."""
    first = re.match(r"[\w.]*", sentence)
    names = {person[0].split()[0] for person in teller.people if person[0][0].isupper()}
    keeps = first is not None and first[0] in {*names, *words.DAYS, "I"}
    return sentence if keeps else sentence[0].lower() + sentence[1:]


def joined(rng: random.Random, sentences: list[str], teller: Teller) -> list[str]:
    """The sentences, where now and then one goes on with the next."""
    made = sentences[:1]
    for sentence in sentences[1:]:
        if rng.random() < JOINED and made[-1].endswith("."):
            made[-1] = f"{made[-1][:-1]}, and {uncapitalized(sentence, teller)}"
        else:
            made.append(sentence)
    return made


def subject_of(sentence: str, teller: Teller) -> str:
    """The first person's name or pronoun if a sentence begins with it, or nothing."""
    for word in dict.fromkeys(teller.people[0][:2]):
        if sentence.startswith(word[0].upper() + word[1:] + " "):
            return sentence[: len(word)]
    return ""


def with_shared_subject(
    rng: random.Random, sentences: list[str], teller: Teller
) -> list[str]:
    """The sentences, where now and then two about one person are "A does and does"."""
    made = sentences[:1]
    for sentence in sentences[1:]:
        before, after = subject_of(made[-1], teller), subject_of(sentence, teller)
        single = ". " not in made[-1] and made[-1].endswith(".")
        told = single and sentence.endswith(".") and ". " not in sentence
        if before and after and told and rng.random() < SHARED:
            rest = sentence[len(after) :].strip()
            made[-1] = rng.choice(shared_forms(made[-1], before, rest))
        else:
            made.append(sentence)
    return made


def shared_forms(one: str, subject: str, rest: str) -> list[str]:
    """One sentence of two with the same subject, in every way."""
    first = one[:-1]
    made = [f"{first} and {rest}", f"{first}, then {rest}", f"{first} and then {rest}"]
    if subject.lower() not in words.PRONOUNS:
        made.append(f"{subject}, who{first[len(subject) :]}, {rest}")
    return made


def taken_up(
    rng: random.Random, told: list[str], question: str, role: str, teller: Teller
) -> list[str]:
    """The sentences, where now and then the question takes up the last, of a change."""
    event = told[-1]
    fits = (
        role in CHANGES
        and question.startswith("How")
        and not set(".,") & set(event[:-1])
    )
    if (
        not fits
        or event.startswith(LEADS)
        or rng.random() >= (IN_A_RATE if role == "rate" else TAKEN_UP)
    ):
        return [*told, question]
    way, first = rng.choice(IF), uncapitalized(event, teller)[:-1]
    asked = question if way.startswith("If") else question[:-1]
    asked = uncapitalized(asked, teller) if way.startswith("If") else asked
    return [*told[:-1], way.format(first, asked)]


def in_words(rng: random.Random, text: str, things: str) -> str:
    """The text with some or all of its numbers in words, or with a money sign."""
    drawn = rng.random()
    if drawn < SMALL_IN_WORDS + ALL_IN_WORDS:
        most = 12 if drawn < SMALL_IN_WORDS else 99
        text = re.sub(rf"\b12 (?=(more )?{re.escape(things)})", "a dozen ", text)
        text = re.sub(r"\d+", lambda found: spelled(found[0], most), text)
    elif rng.random() < SIGN:
        text = re.sub(r"\b(\d+) dollars\b", r"$\1", text)
    return re.sub(r"(^|[.?] )([a-z])", lambda found: found[1] + found[2].upper(), text)


def spelled(digits: str, most: int) -> str:
    """A number in words, up to `most`; a larger one stays in digits."""
    number = int(digits)
    if number > most:
        return digits
    if number < len(ONES):
        return ONES[number]
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")


def insert_beside(rng: random.Random, events: list[Event], beside: Event) -> None:
    """Put what is beside the point after the first event, before no comparison."""
    roles = [role for role, _ in events] + [""]
    apart = [role == "part" or "other_" in role for role in roles]
    free = [i for i in range(1, len(roles)) if not apart[i]]
    events.insert(rng.choice(free), beside)


def reordered(events: Sequence[Event], teller: Teller) -> list[Event] | None:
    """The same events, told in another order than that of the steps."""
    roles = [role for role, _ in events]
    if len(roles) == 2 and roles[1].startswith("other_"):
        explicit = teller.suits(roles[1], teller.choose(roles[1]))
        return [*events][::-1] if explicit else None
    if roles in (["start", "goal"], ["groups", "goal"], ["pair", "goal"]):
        return [*events][::-1]
    late = "late_start" in teller.scene.patterns
    if late and roles[0] == "start" and len(roles) > 1 and roles[1] in ("gain", "lose"):
        others = (i for i, role in enumerate(roles) if role.startswith("other"))
        last = next(others, len(roles))
        return [*events[1:last], ("late_start", events[0][1]), *events[last:]]
    return None
