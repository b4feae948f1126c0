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

from grpo_course.workshop import exercise_cells, form, plans, prediction_cells
from grpo_course.workshop.cells import is_behind, sections, tags

# An author may leave out the second half: then there are no exercises to add yet.
STATED = re.compile(r"\*\*Minutes:\*\* (\d+)(?: \((\d+) without exercises\))?")
DOCUMENTS = ("README.md", "INSTRUCTORS.md")
TABLE = "| notebook |"
NAME = re.compile(r"\d\d_\w+")
WORDS_A_MINUTE, MINUTES_A_CODE_CELL = 120, 0.5
MOST_NAMED = 5  # headings in a cell of a table
Row = dict[str, tuple[str, int]]  # of a column: its words, the minutes that they count


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


def telling(section: list[NotebookNode]) -> float:
    """Minutes to tell a section, before they are scaled to those of the notebook."""
    told = [c for c in section if "solution" not in tags(c) and not is_behind(c)]
    code = sum(1 + prediction_cells.asks(c) for c in told if c.cell_type == "code")
    prose = sum(len(c.source.split()) for c in told if c.cell_type == "markdown")
    return prose / WORDS_A_MINUTE + code * MINUTES_A_CODE_CELL


def length(part: plans.Part, notebook: NotebookNode) -> int:
    """The minutes of a plan's part: its share of what is told, and its exercises."""
    mine = of(notebook)
    if part.talk:
        return round(part.talk.minutes)
    if mine is None:
        return 0
    whole = sum(map(telling, sections(notebook.cells)))
    share = sum(map(telling, plans.told(part, notebook.cells))) / whole
    exercises = plans.exercises(part, notebook.cells)
    return round(mine.told * share) + sum(exercises.values())


def lengths(plan: plans.Plan, books: dict[str, NotebookNode]) -> dict[str, int]:
    """The minutes of each part of a plan, by its notebook."""
    return {p.notebook: length(p, books[p.notebook]) for p in plan.parts}


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
    stated = plans.read(root)
    rows = {p.stem: row_of(p.stem, book, stated) for p, book in notebooks.items()}
    known = {name: row for name, row in rows.items() if row}
    limits = {plan.title: plan.minutes for plan in stated.values()}
    paths = [root / name for name in DOCUMENTS if (root / name).exists()]
    old = {path: path.read_text(encoding="utf-8") for path in paths}
    new = {path: filled(text, known, limits) for path, text in old.items()}
    for path, notebook in notebooks.items():
        before = [cell.source for cell in notebook.cells]
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = filled(cell.source, known, limits)
        if [cell.source for cell in notebook.cells] != before:
            new[path] = nbformat.writes(notebook) + "\n"
    return {path: text for path, text in new.items() if text != old.get(path)}


def row_of(name: str, notebook: NotebookNode, stated: dict[str, plans.Plan]) -> Row:
    """What the columns say of a notebook: words, and the minutes that they count."""
    mine = of(notebook)
    if mine is None:
        return {}
    row = {
        "minutes": (str(mine.total), mine.total),
        "told": (str(mine.told), mine.told),
    }
    for plan in stated.values():
        parts = [part for part in plan.parts if part.notebook == name]
        minutes = sum(length(part, notebook) for part in parts)
        words = [in_words(part, minutes) for part in parts]
        words += ["as homework"] * (name in plan.homework)
        words += ["as reading"] * (name in plan.reading)
        row[plan.title] = (" ".join(words) or "skip", minutes)
    return row


def in_words(part: plans.Part, minutes: int) -> str:
    """A plan's part as a cell of a table: "all", "8: *A*, *B*", "30: without *C*"."""
    if part.talk:
        return f"{minutes}: *{part.talk.title}*"
    if plans.is_whole(part):
        return "all"
    before = "" if part.without is None else "without "
    named = part.sections or part.without or []
    if len(named) > MOST_NAMED:
        return f"{minutes}: {len(named)} sections"
    return f"{minutes}: {before}" + ", ".join(f"*{heading}*" for heading in named)


def filled(text: str, known: dict[str, Row], limits: dict[str, int]) -> str:
    """A text with its table of notebooks filled in, where it has one."""
    lines, head = text.split("\n"), None
    totals: Counter[str] = Counter()
    for place, line in enumerate(lines):
        if line.startswith(TABLE):
            head = columns(line)
        elif not line.startswith("|"):
            head = None
        elif head and line.startswith("| "):
            row = dict(zip(head, columns(line), strict=True))
            new = row | numbers(row, known, limits, totals)
            lines[place] = f"| {' | '.join(new.values())} |"
    return "\n".join(lines)


def columns(line: str) -> list[str]:
    """What stands in the columns of a table's line."""
    return line.strip("| ").split(" | ")


def numbers(
    row: dict[str, str], known: dict[str, Row], limits: dict[str, int], totals: Counter
) -> dict[str, str]:
    """What a row shall say: of its notebook, or in the last row of all together."""
    named = NAME.search(row["notebook"])
    if named is None:
        sums = {name: str(total) for name, total in totals.items()}
        sums |= {title: f"{totals[title]} of {most}" for title, most in limits.items()}
        return {column: sums[column] for column in sums if column in row}
    if named.group() not in known:
        raise SystemExit(
            f"A table names {named.group()}, but no notebook of that name states its "
            "minutes. Write **Minutes:** 30. into its first cell, or delete the row."
        )
    found = known[named.group()]
    totals.update({column: count for column, (_, count) in found.items()})
    return {column: words for column, (words, _) in found.items() if column in row}
