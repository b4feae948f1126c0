"""What is asked at the end of a story, and whole plans."""

import random
from collections.abc import Collection

from grpo_course.gsm8k.problems import compute
from grpo_course.stories.plans import (
    CHANGES,
    GROWS,
    LARGEST_OPERAND,
    OPENINGS,
    OPERATIONS,
    RELATIONS,
    SHIFT,
    SHRINKS,
    Plan,
    begin,
    change,
    changes,
    fitting_number,
)

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
