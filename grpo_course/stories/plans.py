"""What a story is about: numbers, the steps that solve it, and what each event is."""

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from grpo_course.gsm8k.problems import Fact, compute

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
