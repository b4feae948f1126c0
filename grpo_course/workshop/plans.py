"""The plans for an hour, half a day and two days: what is told, and how long it takes.

`plans.toml` says which sections of which notebooks; what is not stated there follows
from the notebooks.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from nbformat import NotebookNode

from grpo_course.workshop import exercise_cells, minutes, speaker

FILE = Path("grpo_course", "workshop", "plans.toml")


class Part(NamedTuple):
    """What a plan tells of one notebook; None stands for all there is."""

    notebook: str
    sections: list[str] | None = None
    without: list[str] | None = None
    exercises: list[str] | None = None


class Plan(NamedTuple):
    """A plan: the minutes it may fill, its parts, and what is left to learners."""

    title: str
    minutes: int
    parts: list[Part]
    homework: list[str]
    reading: list[str]


def read(root: Path) -> dict[str, Plan]:
    """The plans of a checkout, by name: hour, half-day, two-day."""
    stated = tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    return {name: plan(**table) for name, table in stated.items()}


def plan(parts: list[dict[str, Any]], **stated: Any) -> Plan:
    """One table of the file as a Plan."""
    given = {"homework": [], "reading": []} | stated
    return Plan(parts=[Part(**part) for part in parts], **given)


def heading(section: list[NotebookNode]) -> str:
    """The heading of a section; that of the notebook's beginning is its title."""
    return section[0].source.split("\n")[0].lstrip("# ") if section else ""


def told(part: Part, cells: list[NotebookNode]) -> Iterator[list[NotebookNode]]:
    """The sections of a notebook that a plan tells, each as its cells.

    The beginning of the notebook, before its first section, is told with a whole
    notebook alone.
    """
    beginning, *sections = speaker.sections(cells)
    if part.sections is None and part.without is None:
        yield beginning
    for section in sections:
        listed = part.sections is None or heading(section) in part.sections
        if listed and heading(section) not in (part.without or []):
            yield section


def exercises(part: Part, cells: list[NotebookNode]) -> dict[str, int]:
    """The exercises that a plan gives time for, with their minutes."""
    chosen = [cell for section in told(part, cells) for cell in section]
    stated = dict(exercise_cells.stated(chosen))
    wanted = stated if part.exercises is None else part.exercises
    return {number: stated[number] for number in wanted}


def length(part: Part, notebook: NotebookNode) -> int:
    """The minutes of a part: its share of what is told, and its exercises."""
    mine = minutes.of(notebook)
    if mine is None:
        return 0
    sections = speaker.sections(notebook.cells)
    whole = sum(map(speaker.telling, sections))
    share = sum(map(speaker.telling, told(part, notebook.cells))) / whole
    return round(mine.told * share) + sum(exercises(part, notebook.cells).values())
