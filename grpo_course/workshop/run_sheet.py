"""A plan on paper for who tells it: minutes, words, and each vote with its answer."""

from collections.abc import Iterator

from nbformat import NotebookNode

from grpo_course.workshop import (
    clock,
    minutes,
    plans,
    prediction_cells,
    presenter_notes,
    speaker,
    syllabus,
    talk,
)
from grpo_course.workshop.answers import outcomes
from grpo_course.workshop.cells import heading, title_of
from grpo_course.workshop.clock import hours
from grpo_course.workshop.deck import build, stage
from grpo_course.workshop.deck.slide import type_of

LATE = "What to leave out when you are late stands at the beginning of a part."
ENDS = "What to leave out when you are late ends a note."
UNCOUNTED = " Breaks are not counted."


def of(
    plan: plans.Plan, books: dict[str, NotebookNode], begin: int | None = None
) -> str:
    """What is said in a plan, in the order in which it is told.

    Times are those of the day from a minute on, or count what is told alone.
    """
    lines: list[str] = []
    due, start = [], begin or 0
    lengths = {p.notebook: minutes.length(p, books[p.notebook]) for p in plan.parts}
    rests = syllabus.pauses(plan, lengths)
    for part, place in zip(plan.parts, first_slides(plan, books), strict=True):
        book, rest = books[part.notebook], rests.get(part.notebook, "")
        if rest and begin is not None:
            start = begin if rest not in clock.PAUSES else start + clock.PAUSES[rest]
        due.append(f"slide {place} at {hours(start)}")
        if part.talk:
            lines += slides(part.talk, book, start, place)
        else:
            lines += pause(rest, place, start)
            lines += sections(part, book, start)
        start += minutes.length(part, book)
    words = LATE if plan.parts[0].talk else ENDS
    words += UNCOUNTED if rests and begin is None else ""
    be = f"Be at {', '.join(due)}. {words}"
    return "\n\n".join([f"# Run sheet: GRPO in {plan.title}", be, *lines]) + "\n"


def first_slides(plan: plans.Plan, books: dict[str, NotebookNode]) -> list[int]:
    """With which slide of its deck each part of a plan begins, counted from one."""
    made = stage.arrange(build.told(plan, books))
    titles = [cell for cell in made if type_of(cell) in ("slide", "subslide")]
    begins = [n for n, cell in enumerate(titles, 1) if cell.source.startswith("# ")]
    return begins[1:]  # the first is the deck's own


def pause(rest: str, place: int, start: int) -> Iterator[str]:
    """A break, lunch or a further day, and where the plan goes on after it."""
    if rest:
        length = clock.PAUSES.get(rest, 0)
        ends = f", {length} minutes" if length else ""
        name = rest.strip("*").capitalize()
        yield f"**{name}{ends}.** Go on at {hours(start)}, with slide {place}."


def sections(part: plans.Part, book: NotebookNode, start: int) -> Iterator[str]:
    """The sections of a notebook with their notes, told from a minute on."""
    yield f"## {part.notebook[:2]} {title_of(book)}"
    notes = speaker.notes(part, book, presenter_notes.read(part.notebook), start)
    for section in plans.told(part, book.cells):
        if id(section[0]) in notes:
            yield f"### {heading(section)}"
            yield notes[id(section[0])].source
            yield from votes(section)


def slides(
    told: talk.Part, book: NotebookNode, start: float, first: int
) -> Iterator[str]:
    """The slides of a talk, told from a minute on, and counted from the first."""
    yield f"## {told.title}"
    for number, slide in enumerate(told.slides, first):
        if slide.title.startswith("## "):
            yield f"#{slide.title}"
        timed = speaker.timed(slide.minutes, int(start))
        yield f"*Slide {number}, {timed}* {slide.note}"
        for place, cell in enumerate(book.cells):
            if prediction_cells.asks(cell) and slide.shows(cell):
                yield next(votes(book.cells[place:]))
        start += slide.minutes


def votes(section: list[NotebookNode]) -> Iterator[str]:
    """Each question of a section, its choices, and how it came out."""
    for question, choices, came_out, _ in outcomes(section):
        yield f"> **Vote.** {question} ({choices}) *{came_out}*"
