"""A page for each plan, and the handout: what a class gets on paper."""

import re
from collections.abc import Collection, Iterator
from itertools import chain

from nbformat import NotebookNode

from grpo_course.workshop import minutes, plans, speaker
from grpo_course.workshop.cells import FORMULA, heading, heading_of, sections, title_of
from grpo_course.workshop.clock import BREAK, LUNCH, Clock

ABLE = re.compile(r"\*\*You will be able to\*\* (.+)")
LOOP = re.compile(r"```\nfor each epoch:.*?```", re.DOTALL)
TABLE = re.compile(r"^\|.*", re.MULTILINE | re.DOTALL)
WHOLE_LOOP = range(8)  # notebooks whose symbols each plan meets
NUMBERED = """A number such as 03 is that of the notebook which explains a thing; a talk
or a class leaves some out."""
# The tables of the two sheets. What gives a vote away stands on the second.
FIRST, SECOND = ("The symbol sheet", "The axes"), ("Loss zero: fine or broken?",)
# What the handout keeps of the formulas: under which heading, which of them, its name.
FORMULAS = {
    "The same gradient as an average": (1, "the policy gradient"),
    "The group mean contains the response itself": (
        0,
        "deltas: centered on the left, leave-one-out in brackets",
    ),
    "Normalize: divide by the spread": (0, "deltas: a group against its own mean"),
    "Weight each sample": (0, "what old samples say of a new policy"),
    "Clip: let go of what has moved enough": (0, "the clipped objective"),
    "Exact KL, by hand": (0, "the KL to the reference"),
    "Take noise out: k3": (1, "its estimate from a sample"),
    "The objective in one equation": (0, "all of GRPO"),
    "Three lines of proof": (1, "its gradient at the first step, where it prints zero"),
    "Between one step and the whole way": (0, "PPO's deltas, from a critic"),
}
BEFORE = """You know Python and PyTorch; reinforcement learning is not needed. Bring a
laptop with the course installed: get its folder from the address sent with this page,
and in it run `python3 -m grpo_course lab` (on Windows, `py -m grpo_course lab`). All is
well when the first notebook opens. Do that at home, since the first call downloads up
to 2 GB, and several with a GPU's build of PyTorch. The README in the folder says under
"Start" what it takes."""
WATCHED = """You know Python and PyTorch; reinforcement learning is not needed. Nothing
has to be installed for the talk; for your own desk, get the folder from the address
sent with this page, and read "Start" in its README."""
WHERE = "Date, room, speaker: ____________________________________"
COUNTED = """Breaks of a quarter of an hour are not counted; the schedule says where one
fits."""
TIMED = """The times below hold breaks of a quarter of an hour{}."""
ABOUT = """Group Relative Policy Optimization (GRPO) is the algorithm behind many
reasoning models. A model answers a question several times, its answers are graded, and
what is better than the others of its group becomes likelier. You see it at work on
three numbers to sort, where everything can be computed exactly, and on word
problems."""
HEADS = ("from, to", "notebook", "sections", "exercises")
TALK = ("from, to", "what it is about", "notebook", "exercises")
WORTH_A_BREAK, WITHOUT = 40, 85  # minutes: the least before one, the most
Books = dict[str, NotebookNode]


def of(plan: plans.Plan, books: Books, begin: int | None = None) -> str:
    """The syllabus of a plan: what it takes, what one can do after it, what is told.

    The schedule begins at a minute of the day, or counts minutes.
    """
    lengths = minutes.lengths(plan, books)
    lunch = ", and an hour for lunch" if LUNCH in pauses(plan, lengths).values() else ""
    paused = COUNTED if begin is None else TIMED.format(lunch)
    practised = any(plans.exercises(p, books[p.notebook].cells) for p in plan.parts)
    lines = [f"# GRPO in {plan.title}", "", WHERE, "", ABOUT]
    lines += ["", "## Before it", "", BEFORE if practised else WATCHED]
    lines += ["", "## After it, you will be able to", ""]
    lines += [f"- {each}" for each in outcomes(plan, books)]
    lines += ["", "## Schedule", ""]
    lines += [paused, ""] if sum(lengths.values()) > WITHOUT else []
    heads = TALK if plan.parts[0].talk else HEADS
    table = [heads, ("---",) * 4, *rows(plan, books, lengths, Clock(begin))]
    shown = slice(4 if practised else 3)
    lines += [f"| {' | '.join(row[shown])} |" for row in table]
    for words, names in (("homework", plan.homework), ("reading", plan.reading)):
        if names:
            lines += ["", f"As {words}: {', '.join(names)}."]
    return "\n".join(lines) + "\n"


def filled(plan: plans.Plan, lengths: dict[str, int]) -> str:
    """How much of its time a plan tells, and what the rest is for."""
    whole = sum(lengths.values())
    return (
        f"{whole} of {plan.minutes} minutes are filled; the others are for questions."
    )


def outcomes(plan: plans.Plan, books: Books) -> Iterator[str]:
    """What one can do: as whole notebooks say, then as the plan says of its parts."""
    for part in plan.parts:
        found = ABLE.search(books[part.notebook].cells[0].source)
        if found and plans.is_whole(part):
            yield found[1]
    yield from plan.outcomes


def rows(
    plan: plans.Plan, books: Books, lengths: dict[str, int], clock: Clock
) -> Iterator[tuple[str, ...]]:
    """A row of the schedule for each part, and for what comes before it."""
    before, start = pauses(plan, lengths), 0
    for part in plan.parts:
        name, book = part.notebook, books[part.notebook]
        if name in before:
            yield clock.time(start), before[name], "", ""
            clock.pause(before[name], start)
        exercises = ", ".join(plans.exercises(part, book.cells)) or "none"
        told = f"{name[:2]} {title_of(book)}", sections_of(part, book)
        if part.talk:
            told = part.talk.title, name
        begun, start = clock.time(start), start + lengths[name]
        yield f"{begun} to {clock.time(start)}", *told, exercises
    left = f"{clock.time(start)} to {clock.time(plan.minutes)}"
    yield left, "*what you can do now, and questions*", "", ""


def sections_of(part: plans.Part, book: NotebookNode) -> str:
    """How much a plan tells of a notebook. Its run sheet names the sections."""
    return "all" if plans.is_whole(part) else str(len(speaker.timetable(part, book)))


def pauses(plan: plans.Plan, lengths: dict[str, int]) -> dict[str, str]:
    """What comes before a part: a break, a further day, and on one of several lunch."""
    found: dict[str, str] = {}
    start = rested = 0
    day, days, noon = sum(lengths.values()) / plan.days, 1, False
    for name, length in lengths.items():
        if start + length / 2 >= days * day:  # where the days are most alike
            days, noon = days + 1, False
            found[name] = f"**day {days}**"
        elif start - rested >= WORTH_A_BREAK and start + length - rested > WITHOUT:
            late = plan.days > 1 and not noon and start >= (days - 0.5) * day
            found[name], noon = LUNCH if late else BREAK, noon or late
        rested = start if name in found else rested
        start += length
    return found


def handout(books: Books, told: Collection[str], left_off: Collection[str] = ()) -> str:
    """Two sheets: the loop, and the tables and formulas of the told notebooks.

    Rows that begin with one of `left_off` do not stand on them.
    """
    first, *_ = books
    kept = {name: book for name, book in books.items() if name in {first, *told}}
    lines = ["# GRPO, sheet 1: the loop and its symbols", loop(books[first]), NUMBERED]
    lines += tables(FIRST, kept)
    lines += ["# GRPO, sheet 2: formulas, and a loss of zero"]
    lines += ["## Formulas", "\n".join(formulas(kept)), *tables(SECOND, kept)]
    rows = "\n\n".join(lines).split("\n")
    return "\n".join(row for row in rows if not row.startswith(tuple(left_off))) + "\n"


def tables(headings: Collection[str], kept: Books) -> Iterator[str]:
    """The tables under these headings."""
    for section in chain(*(sections(book.cells) for book in kept.values())):
        table = TABLE.search(section[0].source)
        if table and heading(section) in headings:
            yield f"## {heading(section)}"
            yield needed(table[0], kept)


def needed(table: str, kept: Books) -> str:
    """A table without rows of notebooks that are not told, beyond the whole loop."""
    numbers = {int(name[:2]) for name in kept} | {*WHOLE_LOOP}
    rows = [row for row in table.split("\n") if row.strip()]
    ends = [re.search(r"\| (\d\d) \|$", row) for row in rows]
    pairs = zip(rows, ends, strict=True)
    return "\n".join(row for row, end in pairs if not end or int(end[1]) in numbers)


def loop(welcome: NotebookNode) -> str:
    """The loop of GRPO as notebook 00 writes it, a fence of code."""
    return next(filter(None, (LOOP.search(cell.source) for cell in welcome.cells)))[0]


def formulas(books: Books) -> Iterator[str]:
    """The chosen formulas, each with its notebook and its name."""
    for name, book in books.items():
        text = "\n".join(c.source for c in book.cells if c.cell_type == "markdown")
        for under in re.split(r"(?m)^(?=#{1,3} )", text)[1:]:
            place, words = FORMULAS.get(heading_of(under), (0, ""))
            if words:
                formula = FORMULA.findall(under)[place].strip()
                yield f"- {words} ({name[:2]}): ${formula}$"
