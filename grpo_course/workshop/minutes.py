"""Minutes: what authors state, what follows from it, and where `save` writes it.

The first cell of a notebook states how long it takes without its exercises, and each
exercise states its own minutes. All other minutes follow from these.
"""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from grpo_course.workshop import exercise_cells, form, slides

# An author may leave out the second half: then there are no exercises to add yet.
STATED = re.compile(r"\*\*Minutes:\*\* (\d+)(?: \((\d+) without exercises\))?")
DOCUMENTS = ("README.md", "INSTRUCTORS.md")
TABLE = "| notebook |"
NAME = re.compile(r"\d\d_\w+")
PLANS = {"one hour": 60, "half a day": 210, "two days": 720}  # breaks not counted


class Minutes(NamedTuple):
    """How long a notebook takes: what is told, and its exercises."""

    told: int
    exercises: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.told + self.exercises


def of(notebook: NotebookNode) -> Minutes | None:
    """The minutes of a notebook; None where its first cell states none."""
    found = STATED.search(notebook.cells[0].source) if notebook.cells else None
    if found is None:
        return None
    exercises = sum(each for _, each in exercise_cells.stated(notebook.cells))
    return Minutes(int(found[2] or found[1]), exercises)


def state(notebook: NotebookNode) -> None:
    """Bring the minutes in a notebook's first cell up to date."""
    mine = of(notebook)
    if mine:
        without = f" ({mine.told} without exercises)" if mine.exercises else ""
        words = f"**Minutes:** {mine.total}{without}"
        notebook.cells[0].source = STATED.sub(words, notebook.cells[0].source, count=1)


def documents(root: Path) -> dict[Path, str]:
    """The files whose table of notebooks is out of date, and their new text."""
    notebooks = {p: form.read(p) for p in sorted((root / "notebooks").glob("*.ipynb"))}
    known = {path.stem: of(notebook) for path, notebook in notebooks.items()}
    minutes = {name: mine for name, mine in known.items() if mine}
    paths = [root / name for name in DOCUMENTS if (root / name).exists()]
    old = {path: path.read_text(encoding="utf-8") for path in paths}
    new = {path: filled(text, minutes) for path, text in old.items()}
    for path, notebook in notebooks.items():
        before = [cell.source for cell in notebook.cells]
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = filled(cell.source, minutes)
        if [cell.source for cell in notebook.cells] != before:
            slides.place(notebook)
            new[path] = nbformat.writes(notebook) + "\n"
    return {path: text for path, text in new.items() if text != old.get(path)}


def filled(text: str, minutes: dict[str, Minutes]) -> str:
    """A text with the numbers of its table of notebooks filled in, where it has one."""
    lines, head = text.split("\n"), None
    totals: Counter[str] = Counter()
    for place, line in enumerate(lines):
        if line.startswith(TABLE):
            head = columns(line)
        elif not line.startswith("|"):
            head = None
        elif head and line.startswith("| "):
            row = dict(zip(head, columns(line), strict=True))
            new = row | numbers(row, minutes, totals)
            lines[place] = f"| {' | '.join(new.values())} |"
    return "\n".join(lines)


def columns(line: str) -> list[str]:
    """What stands in the columns of a table's line."""
    return line.strip("| ").split(" | ")


def numbers(row: dict, minutes: dict[str, Minutes], totals: Counter) -> dict[str, str]:
    """The minutes in a row: of its notebook, or in the last row of all together."""
    named = NAME.search(row["notebook"])
    if named is None:
        found = totals | {p: f"{totals[p]} of {PLANS[p]}" for p in PLANS}
    elif named.group() in minutes:
        mine = minutes[named.group()]
        found = {"minutes": mine.total, "told": mine.told}
        plans = {plan: planned(row[plan], mine) for plan in PLANS if plan in row}
        totals.update(found | plans)
    else:
        raise SystemExit(
            f"A table names {named.group()}, but no notebook of that name states its "
            "minutes. Write **Minutes:** 30. into its first cell, or delete the row."
        )
    return {column: str(found[column]) for column in found if column in row}


def planned(part: str, mine: Minutes) -> int:
    """The minutes that a plan gives to a notebook: "all", "30: up to ..." or "skip"."""
    first = re.match(r"\d+", part)
    return mine.total if part == "all" else int(first.group()) if first else 0
