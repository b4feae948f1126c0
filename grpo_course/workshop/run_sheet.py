"""A plan on paper for who tells it: minutes, words, and each vote with its answer."""

from collections.abc import Iterator

from nbformat import NotebookNode

from grpo_course.workshop import (
    minutes,
    plans,
    prediction_cells,
    presenter_notes,
    speaker,
    talk,
)
from grpo_course.workshop.answers import outcomes
from grpo_course.workshop.cells import heading, title_of
from grpo_course.workshop.clock import hours

LATE = "What to leave out when you are late stands at the beginning of a part."


def of(plan: plans.Plan, books: dict[str, NotebookNode]) -> str:
    """What is said in a plan, in the order in which it is told."""
    lines: list[str] = []
    due, start = [], 0
    place = 2  # of the next slide of a talk: its deck begins with a title
    for part in plan.parts:
        book = books[part.notebook]
        if part.talk:
            due.append(f"slide {place} at {hours(start)}")
            lines += slides(part.talk, book, start, place)
            place += len(part.talk.slides)
        else:
            lines += sections(part, book, start)
        start += minutes.length(part, book)
    be = [f"Be at {', '.join(due)}. {LATE}"] if due else []
    return "\n\n".join([f"# Run sheet: GRPO in {plan.title}", *be, *lines]) + "\n"


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
