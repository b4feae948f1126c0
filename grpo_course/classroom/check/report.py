"""The verdict on an answer, in a few short lines."""

import textwrap
from collections.abc import Callable

from torch import Tensor

from grpo_course.classroom.check.advice import error_line
from grpo_course.classroom.check.diagnosis import Finding
from grpo_course.classroom.check.exercise import Exercise

WIDTH = 75  # longer lines wrap in JupyterLab and scroll on the site


def report(exercise: Exercise, function: Callable, finding: Finding) -> list[str]:
    """The verdict as lines of at most WIDTH characters."""
    head = f"[{finding.state}] {exercise.key} {exercise.name}"
    if finding.state == " ":
        return wrap(
            f"{head}: not attempted yet. Your code replaces `raise "
            "NotImplementedError`; the course's own stands in."
        )
    if finding.state == "v":
        return wrap(f"{head} is right. {exercise.insight}")
    lines = [f"{head} is not right yet: {finding.case.description}"]
    for name, value in finding.case.args.items():
        lines.append(f"    given {_named(name, value, exercise)}")
    lines += _results(exercise, function, finding)
    return [_cut(line) for line in lines] + wrap(finding.hint, "    ")


def _results(exercise: Exercise, function: Callable, finding: Finding) -> list[str]:
    """What came out, and what was expected."""
    error, theirs, ours = finding.theirs.error, finding.theirs.value, finding.ours.value
    if error is not None:
        first = next(iter(str(error).strip().splitlines()), "")
        line = error_line(error, function)
        where = [f"    your line: {line}"] if line else []
        return [*where, *wrap(f"{type(error).__name__}: {first}", "    ")[:2]]
    if finding.problem in ("none", "changed", "gradient"):
        return []
    axes = exercise.axes.get("return", "")
    suffix = f" [{axes}]" if axes else ""
    if finding.problem in ("shape", "dtype"):
        return [
            f"    yours:    {_form(theirs)}",
            f"    expected{suffix}: {_form(ours)}",
        ]
    shown = [_value(theirs), _value(ours)]
    if finding.problem == "values" and any(text.startswith("shape") for text in shown):
        return [_largest_difference(theirs, ours, axes)]
    if exercise.choice:
        return [f"    yours:    {shown[0]}"]
    return [f"    yours:    {shown[0]}", f"    expected: {shown[1]}"]


def _largest_difference(theirs: Tensor, ours: Tensor, axes: str) -> str:
    distance = (theirs.detach().double() - ours.detach().double()).abs()
    # NaN first: it is the one to look at.
    worst = distance.nan_to_num(nan=float("inf")).flatten().argmax()
    place, index = [], int(worst)
    for size, name in zip(reversed(ours.shape), reversed(axes.split()), strict=False):
        place.insert(0, f"{name} {index % size}")
        index //= size
    yours, expected = theirs.flatten()[worst], ours.flatten()[worst]
    return (
        f"    at {', '.join(place)}: yours {_compact(yours)}, "
        f"expected {_compact(expected)}"
    )


def _named(name: str, value: object, exercise: Exercise) -> str:
    axes = exercise.axes.get(name, "")
    label = f"{name} [{axes}]" if axes else name
    room = WIDTH - len(f"    given {label}: ")
    text = _value(value, room)
    return f"{label}: {text}"


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
    return repr(value)


def _form(tensor: Tensor) -> str:
    return f"shape {list(tensor.shape)}, {str(tensor.dtype).removeprefix('torch.')}"


def wrap(text: str, indent: str = "") -> list[str]:
    """Lines of at most WIDTH characters; those after the first are indented."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."
