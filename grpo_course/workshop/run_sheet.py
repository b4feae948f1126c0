"""A plan on paper for who tells it: minutes, words, and each vote with its answer."""

from collections.abc import Iterator

from nbformat import NotebookNode

from grpo_course.workshop import minutes, plans, presenter_notes, speaker
from grpo_course.workshop.answers import outcomes
from grpo_course.workshop.cells import heading, title_of


def of(plan: plans.Plan, books: dict[str, NotebookNode]) -> str:
    """The notes of a plan's sections, in the order in which they are told."""
    lines, start = [f"# Run sheet: GRPO in {plan.title}"], 0
    for part in plan.parts:
        name, book = part.notebook, books[part.notebook]
        lines.append(f"## {name[:2]} {title_of(book)}")
        notes = speaker.notes(part, book, presenter_notes.read(name), start)
        for section in plans.told(part, book.cells):
            if id(section[0]) in notes:
                told = notes[id(section[0])].source
                lines += [f"### {heading(section)}", told, *votes(section)]
        start += minutes.length(part, book)
    return "\n\n".join(lines) + "\n"


def votes(section: list[NotebookNode]) -> Iterator[str]:
    """Each question of a section, its choices, and how it came out."""
    for question, choices, came_out, _ in outcomes(section):
        yield f"> **Vote.** {question} ({choices}) *{came_out}*"
