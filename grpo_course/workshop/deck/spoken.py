"""A part of a talk as cells: its words, cells of its notebook, and what these need."""

import copy
import re

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells, prediction_cells, speaker, talk
from grpo_course.workshop.cells import RESULT, tags
from grpo_course.workshop.deck import fold
from grpo_course.workshop.deck.heights import picture_size, take_question
from grpo_course.workshop.deck.needs import unseen
from grpo_course.workshop.prediction_cells import revealed

LOOP = re.compile(r"loop:(?: (.+))?")
TASK = '<span class="task"></span>'


def cells(
    part: talk.Part, notebook: NotebookNode, start: float, number: int, loop: str
) -> list[NotebookNode]:
    """The slides of a part, told from a minute on.

    Raises SystemExit where a slide's words are in no cell of the notebook, or in
    several, or in one further up than the last.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    chosen = places(part, code)
    hidden = unseen(notebook.cells, {id(code[k]) for k in chosen})
    made: list[NotebookNode] = []
    told, asked = 0, set[str]()
    for slide in part.slides:
        made += [titled(slide, number)] if slide.title else []
        for block in slide.blocks:
            if not (kind := talk.CELL.fullmatch(block)):
                made.append(v4.new_markdown_cell(marked(block, loop)))
                continue
            before, told = told, chosen.pop(0)
            needs = [hidden[id(cell)] for cell in code[before:told]]
            made += [fold.skipped(source) for source in needs if source]
            asked |= prediction_cells.asked(code[told]).keys()
            if kind[1] == "exercise":
                made.append(task(code[told], notebook, part.notebook))
            made.append(shown(code[told], kind[1], asked))
            told += 1
        line = speaker.presenting(slide.minutes, start)
        made.append(speaker.note(line, slide.note))
        start += slide.minutes
    return made


def titled(slide: talk.Slide, number: int) -> NotebookNode:
    """The title of a slide; that of a part has its number."""
    return v4.new_markdown_cell(re.sub("^# ", f"# {number}. ", slide.title))


def places(part: talk.Part, code: list[NotebookNode]) -> list[int]:
    """Where the cells of a part stand among those of its notebook."""
    found: list[int] = []
    for words in (each[2] for slide in part.slides for each in slide.named):
        there = [k for k, cell in enumerate(code) if words in cell.source]
        if len(there) != 1 or there <= found[-1:]:
            raise SystemExit(
                f"A talk shows the cell of {part.notebook} that has {words!r}. "
                f"{len(there)} cells have it; choose words that one cell alone has, "
                "and that stands below the cell shown before it."
            )
        found += there
    return found


def shown(cell: NotebookNode, kind: str, asked: set[str]) -> NotebookNode:
    """A copy of a cell with as much of it as a slide shall show.

    The question of a film is left out: the title of its slide asks it.
    """
    made = copy.deepcopy(cell)
    if prediction_cells.asks(cell):
        return made
    if kind == "exercise":
        made.outputs = []
        return made
    if kind != "code":
        made.metadata["tags"] = sorted({*tags(cell), RESULT})
    printed, came_out = fold.divided(made.outputs)
    if kind in ("picture", "print"):
        wanted = kind == "picture"
        printed = [o for o in printed if bool(picture_size(o)) == wanted]
    made.outputs = printed + (came_out if asked & {*revealed(cell)} else [])
    for output in made.outputs:
        take_question(output)
    return made


def task(stub: NotebookNode, notebook: NotebookNode, name: str) -> NotebookNode:
    """The number and the minutes of an exercise, and where a learner writes it."""
    triples = exercise_cells.triples(notebook.cells)
    ((number, minutes),) = exercise_cells.stated(t for t, s, _ in triples if s is stub)
    where = exercise_cells.where(stub, notebook.cells, name)
    told = f"**Exercise {number}** · {minutes} minutes. {where}"
    return v4.new_markdown_cell(f"{TASK}{told}")


def marked(block: str, loop: str) -> str:
    """A text; where it asks for the loop, this, with the line marked that it names."""
    if not (line := LOOP.fullmatch(block)):
        return block
    rows = [row.partition("#")[0].rstrip() for row in loop.splitlines()[1:-1]]
    now = [f"<b>{row}</b>" if line[1] and line[1] in row else row for row in rows]
    return "\n".join(['<pre class="loop">', *now, "</pre>"])
