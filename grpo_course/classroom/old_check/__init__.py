"""`check` judges the answer to an exercise in words; `progress` lists them all.

From an exercise to the verdict
    exercise       an exercise as data: cases, the solution, misconceptions
    outcome        what one call of an answer did, and whether two did the same
    diagnosis      what is wrong, and what helps
    misconception  which mistake explains it: the one that behaves in the same way
    mutations      mistakes as mutations of the solution's own code
    rules          what learners write instead, as patterns and replacements
    patterns       how a pattern matches a piece of code
    slips          mutations that no pattern expresses
    advice         general advice, where no mistake explains it
    probes         experiments with a wrong answer, where no advice does
    report         the verdict in a few short lines
    colour         the same in colour, where a learner sees HTML
"""

import difflib
from collections.abc import Callable

from grpo_course.classroom import record
from grpo_course.classroom.old_check.colour import show_verdict
from grpo_course.classroom.old_check.diagnosis import diagnose
from grpo_course.classroom.old_check.exercise import Exercise
from grpo_course.classroom.old_check.report import mark, report, wrap

STATES = {" ": "not attempted yet", "x": "not right yet", "v": "right"}

# Key of each exercise checked in this session -> its latest state.
_session: dict[str, str] = {}


def check(function: Callable, keep: bool = True) -> Callable:
    """Judge your function and print the verdict; never raise.

    The exercise is found by the function's name. Returns your function if it is
    right and the course's own if it is not yet, so that
    `center_by_group = check(center_by_group)` lets the rest of the notebook run.
    With keep=False, for an example, nothing is noted in your progress.
    """
    exercise = None
    try:
        exercise = _find(function)
        if exercise is None:
            lines = wrap(_unknown(function))
        elif function is exercise.solution:
            text = "is the course's own here: run the cell that defines yours."
            lines = wrap(f"[ ] {exercise.key} {exercise.name} {text}")
        else:
            problem = diagnose(exercise, function)
            lines = report(exercise, function, problem)
            if keep:
                _note(exercise.key, mark(problem))
            function = exercise.solution if problem else function
    except Exception as error:  # the rest of the notebook must run
        lines = wrap(_broken(error))
        function = exercise.solution if exercise else function
    show_verdict(lines)
    return function


def progress() -> None:
    """Print the exercises of this notebook as a small table.

    Those are the notebook's from which one was checked in this session; before the
    first, all that were kept from the sessions before.
    """
    states = record.kept("exercises") | _session
    chapters = {key.split(".")[0] for key in _session or states}
    rows = [e for e in _exercises() if e.key.split(".")[0] in chapters]
    if not rows:
        print("No exercise has been checked yet.")
        return
    margin = max(5, *(len(exercise.key) + 1 for exercise in rows))
    width = max(len(exercise.name) for exercise in rows)
    for exercise in rows:
        state = states.get(exercise.key, " ")
        name = f"{exercise.key:<{margin}}{exercise.name:<{width}}"
        print(f"{name}  [{state}] {STATES[state]}")
    right = sum(states.get(exercise.key) == "v" for exercise in rows)
    print(f"{right} of {len(rows)} right.")


def _note(key: str, state: str) -> None:
    """Remember a state. A stub that was not touched leaves what was there before."""
    if state == " ":
        state = record.kept("exercises").get(key, state)
    else:
        record.keep("exercises", key, state)
    _session[key] = state


def _find(function: Callable) -> Exercise | None:
    name = getattr(function, "__name__", None)
    for exercise in _exercises():
        if function is exercise.solution or name == exercise.name:
            return exercise
    return None


def _exercises() -> tuple[Exercise, ...]:
    from grpo_course.classroom.exercises import EXERCISES  # loads the worlds

    return EXERCISES


def _unknown(function: object) -> str:
    if not callable(function):
        return (
            "[!] check wants the function itself, without calling it: "
            "check(name), not check(name(...))."
        )
    name = getattr(function, "__name__", type(function).__name__)
    known = [exercise.name for exercise in _exercises()]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    question = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        f"[!] No exercise is called {name}.{question} "
        "Keep the name that the notebook gave the function."
    )


def _broken(error: Exception) -> str:
    return (
        f"[!] The check itself broke ({type(error).__name__}: {error}). "
        "Your function may be right: please report this."
    )
