"""From the sentences of a story to its text: order, joints, and numbers in words."""

import random
import re
from collections.abc import Sequence

from grpo_course.stories import words
from grpo_course.stories.plans import CHANGES, Event, Plan
from grpo_course.stories.telling import LEADS, Manner, Teller

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
