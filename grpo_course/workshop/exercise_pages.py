"""What an instructor has of the exercises: what a check can say, and the solutions."""

import re
from collections.abc import Collection, Iterator

from nbformat import NotebookNode

from grpo_course.classroom.check.rules import RULES
from grpo_course.classroom.exercises import EXERCISES
from grpo_course.workshop import exercise_cells
from grpo_course.workshop.cells import tags

HINTS = ("Hint", exercise_cells.FOUND)  # all other folds are solutions
NAMED = re.compile(r"^\*\*(.+?)\*\* · ", re.MULTILINE)


def mistakes(part: list[NotebookNode], given: Collection[str]) -> Iterator[str]:
    """What the checks of a section's exercises can say, each with its insight."""
    known = {exercise.key: exercise for exercise in EXERCISES}
    for key, _ in exercise_cells.stated(part):
        if key not in given:
            continue
        exercise = known[key]
        hints = [*exercise.words.values(), *(m.hint for m in exercise.mistakes)]
        hints += [case.hint for case in exercise.cases if case.hint]
        lines = [f"**Exercise {key}**, `{exercise.name}`. {exercise.insight}", ""]
        yield "\n".join([*lines, *(f"- {hint}" for hint in dict.fromkeys(hints))])


def shared_mistakes() -> str:
    """What every check can say."""
    any_call = {"REDUCE": "sum or mean", "ALONG": ""}
    words = dict.fromkeys(each.words.format(**any_call) for each in RULES)
    lines = [
        "",
        "## What the check can say in any exercise",
        "",
        *(f"- {each}" for each in words if each),
    ]
    return "\n".join(lines) + "\n"


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
