"""What an instructor has of the exercises: what a check can say, and the solutions."""

import re
from collections.abc import Collection, Iterator

from nbformat import NotebookNode

from grpo_course.classroom.check import lesson
from grpo_course.workshop import exercise_cells
from grpo_course.workshop.cells import tags

HINTS = ("Hint", exercise_cells.FOUND)  # all other folds are solutions
NAMED = re.compile(r"^\*\*(.+?)\*\* · ", re.MULTILINE)


def mistakes(part: list[NotebookNode], given: Collection[str]) -> Iterator[str]:
    """What the checks of a section's exercises can say, each with its insight."""
    for key, _ in exercise_cells.stated(part):
        if key not in given:
            continue
        (exercise,) = (each for each in lesson(key) if each.key == key)
        hints = [*exercise.hints.values()]
        hints += [case.hint for case in exercise.cases if case.hint]
        lines = [f"**Exercise {key}**, `{exercise.name}`. {exercise.insight}", ""]
        yield "\n".join([*lines, *(f"- {hint}" for hint in dict.fromkeys(hints))])


def solutions(part: list[NotebookNode], given: Collection[str]) -> Iterator[str]:
    """Each task of a section with what solves it; hints stay in the notebook."""
    task = ""
    for cell in part:
        for found in NAMED.findall(cell.source):
            task = found
        number = task.removeprefix("Exercise ")
        left_out = number != task and number not in given
        if left_out or not exercise_cells.ANSWERS & set(tags(cell)):
            continue
        for summary, body in exercise_cells.FOLDED.findall(cell.source):
            if summary not in HINTS:
                yield f"**{task}.** {summary}.\n\n{body}"
