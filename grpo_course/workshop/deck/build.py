"""The notebook of a plan: its sections in order, and unseen what their code needs."""

import copy
import re
from itertools import pairwise
from pathlib import Path

from nbformat import NotebookNode, v4

from grpo_course.classroom.record import STORED
from grpo_course.workshop import (
    anywhere,
    exercise_cells,
    form,
    minutes,
    plans,
    presenter_notes,
    slides,
    speaker,
    syllabus,
    tidy,
)
from grpo_course.workshop.cells import (
    ASIDE,
    digest,
    heading,
    is_behind,
    tags,
    title_of,
)
from grpo_course.workshop.deck import offline, spoken
from grpo_course.workshop.deck.arrange import arrange
from grpo_course.workshop.deck.fold import skipped
from grpo_course.workshop.deck.needs import unseen

# Films and sliders answer on stage as they do in a stored notebook, and nothing that is
# done there is kept as a learner's progress.
FIRST = f'import os\n\nos.environ["{STORED}"] = "1"'
AFRESH = "from grpo_course import setup\n\nsetup(seed=0)"
STATED = re.compile(r"\*\*Exercise [\d.]+\*\*[^\n]*\n*")
MOST_NAMED = 20  # sections on a title slide, above which they fill it
CLOSES = ("progress()", "guesses()")
CLOSING = "You can now"
ABOUT = "Group Relative Policy Optimization: learning from graded attempts"


def deck(name: str, root: Path) -> NotebookNode:
    """The deck of a plan, with the outputs that the notebooks have stored."""
    plan = plans.read(root)[name]
    names = {"00_welcome", *(part.notebook for part in plan.parts)}
    books = {each: form.read(root / "notebooks" / f"{each}.ipynb") for each in names}
    return arranged(name, [*told(plan, books), *closing_slide(plan, root)])


def told(plan: plans.Plan, books: dict[str, NotebookNode]) -> list[NotebookNode]:
    """The title of a plan, and the cells of all its parts."""
    parts = [(part, copy.deepcopy(books[part.notebook])) for part in plan.parts]
    loop = syllabus.loop(books["00_welcome"])
    cells, start = title_slide(plan, parts), 0
    for number, (part, notebook) in enumerate(parts, 1):
        if part.talk:
            title, *slides = spoken.cells(part.talk, notebook, start, number, loop)
            cells += [title, skipped(AFRESH), *slides]
        else:
            cells += told_cells(part, notebook, start, f"{number}. ")
        start += minutes.length(part, notebook)
    return cells


def single(path: Path) -> NotebookNode:
    """The deck of one notebook, all of it."""
    return arranged(path.stem, told_cells(plans.Part(path.stem), form.read(path), 0))


def arranged(name: str, cells: list[NotebookNode]) -> NotebookNode:
    """A notebook of slides."""
    first, *others = cells
    made = v4.new_notebook(cells=arrange([first, skipped(FIRST), *others]))
    made.metadata.update(tidy.FIXED, rise=settings())
    for number, cell in enumerate(made.cells):
        cell.id = digest(f"{name}:{number}", 8)
    return made


def title_slide(
    plan: plans.Plan, parts: list[tuple[plans.Part, NotebookNode]]
) -> list[NotebookNode]:
    """What the deck is, and its parts, by the names that its plan gives them."""
    titles = [p.talk.title if p.talk else title_of(notebook) for p, notebook in parts]
    rows = "\n".join(f"{number}. {title}" for number, title in enumerate(titles, 1))
    title = v4.new_markdown_cell(f"# GRPO in {plan.title}\n\n{ABOUT}\n\n{rows}")
    return [title, speaker.before(plan)]


def closing_slide(plan: plans.Plan, root: Path) -> list[NotebookNode]:
    """What the room can do now, and where it goes on."""
    rows = "\n".join(f"- {outcome}" for outcome in plan.outcomes)
    address = anywhere.at_home(anywhere.repository(root), root)
    source = "the course's folder" if anywhere.NOBODY in address else address
    on = f"Go on at your own desk, from {source}: `python3 -m grpo_course lab`."
    left = [("To do", plan.homework), ("To read, left out today", plan.reading)]
    named = [f"{words}: {', '.join(books)}." for words, books in left if books]
    closing = "\n\n".join([f"# {CLOSING}", rows, on, *named])
    return [v4.new_markdown_cell(closing), speaker.after()]


def told_cells(
    part: plans.Part,
    notebook: NotebookNode,
    start: int,
    number: str = "",
) -> list[NotebookNode]:
    """A title, a fresh start, and the chosen sections with what they need."""
    # First, since minutes count all that the notebook says.
    notes = speaker.notes(part, notebook, presenter_notes.read(part.notebook), start)
    told = told_sections(part, notebook)
    chosen = {id(cell) for section in told for cell in section}
    needs = unseen(notebook.cells, chosen)
    names = "\n".join(f"- {heading(section)}" for section in told)
    made = [*opening(part, notebook, start, number, names), skipped(AFRESH)]
    instead = exercises_left_out(part, notebook.cells)
    for cell in notebook.cells:
        closes = cell.source.strip().startswith(CLOSES)
        if id(cell) in chosen and not closes and not is_behind(cell):
            new = instead.get(id(cell), copy.deepcopy(cell))
            if number and exercise_cells.EXERCISE in tags(new):
                where = exercise_cells.where(cell, notebook.cells, part.notebook)
                new.source = STATED.sub(rf"\g<0>{where}\n\n", new.source, count=1)
            made += [new] if new.source else []
        elif needs.get(id(cell)) and not closes:
            made.append(skipped(needs[id(cell)]))
        made += [notes[id(cell)]] if id(cell) in notes else []
    return made


def opening(
    part: plans.Part, notebook: NotebookNode, start: int, number: str, names: str
) -> list[NotebookNode]:
    """The title slide of a part: its sections, or the loop with its line marked."""
    fits = number and names.count("\n") + 1 < MOST_NAMED
    where = f"Notebook `{part.notebook}`\n\n" if fits else ""
    title = f"# {number}{title_of(notebook)}\n\n{where}{names}"
    line = speaker.presenting(minutes.length(part, notebook), start)
    said = [speaker.note(line)] if number else []
    return [v4.new_markdown_cell(title), *said]


def told_sections(part: plans.Part, notebook: NotebookNode) -> list[list[NotebookNode]]:
    """The sections of a part, the notebook's beginning left out.

    Where single sections are told, asides are left out, each with the last paragraph
    of the text that leads to it.
    """
    told = [s for s in plans.told(part, notebook.cells) if s[0] != notebook.cells[0]]
    if not part.sections:
        return told
    kept = []
    for section in told:
        for cell, after in pairwise(section):
            first = cell.source.rpartition("\n\n")[0]
            leads = cell.cell_type == "markdown" and after.cell_type == "code"
            if leads and ASIDE in tags(after) and first:
                cell.source = first
        kept.append([cell for cell in section if ASIDE not in tags(cell)])
    return kept


def exercises_left_out(part: plans.Part, cells: list) -> dict[int, NotebookNode]:
    """Exercises without time: what leads to one stays, or the words of a section."""
    instead: dict[int, NotebookNode] = {}
    triples = [] if part.exercises is None else exercise_cells.triples(cells)
    for task, stub, _ in triples:
        numbers = {number for number, _ in exercise_cells.stated([task])}
        if not numbers & set(part.exercises or []):
            instead[id(stub)] = skipped(stub.source)
            begins = task.source.startswith("#")
            told = task.source if begins else task.source.split("**Exercise ")[0]
            instead[id(task)] = v4.new_markdown_cell(STATED.sub("", told).strip())
    return instead


def settings() -> dict:
    """What jupyterlab-rise is told; the header carries the style sheet."""
    return slides.settings() | {"header": f"<style>{offline.style()}</style>"}
