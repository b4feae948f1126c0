"""A plan on paper for who tells it: minutes, words, and each vote with its answer."""

import re
from collections.abc import Iterator

from nbformat import NotebookNode, v4

from grpo_course.workshop import (
    clock,
    minutes,
    plans,
    presenter_notes,
    speaker,
    syllabus,
    talk,
)
from grpo_course.workshop.answers import answered, asked
from grpo_course.workshop.cells import heading, title_of
from grpo_course.workshop.clock import hours
from grpo_course.workshop.deck import build
from grpo_course.workshop.deck.arrange import arrange
from grpo_course.workshop.deck.slide import on_stage, type_of

LATE = "What to leave out when you are late stands at the beginning of a part."
ENDS = "What to leave out when you are late ends a note."
SIZE = re.compile(r" <span .*")  # how large a slide is written
GLANCE = "| from | slide | what | votes and their answers |\n|---|---|---|---|"
ASKED = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)  # a question above its choices
UNCOUNTED = " Breaks are not counted."


def of(
    plan: plans.Plan, books: dict[str, NotebookNode], begin: int | None = None
) -> str:
    """What is said in a plan, in the order in which it is told.

    Times are those of the day from a minute on, or count what is told alone.
    """
    lengths = minutes.lengths(plan, books)
    rests = syllabus.pauses(plan, lengths)
    rows, lines, due = told(plan, books, lengths, rests, begin)
    words = LATE if plan.parts[0].talk else ENDS
    words += UNCOUNTED if rests and begin is None else ""
    be = f"Be at {', '.join(due)}. {words} {syllabus.filled(plan, lengths)}"
    first = speaker.before(plan).source
    head = [f"# Run sheet: GRPO in {plan.title}", be, "\n".join(rows), first]
    return "\n\n".join([*head, *lines]) + "\n"


def told(
    plan: plans.Plan,
    books: dict[str, NotebookNode],
    lengths: dict[str, int],
    rests: dict[str, str],
    begin: int | None,
) -> tuple[list[str], list[str], list[str]]:
    """The rows at a glance, the notes, and where each part begins."""
    lines, rows, due, start = list[str](), [GLANCE], list[str](), begin or 0
    *places, end = slide_numbers(plan, books)
    for part, begins in zip(plan.parts, places, strict=True):
        book, rest = books[part.notebook], rests.get(part.notebook, "")
        place = begins[""]
        rows += [f"| {hours(start)} | | {rest} | |"] if rest else []
        if rest and begin is not None:
            start = begin if rest not in clock.PAUSES else start + clock.PAUSES[rest]
        due.append(f"slide {place} at {hours(start)}")
        lines += pause(rest, place, start)
        if part.talk:
            rows += talk_rows(part.talk, book, start, place)
            lines += slides(part.talk, book, start, place)
        else:
            rows += section_rows(part, book, start, begins)
            lines += sections(part, book, start, begins)
        start += lengths[part.notebook]
    rows.append(f"| {hours(start)} | {end['']} | {build.CLOSING} | |")
    closing = [f"## {build.CLOSING}", f"*Slide {end['']}.* {speaker.ENDS}"]
    return rows, lines + closing, due


def slide_numbers(
    plan: plans.Plan, books: dict[str, NotebookNode]
) -> list[dict[str, int]]:
    """For each part the slides of its sections and questions; under "" its own.

    The last is that of the closing slide.
    """
    begins: list[dict[str, int]] = []
    number = 0
    closing = v4.new_markdown_cell(f"# {build.CLOSING}")
    for cell in arrange([*build.told(plan, books), closing]):
        if type_of(cell) in ("slide", "subslide"):
            number += 1
            level, _, words = SIZE.sub("", cell.source).partition(" ")
            if level == "#":
                begins.append({"": number})
            elif level == "##":
                begins[-1][words] = number
        elif type_of(cell) == "-":
            begins[-1] |= dict.fromkeys(asked_on(cell), number)
    return begins[1:]  # the first is the deck's own


def asked_on(cell: NotebookNode) -> list[str]:
    """The questions that a cell of a deck puts to the room."""
    is_guess = cell.source.startswith('<div class="guess ')
    return ASKED.findall(cell.source) if is_guess else []


def section_rows(
    part: plans.Part, book: NotebookNode, start: int, begins: dict[str, int]
) -> Iterator[str]:
    """The sections of a notebook at a glance, with exercises and answers to votes."""
    timed = plans.exercises(part, book.cells)
    for section, length in speaker.timetable(part, book):
        found = [(begins[on_stage(q)], a) for q, _, a in answered(section)]
        told = "; ".join(f"{place}: {answer.rstrip('.')}" for place, answer in found)
        named = heading(section) + exercised(speaker.own(section, timed))
        place = begins[on_stage(heading(section))]
        yield f"| {hours(start)} | {place} | {named} | {told} |"
        start += length


def talk_rows(
    told: talk.Part, book: NotebookNode, start: float, first: int
) -> Iterator[str]:
    """The slides of a talk at a glance; the one after a vote tells its answer."""
    for number, slide in enumerate(told.slides, first):
        places = asked(slide, book)
        won = [next(answered(book.cells[k:]))[2].rstrip(".") for k in places]
        if named := slide.title.lstrip("# "):
            named = f"**{named}**" if slide.title.startswith("# ") else named
            named += exercised(plans.of_talk(slide, book.cells))
            yield f"| {hours(start)} | {number} | {named} | {', '.join(won)} |"
        start += slide.minutes


def exercised(given: dict[str, int]) -> str:
    """The exercises of a row, with their minutes."""
    return "".join(f", exercise {number}, {each} min" for number, each in given.items())


def pause(rest: str, place: int, start: int) -> Iterator[str]:
    """A break, lunch or a further day, and where the plan goes on after it."""
    if rest:
        length = clock.PAUSES.get(rest, 0)
        ends = f", {length} minutes" if length else ""
        name = rest.strip("*").capitalize()
        yield f"**{name}{ends}.** Go on at {hours(start)}, with slide {place}."


def sections(
    part: plans.Part, book: NotebookNode, start: int, begins: dict[str, int]
) -> Iterator[str]:
    """The sections of a notebook with slides and notes, told from a minute on."""
    yield f"## {part.notebook[:2]} {title_of(book)}"
    notes = speaker.notes(part, book, presenter_notes.read(part.notebook), start)
    for section in plans.told(part, book.cells):
        if id(section[0]) in notes:
            named = heading(section)
            yield f"### {named} (slide {begins[on_stage(named)]})"
            yield notes[id(section[0])].source
            yield from votes(section, begins)


def slides(
    told: talk.Part, book: NotebookNode, start: float, first: int
) -> Iterator[str]:
    """The slides of a talk, told from a minute on, and counted from the first."""
    yield f"## {told.title}"
    for number, slide in enumerate(told.slides, first):
        if slide.title.startswith("## "):
            yield f"#{slide.title}"
        timed = speaker.timed(slide.minutes, start)
        yield f"*Slide {number}, {timed}* {slide.note}"
        for place in asked(slide, book):
            yield next(votes(book.cells[place:], {}))
        start += slide.minutes


def votes(section: list[NotebookNode], begins: dict[str, int]) -> Iterator[str]:
    """Each question of a section, its choices, and the answer."""
    for question, choices, answer in answered(section):
        number = begins.get(on_stage(question))
        named = f"Vote, slide {number}." if number else "Vote."
        yield f"> **{named}** {question} ({choices}) *Answer: {answer}*"
