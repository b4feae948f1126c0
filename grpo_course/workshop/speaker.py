"""Notes for the presenter: the minutes of each section, what to say and what to ask.

The minutes are made from the section itself, so they cannot disagree with it; the words
are read from `notes/`. Both stand in the copies that are presented: a learner does
not meet them.
"""

import re

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells, minutes, prediction_cells
from grpo_course.workshop.cells import digest, heading, sections

PREDICT = re.compile(r"\*\*Predict\b")


def add_notes(notebook: NotebookNode, told: dict[str, str] | None = None) -> None:
    """Put a cell of slide type `notes` under each section's heading.

    `told` has the words for a section by its heading; without them, a note is its line
    of minutes.
    """
    parts = sections(notebook.cells)
    mine = minutes.of(notebook)
    if mine and len(parts) > 1:
        lengths = shares([weight(part) for part in parts], mine.total)
        start = lengths[0]
        for number, part in enumerate(parts[1:], start=1):
            line = words(part, start, lengths[number])
            more = (told or {}).get(heading(part), "")
            part.insert(1, note(line, more, number))
            start += lengths[number]
    notebook.cells = [cell for part in parts for cell in part]


def note(line: str, more: str, number: int) -> NotebookNode:
    """A cell that the speaker's window shows alone: a line of minutes, and words."""
    text = "\n\n".join(filter(None, [line, more]))
    name = digest(f"{number}:{text}", 8)  # the same in every copy
    cell = v4.new_markdown_cell(text, id=name)
    cell.metadata["slideshow"] = {"slide_type": "notes"}
    return cell


def timed(length: int, start: int) -> str:
    """How long and from when; what rounds to no minute takes one."""
    return f"{max(length, 1)} min, from {start // 60}:{start % 60:02d}."


def weight(part: list[NotebookNode]) -> float:
    """Minutes that a section takes, before they are scaled to the notebook's total."""
    exercises = sum(each for _, each in exercise_cells.stated(part))
    return minutes.telling(part) + exercises


def shares(weights: list[float], total: int) -> list[int]:
    """Whole minutes in proportion to the weights, with the given sum."""
    ends, done, running = [], 0.0, sum(weights)
    for each in weights:
        done += each
        ends.append(round(total * done / running))
    return [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def words(part: list[NotebookNode], start: int, minutes: int) -> str:
    """The line of minutes of one section, with what to collect and to leave out."""
    lines = [f"*Presenting: {timed(minutes, start)}*"]
    predictions = sum(map(predictions_in, part))
    if predictions:
        count = "a prediction" if predictions == 1 else f"{predictions} predictions"
        lines.append(f"*Collect {count} before you run the cells.*")
    for number, each in exercise_cells.stated(part):
        lines.append(f"*Exercise {number}: {each} min; its solution is no slide.*")
    return " ".join(lines)


def predictions_in(cell: NotebookNode) -> int:
    """The questions of a cell: with choices, or as a text to think about."""
    if prediction_cells.asks(cell):
        return len(prediction_cells.asked(cell))
    return len(PREDICT.findall(cell.source))
