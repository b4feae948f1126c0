"""The verdict on an answer, in a few short lines."""

import re
import textwrap
import traceback
from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.classroom.old_check.diagnosis import Problem
from grpo_course.classroom.old_check.exercise import Exercise

WIDTH = 75  # longer lines wrap in JupyterLab and scroll on the site
LISTED, NO_BREAK = re.compile(r"\[[^][]{1,30}\]"), "\N{NO-BREAK SPACE}"

STUB = "Your code replaces `raise NotImplementedError`; the course's own stands in."
DRAFT = "What stands there is a draft, and it can be fooled: write your own."


def mark(problem: Problem | None) -> str:
    """The state of an exercise: "v" right, " " untouched, "x" wrong."""
    if problem is None:
        return "v"
    return " " if problem.kind == "untouched" else "x"


def report(
    exercise: Exercise, function: Callable, problem: Problem | None
) -> list[str]:
    """The verdict as lines of at most WIDTH characters."""
    title = f"[{mark(problem)}] {exercise.key} {exercise.name}"
    if problem is None:
        return wrap(f"{title} is right. {exercise.insight}")
    if problem.kind == "untouched":
        untouched = DRAFT if exercise.draft else STUB
        return wrap(f"{title}: not attempted yet. {untouched}")
    lines = [f"{title} is not right yet: {problem.pair.case.description}"]
    for name, value in problem.pair.case.args.items():
        label = f"    given {name}{_brackets(exercise.axes.get(name, ''))}: "
        lines.append(label + _value(value, WIDTH - len(label)))
    lines += _results(exercise, function, problem)
    return [_cut(line) for line in lines] + wrap(problem.hint, "    ")


def _results(exercise: Exercise, function: Callable, problem: Problem) -> list[str]:
    """What came out, and what was expected."""
    error = problem.pair.theirs.error
    if error is not None:
        first = next(iter(str(error).strip().splitlines()), "")
        told = wrap(f"{type(error).__name__}: {first}", "    ")[:2]
        return [*_failed_line(error, function), *told]
    if problem.kind in ("none", "changed", "gradient"):
        return []
    theirs, ours = problem.pair.theirs.value, problem.pair.ours.value
    axes = exercise.axes.get("return", "")
    if problem.kind in ("shape", "dtype"):
        return [
            f"    yours:    {_form(theirs)}",
            f"    expected{_brackets(axes)}: {_form(ours)}",
        ]
    shown = [_value(theirs), _value(ours)]
    both_long = problem.kind == "values" and isinstance(ours, Tensor)
    if both_long and any(text.startswith("shape") for text in shown):
        return [_largest_difference(theirs, ours, axes)]
    if exercise.choice:
        return [f"    yours:    {shown[0]}"]
    if shown[0] == shown[1]:
        shown = [_precise(theirs), _precise(ours)]
    return [f"    yours:    {shown[0]}", f"    expected: {shown[1]}"]


def _failed_line(error: BaseException, function: Callable) -> list[str]:
    """The learner's own line that failed; none of the course's frames."""
    code = getattr(function, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.line for f in frames if code and f.filename == code.co_filename]
    return [f"    your line: {lines[-1]}"] if lines and lines[-1] else []


def _largest_difference(theirs: Tensor, ours: Tensor, axes: str) -> str:
    distance = (theirs.detach().double() - ours.detach().double()).abs()
    # NaN first: it is the one to look at.
    worst = distance.nan_to_num(nan=float("inf")).argmax()
    index = torch.unravel_index(worst, ours.shape)
    named = zip(axes.split(), index, strict=False)
    place = ", ".join(f"{axis} {number}" for axis, number in named)
    yours, expected = _compact(theirs[index]), _compact(ours[index])
    return f"    at {place}: yours {yours}, expected {expected}"


def _brackets(axes: str) -> str:
    return f" [{axes}]" if axes else ""


def _value(value: object, room: int = WIDTH - 14) -> str:
    """A value in one line: its numbers if there is room, else its form."""
    text = _compact(value)
    return _form(value) if isinstance(value, Tensor) and len(text) > room else text


def _compact(value: object) -> str:
    if isinstance(value, Tensor):
        return _compact(value.detach().tolist())
    if isinstance(value, list):
        return "[" + ", ".join(_compact(each) for each in value) + "]"
    if isinstance(value, float):
        return f"{value + 0.0:.4g}"
    return getattr(value, "__name__", None) or repr(value)  # of a function the name


def _precise(value: object) -> str:
    """With what four digits hide: all digits, and the type if it is no number."""
    if isinstance(value, Tensor) and value.ndim == 0:
        return f"tensor({value.item()!r})"
    if isinstance(value, Tensor):
        return repr(value.detach().tolist())
    return repr(value) if isinstance(value, int | float) else f"{value!r}"


def _form(tensor: Tensor) -> str:
    return f"shape {list(tensor.shape)}, {str(tensor.dtype).removeprefix('torch.')}"


def wrap(text: str, indent: str = "") -> list[str]:
    """Lines of at most WIDTH characters; those after the first are indented.

    A short list stays in one piece: no line is broken at a NO_BREAK.
    """
    lines = textwrap.wrap(
        LISTED.sub(lambda found: found[0].replace(" ", NO_BREAK), text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."
