"""The plans for an hour, half a day and two days: what is told, and how long it takes.

`plans.toml` says which sections of which notebooks; what is not stated there follows
from the notebooks, or from the talk that a plan has.
"""

import tomllib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from nbformat import NotebookNode, v4

from grpo_course.workshop import exercise_cells
from grpo_course.workshop import talk as talks
from grpo_course.workshop.cells import heading, sections

FILE = Path("grpo_course", "workshop", "plans.toml")


class Part(NamedTuple):
    """What a plan tells of one notebook; None stands for all there is."""

    notebook: str
    sections: list[str] | None = None
    without: list[str] | None = None
    exercises: list[str] | None = None
    talk: talks.Part | None = None  # what is told instead, in words of its own


class Plan(NamedTuple):
    """A plan: the minutes it may fill, its parts, and what is left to learners."""

    title: str
    minutes: int
    parts: list[Part]
    outcomes: Sequence[str] = ()
    homework: Sequence[str] = ()
    reading: Sequence[str] = ()
    left_off: Sequence[str] = ()  # beginnings of the handout's rows that it never uses
    days: int = 1


def read(root: Path) -> dict[str, Plan]:
    """The plans of a checkout, by name: hour, half-day, two-day."""
    if not (root / FILE).exists():
        return {}
    stated = tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    return {
        name: plan(spoken=talks.read(name), **table) for name, table in stated.items()
    }


def plan(
    parts: Sequence[dict[str, Any]] = (),
    spoken: Sequence[talks.Part] = (),
    **stated: Any,
) -> Plan:
    """One table of the file as a Plan; its talk says the parts, where it has one."""
    made = [Part(each.notebook, talk=each) for each in spoken]
    return Plan(parts=made + [Part(**part) for part in parts], **stated)


def is_whole(part: Part) -> bool:
    """Whether a plan tells all of a notebook."""
    return part.sections is None and part.without is None and part.talk is None


def told(part: Part, cells: list[NotebookNode]) -> Iterator[list[NotebookNode]]:
    """The sections of a notebook that a plan tells, each as its cells.

    The beginning of the notebook, before its first section, is told with a whole
    notebook alone. Of a talk, these are the sections from which it shows a cell.
    """
    beginning, *rest = sections(cells)
    if is_whole(part):
        yield beginning
    for section in rest:
        if part.talk and not any(map(part.talk.shows, section)):
            continue
        listed = part.sections is None or heading(section) in part.sections
        if listed and heading(section) not in (part.without or []):
            yield section


def exercises(part: Part, cells: list[NotebookNode]) -> dict[str, int]:
    """The exercises that a plan gives time for, with their minutes."""
    if part.talk:
        return of_talk(part.talk, cells)
    chosen = [cell for section in told(part, cells) for cell in section]
    stated = dict(exercise_cells.stated(chosen))
    wanted = stated if part.exercises is None else part.exercises
    for number in wanted:
        if number not in stated:
            raise SystemExit(
                f"A plan gives time for exercise {number} in what it tells of "
                f"{part.notebook}, which holds {', '.join(stated) or 'none'}. Change "
                f"`exercises` in {FILE.as_posix()}."
            )
    return {number: stated[number] for number in wanted}


def of_talk(
    told: talks.Part | talks.Slide, cells: list[NotebookNode]
) -> dict[str, int]:
    """The exercises that stand on the slides of a talk, with their minutes."""
    triples = exercise_cells.triples(cells)
    given = [task for task, stub, _ in triples if told.shows(stub, "exercise")]
    return dict(exercise_cells.stated(given))


def cut(plan: Plan, books: dict[str, NotebookNode]) -> dict[str, NotebookNode]:
    """The notebooks of a plan, with the sections that it tells alone."""
    kept = {p.notebook: chain(*told(p, books[p.notebook].cells)) for p in plan.parts}
    return {name: v4.new_notebook(cells=[*cells]) for name, cells in kept.items()}
