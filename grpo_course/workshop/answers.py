"""How each prediction came out, and why: read from the stored notebooks."""

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from grpo_course.workshop import plans, prediction_cells, presenter_notes, talk

EXPECT = re.compile(r"^\*\*Expect\.\*\* (.+(?:\n- .+)*)$", re.MULTILINE)
ENDS = re.compile(r"^(#{1,3} |\*\*(Exercise|Change it|Predict)\b)", re.MULTILINE)
LEADS_ON = re.compile(
    r"\?|^((Now|Next|Third|Last|As an extreme|Scrub)\b|`train_policy`)|(source\.|:)$"
)


def outcomes(part: list[NotebookNode]) -> Iterator[tuple[str, list[str], str, str]]:
    """Of each question of a section: its words, its choices, what came out, and why."""
    for place, cell in enumerate(part):
        if not prediction_cells.asks(cell):
            continue
        choices = prediction_cells.choices(cell)
        for name, question in prediction_cells.asked(cell).items():
            came, reason = result(name, part[place + 1 :])
            answer = prediction_cells.with_letter(came, choices[name])
            yield question, choices[name], answer, reason


def answered(section: list[NotebookNode]) -> Iterator[tuple[str, str, str]]:
    """Each question of a section, its choices, and what came out with its letter."""
    for question, offered, answer, _ in outcomes(section):
        yield question, prediction_cells.lettered(offered), answer


def voted(
    plan: plans.Plan, books: dict[str, NotebookNode]
) -> Iterator[tuple[int, list[NotebookNode]]]:
    """The votes of a talk: of each its slide, and the cells from its question on."""
    told = [
        (books[part.notebook], slide)
        for part in plan.parts
        if part.talk
        for slide in part.talk.slides
    ]
    for number, (book, slide) in enumerate(told, 2):  # the first has the plan's title
        for place in asked(slide, book):
            yield number, book.cells[place:]


def asked(slide: talk.Slide, book: NotebookNode) -> list[int]:
    """Where in its notebook the questions stand that a slide shows."""
    cells = enumerate(book.cells)
    return [k for k, c in cells if prediction_cells.asks(c) and slide.shows(c)]


def answers(part: list[NotebookNode]) -> Iterator[str]:
    """Each question of a section, what came out, and the text that explains it."""
    for question, offered, came_out, reason in outcomes(part):
        choices = prediction_cells.lettered(offered)
        told = [f"**{question}** ({choices})", f"*Came out: {came_out}*", reason]
        yield "\n\n".join(filter(None, told))


def result(name: str, cells: list[NotebookNode]) -> tuple[str, str]:
    """What the cells after a question print as its answer, and why it is so.

    The reason is the next text of the section, less what leads to the next question;
    where a section ends with the answer, it is what the cell prints.
    """
    places = [i for i, cell in enumerate(cells) if f"{name}.reveal(" in cell.source]
    cell, rest = cells[places[0]], cells[places[0] + 1 :]
    told = [each.source for each in rest if each.cell_type == "markdown"][:1]
    paragraphs = ENDS.split("".join(told))[0].strip().split("\n\n")
    while len(paragraphs) > 1 and LEADS_ON.search(paragraphs[-1]):
        paragraphs.pop()
    reason = "\n\n".join(paragraphs)
    shown = f"```\n{prediction_cells.printed(cell).strip()}\n```"
    return prediction_cells.came_out(cell, name), reason or shown


def expected(name: str, title: str) -> list[str]:
    """What a presenter's note says of the wrong answers to expect in a section."""
    note = presenter_notes.read(name).get(title, "")
    told = [text.replace("\n", "\n> ") for text in EXPECT.findall(note)]
    return [f"> **Wrong answers, and why.** {text}" for text in told]
