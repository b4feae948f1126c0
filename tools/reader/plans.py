"""What a story is about: numbers, the steps that solve it, each event, the question."""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from grpo_course.gsm8k import Fact, compute

# The largest that a change leads to, a number in a change, and one in "4 boxes with 7".
LARGEST, LARGEST_OPERAND, LARGEST_FACTOR = 200, 60, 12
LARGEST_START, MANY = 120, 0.2  # now and then there are many at first

Step = tuple[int, str, int]  # places of two numbers, and the operation between them
Event = tuple[str, tuple[int, ...]]  # a role of a scene, and its numbers


@dataclass
class Plan:
    """Numbers given, steps that solve it, and the events that tell of them in order.

    A step names its two numbers by their place: the operands count from 0 up, the
    results of the steps from -1 down.
    """

    operands: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)  # place: number

    def give(self, number: int) -> int:
        """A number that the story tells. -> its place"""
        place = len(self.operands)
        self.operands.append(number)
        self.values[place] = number
        return place

    def work(self, left: int, operation: str, right: int) -> int:
        """A step. -> the place of its result"""
        self.steps.append((left, operation, right))
        place = -len(self.steps)
        self.values[place] = compute(self.values[left], operation, self.values[right])
        return place

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The steps with their numbers, in order: (12, "+", 7)."""
        return tuple((self.values[i], op, self.values[j]) for i, op, j in self.steps)


OPENINGS = {
    "start": 0,
    "pair": 1,
    "groups": 1,
    "rate": 1,
    "sets": 2,
}  # the steps that each takes
CHANGES = {
    "gain": 1,
    "lose": 1,
    "times": 1,
    "half": 1,
    "there_and_back": 2,
    "two_losses": 2,
    "more_groups": 2,
    "fewer_groups": 2,
}
TWO_CHANGES = {"there_and_back": ("lose", "gain"), "two_losses": ("lose", "lose")}
# The events after which something is left, and those that add something.
SHRINKS = ("lose", "half", "fewer_groups", *TWO_CHANGES)
GROWS = (
    "gain",
    "pair",
    "triple",
    "groups",
    "sets",
    "bill",
    "more_groups",
    "there_and_back",
)
RELATIONS = ("other_more", "other_fewer", "other_times", "other_half")
OPERATIONS = {"gain": "+", "lose": "-", "more": "+", "fewer": "-"}
OPERATIONS |= {"times": "*", "half": "/"}
# Before a role: it is told of the second and third person, not of the first and second.
SHIFT = "next:"


def changes(most_steps: int, roles: Collection[str]) -> list[str]:
    """The events that take so many steps at most; gains and losses stand twice."""
    names = [*CHANGES, "gain", "lose"]
    return [name for name in names if CHANGES[name] <= most_steps and name in roles]


def begin(rng: random.Random, plan: Plan, opening: str, largest: float) -> int:
    """How many there are at first. -> the place of that number"""
    if opening == "start":
        most = LARGEST_START if rng.random() < MANY else LARGEST_OPERAND
        place = plan.give(rng.randint(2, int(min(most, largest))))
        plan.events.append(("start", (plan.values[place],)))
        return place
    most = LARGEST_OPERAND if opening in ("pair", "triple") else LARGEST_FACTOR
    numbers = tuple(rng.randint(2, most) for _ in range(NUMBERS[opening]))
    plan.events.append((opening, numbers))
    return OPENED[opening](plan, *numbers)


def added(plan: Plan, *numbers: int) -> int:
    """Some numbers in all. -> the place of the sum"""
    place = plan.give(numbers[0])
    for number in numbers[1:]:
        place = plan.work(place, "+", plan.give(number))
    return place


def multiplied(plan: Plan, many: int, each: int) -> int:
    """So many times so many. -> the place of the product"""
    return plan.work(plan.give(many), "*", plan.give(each))


def in_sets(plan: Plan, one: int, other: int, many: int) -> int:
    """So many times two numbers. -> the place of the product"""
    return plan.work(added(plan, one, other), "*", plan.give(many))


def billed(plan: Plan, price: int, other: int, many: int, many_others: int) -> int:
    """So many at one price, so many at another. -> the place of the sum"""
    one = multiplied(plan, many, price)
    return plan.work(one, "+", multiplied(plan, many_others, other))


# How each opening but the first leads to a number, and from how many.
OPENED: dict[str, Callable[..., int]] = {
    "pair": added,
    "triple": added,
    "groups": multiplied,
    "rate": multiplied,
}
OPENED |= {"sets": in_sets, "bill": billed}
NUMBERS = {"pair": 2, "triple": 3, "groups": 2, "rate": 2, "sets": 3, "bill": 4}


def change(rng: random.Random, plan: Plan, role: str, place: int) -> int | None:
    """A new number from the one at `place`. -> its place, None where no number fits

    `role` is one of CHANGES, or of RELATIONS: then it is another person's.
    """
    if role in ("more_groups", "fewer_groups"):
        return change_by_groups(rng, plan, role, place)
    if role in TWO_CHANGES:
        return change_twice(rng, plan, role, place)
    kind = role.removeprefix(SHIFT).removeprefix("other_")
    number = fitting_number(rng, kind, plan.values[place])
    if number is None:
        return None
    plan.events.append((role, () if kind == "half" else (number,)))
    return plan.work(place, OPERATIONS[kind], plan.give(number))


def fitting_number(rng: random.Random, kind: str, value: int) -> int | None:
    """A number to change `value` by, so that 1 to LARGEST remain; None for none."""
    if kind == "half":
        return 2 if value % 2 == 0 else None
    if kind == "times":
        most = 5 if value <= LARGEST_FACTOR else 2 if value <= LARGEST // 2 else 0
    else:
        room = LARGEST - value if OPERATIONS[kind] == "+" else value - 1
        most = min(LARGEST_OPERAND, room)
    return rng.randint(2, most) if most >= 2 else None


def change_by_groups(
    rng: random.Random, plan: Plan, role: str, place: int
) -> int | None:
    """So many times so many come or go. -> the place of the new number, or None"""
    many, each = rng.randint(2, 9), rng.randint(2, 9)
    operation = "+" if role == "more_groups" else "-"
    if not 0 < compute(plan.values[place], operation, many * each) <= LARGEST:
        return None
    plan.events.append((role, (many, each)))
    product = plan.work(plan.give(many), "*", plan.give(each))
    return plan.work(place, operation, product)


def change_twice(rng: random.Random, plan: Plan, role: str, place: int) -> int | None:
    """Two changes that are told in one sentence. -> the place of the new number"""
    numbers = []
    for kind in TWO_CHANGES[role]:
        number = fitting_number(rng, kind, plan.values[place])
        if number is None:
            return None
        numbers.append(number)
        place = plan.work(place, OPERATIONS[kind], plan.give(number))
    plan.events.append((role, tuple(numbers)))
    return place


# What is asked, with what leads up to it: another number is given outright, or told by
# the first; a third one by the second; a number that is aimed at, or what was left.
ENDINGS = {
    "ask": 0,
    "ask_other": 1,
    "ask_third": 2,
    "ask_both": 2,
    "ask_both_given": 1,
    "ask_all_given": 2,
    "ask_difference_given": 1,
    "ask_need": 1,
    "ask_lost": 1,
    "ask_gained": 1,
    "ask_rest": 1,
}
TOLD_BEFORE = {  # the question: the event before it
    "ask_need": "goal",
    "ask_lost": "fewer_now",
    "ask_gained": "more_now",
    "ask_rest": "part",
}
BEFORE = 0.08  # share of the stories that ask what there was at first


def draw_plan(
    rng: random.Random, num_steps: int, roles: Collection[str], largest: float = 1000
) -> Plan | None:
    """Events and a question of some roles that take `num_steps` steps.

    Every number is at least 1 and at most `largest`. None where the draw does not fit.
    """
    plan = Plan()
    if num_steps <= 2 and "ask_before" in roles and rng.random() < BEFORE:
        return plan if ask_before(rng, plan, num_steps) else None
    opening = rng.choice([name for name in ("start", *OPENINGS) if name in roles])
    ending = rng.choice(
        [name for name in (*ENDINGS, "ask", "ask") if is_told(name, roles)]
    )
    left = num_steps - OPENINGS[opening] - ENDINGS[ending]
    if left < 0 or (left == 0 and (opening, ending) == ("start", "ask")):
        return None
    place: int | None = begin(rng, plan, opening, largest)
    while left and place is not None:
        offered = changes(left, roles)
        if not offered:
            return None
        role = rng.choice(offered)
        place, left = change(rng, plan, role, place), left - CHANGES[role]
    fits = place is not None and end(rng, plan, ending, place, roles)
    return plan if fits and max(plan.values.values()) <= largest else None


def is_told(ending: str, roles: Collection[str]) -> bool:
    """Whether a scene with these roles can lead to a question and ask it."""
    question = ending.removesuffix("_given")
    if (question if question != "ask_third" else "ask_other") not in roles:
        return False
    if question == "ask_third":
        return "ask_all" in roles
    if question in TOLD_BEFORE:
        return TOLD_BEFORE[question] in roles
    if ending.endswith("_given"):
        return "other" in roles
    return question == "ask" or any(name in roles for name in RELATIONS)


def ask_before(rng: random.Random, plan: Plan, num_steps: int) -> bool:
    """How many there were before some changes. -> whether the numbers fit"""
    now = rng.randint(2, LARGEST_OPERAND)
    told = []
    for _ in range(num_steps):
        role = rng.choice(("gain", "lose"))
        number = fitting_number(rng, role, now)
        if number is None:
            return False
        now = compute(now, OPERATIONS[role], number)
        told.append((role, number))
    if now < 2:
        return False  # "1 apples"
    place = plan.give(now)
    for role, number in reversed(told):
        back = "-" if role == "gain" else "+"
        place = plan.work(place, back, plan.give(number))
    events = [(role, (number,)) for role, number in told]
    plan.events = [("some", ()), *events, ("now", (now,)), ("ask_before", ())]
    return True


def end(
    rng: random.Random, plan: Plan, ending: str, place: int, roles: Collection[str]
) -> bool:
    """What leads to the question, and the question. -> whether the numbers fit"""
    question = ending.removesuffix("_given")
    if question in TOLD_BEFORE:
        return compare(rng, plan, question, place)
    if question == "ask":
        plan.events.append(("ask", ()))
        return True
    other = give_other(rng, plan, "other") if question != ending else None
    other = other or relate(rng, plan, place, roles)
    if question == "ask_third" and other is not None:
        other = relate(rng, plan, other, roles, SHIFT)
        question = SHIFT + "ask_other"
    if other is None:
        return False
    if question == "ask_both":
        plan.work(place, "+", other)
    elif question == "ask_all":
        third = give_other(rng, plan, SHIFT + "other")
        plan.work(plan.work(place, "+", other), "+", third)
    elif question == "ask_difference":
        if plan.values[place] == plan.values[other]:
            return False
        question += subtract(plan, place, other)
    plan.events.append((question, ()))
    return True


def subtract(plan: Plan, place: int, other: int) -> str:
    """The smaller number from the larger. -> "_other" if the other one is larger"""
    if plan.values[place] > plan.values[other]:
        plan.work(place, "-", other)
        return ""
    plan.work(other, "-", place)
    return "_other"


def compare(rng: random.Random, plan: Plan, question: str, place: int) -> bool:
    """A number beside the one at `place`, and what is between. -> whether one fits"""
    told_too = {"ask_lost": SHRINKS, "ask_gained": GROWS}.get(question, ())
    if any(role in told_too for role, _ in plan.events):
        return False  # those would count too
    value = plan.values[place]
    larger = question in ("ask_need", "ask_gained")
    gap = fitting_number(rng, "gain" if larger else "lose", value)
    if gap is None or (not larger and value - gap < 2):
        return False
    told = value + gap if larger else value - gap
    plan.events += [(TOLD_BEFORE[question], (told,)), (question, ())]
    other = plan.give(told)
    plan.work(*((other, "-", place) if larger else (place, "-", other)))
    return True


def give_other(rng: random.Random, plan: Plan, role: str) -> int:
    """Another person's number, told outright. -> its place"""
    number = rng.randint(2, LARGEST_OPERAND)
    plan.events.append((role, (number,)))
    return plan.give(number)


def relate(
    rng: random.Random,
    plan: Plan,
    place: int,
    roles: Collection[str],
    shift: str = "",
) -> int | None:
    """Another person's number, told by the first one's. -> its place, if one fits"""
    offered = [name for name in RELATIONS if name in roles]
    return change(rng, plan, shift + rng.choice(offered), place)
