"""Notes for the presenter: the minutes of each section, what to say and what to ask.

The minutes are made from the section itself, so they cannot disagree with it; the words
are read from `notes/`. Both stand in the copies that are presented: a learner does
not meet them.
"""

import re
from itertools import pairwise

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells, minutes, plans, prediction_cells
from grpo_course.workshop.cells import heading
from grpo_course.workshop.clock import hours

PREDICT = re.compile(r"\*\*Predict\b")
SENTENCE = re.compile(r'(?<=[.?!])("?) (?=[A-Z"*`])')
NAMED = re.compile(r"[Ee]xercises?\b(?: (\d+\.\d+))?")
BEFORE, AFTER = "*Before the first part.*", "*After the last part.*"
SETS_UP = """\
These notes are on your own screen (S), and the stage is full (F). Sheet 1 of the
handout lies on the chairs; sheet 2 answers some of the votes, so give it out after the
last one."""
SETS_UP_ROOM = """\
These notes are on your own screen (S), and the stage is full (F). Notebook 00 is open
on every laptop, and who has none sits beside somebody who has. Keep both sheets of the
handout: a note says when to give out the first, and the second answers some of the
votes, so it waits for the end."""
BEGINS = """\
Ask who has trained a network, and who knows reinforcement learning: hands. Ask whose
notebook 00 is open, and seat those who have none beside those who do. Say when the
breaks are; the run sheet has them. Votes are taken before the answer is on the screen:
it stands in the title of the slide that follows."""
ENDS = """\
Give out sheet 2 of the handout. Read the list aloud, say where they go on, and leave
the slide standing while they ask. If there is time, ask for each line which slide
showed it."""


def notes(
    part: plans.Part, notebook: NotebookNode, told: dict[str, str], start: int
) -> dict[int, NotebookNode]:
    """A note for each section that a plan tells, by the identity of its first cell.

    `told` has the words for a section by its heading; without them, a note is its line
    of minutes, which are counted from `start`.
    """
    timed = plans.exercises(part, notebook.cells)
    made = {}
    for section, length in timetable(part, notebook):
        line = words(section, start, length, own(section, timed))
        said = without_exercises(told.get(heading(section), ""), section, timed)
        made[id(section[0])] = note(line, said)
        start += length
    return made


def without_exercises(
    words: str, section: list[NotebookNode], timed: dict[str, int]
) -> str:
    """What a note says, without the sentences about exercises that have no time."""
    stated = dict(exercise_cells.stated(section))
    left_out = stated.keys() - timed.keys()
    if not left_out:
        return words
    if left_out == stated.keys():
        left_out |= {""}  # what is called "the exercise"
    kept = []
    for paragraph in words.split("\n\n"):
        lead, end, said = paragraph.partition(".** ")
        lines = [without(left_out, line) for line in said.split("\n")]
        told = "\n".join(filter(None, lines))
        kept += [f"{lead}{end}{told}"] if told else []
    return "\n\n".join(kept)


def without(left_out: set[str], line: str) -> str:
    """The sentences of a line that name no exercise of these."""
    sentences = SENTENCE.sub(r"\1\n", line).split("\n")
    return " ".join(s for s in sentences if not left_out & set(NAMED.findall(s)))


def note(line: str, words: str = "") -> NotebookNode:
    """A cell that the presenter alone sees."""
    made = v4.new_markdown_cell(f"{line}\n\n{words}".strip())
    made.metadata["slideshow"] = {"slide_type": "notes"}
    return made


def before(plan: plans.Plan) -> NotebookNode:
    """What is said or seen to before a plan begins."""
    told = [part.talk for part in plan.parts if part.talk]
    sets_up = SETS_UP_ROOM if any(part.practises for part in told) else SETS_UP
    return note(BEFORE, sets_up if told else BEGINS)


def after() -> NotebookNode:
    """What is said at the end of a plan."""
    return note(AFTER, ENDS)


def timetable(
    part: plans.Part, notebook: NotebookNode
) -> list[tuple[list[NotebookNode], int]]:
    """The sections that a plan tells, the beginning left out, with their minutes."""
    parts = [s for s in plans.told(part, notebook.cells) if s[0] != notebook.cells[0]]
    timed = plans.exercises(part, notebook.cells)
    exercises = [sum(own(each, timed).values()) for each in parts]
    telling = [minutes.telling(each) for each in parts]
    # An exercise has its minutes whole; what is left is there for telling.
    whole = minutes.length(part, notebook)
    scale = (whole - sum(exercises)) / (sum(telling) or 1)
    weights = [t * scale + e for t, e in zip(telling, exercises, strict=True)]
    lengths = shares(weights, whole)
    return list(zip(parts, lengths, strict=True))


def own(section: list[NotebookNode], timed: dict[str, int]) -> dict[str, int]:
    """The exercises of a section that have time, with their minutes."""
    stated = dict(exercise_cells.stated(section))
    return {number: each for number, each in stated.items() if number in timed}


def timed(length: float, start: float) -> str:
    """How long and from when; what rounds to no minute takes one."""
    return f"{length or 1:g} min, from {hours(start)}."


def presenting(length: float, start: float) -> str:
    """The line with which a note begins."""
    return f"*Presenting: {timed(length, start)}*"


def shares(weights: list[float], total: int) -> list[int]:
    """Whole minutes in proportion to the weights, with the given sum."""
    ends, done, running = [], 0.0, sum(weights)
    for each in weights:
        done += each
        ends.append(round(total * done / running))
    return [end - start for start, end in pairwise([0, *ends])]


def words(
    section: list[NotebookNode], start: int, minutes: int, exercises: dict[str, int]
) -> str:
    """The line of minutes of one section, with what to collect and to leave out."""
    lines = [presenting(minutes, start)]
    predictions = sum(map(predictions_in, section))
    if predictions:
        count = "a prediction" if predictions == 1 else f"{predictions} predictions"
        lines.append(f"*Collect {count} before you run the cells.*")
    for number, each in exercises.items():
        lines.append(f"*Exercise {number}: {each} min; its solution is no slide.*")
    return " ".join(lines)


def predictions_in(cell: NotebookNode) -> int:
    """The questions of a cell: with choices, or as a text to think about."""
    if prediction_cells.asks(cell):
        return len(prediction_cells.asked(cell))
    return len(PREDICT.findall(cell.source))
