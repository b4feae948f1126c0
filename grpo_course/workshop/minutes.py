"""Minutes: what authors state, and the tables in which `save` writes it.

The first cell of a notebook states how long it takes without its exercises, and each
exercise states its own minutes.
"""

import re
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode

from grpo_course.workshop import exercise_cells, form

# An author may leave out the second half: then there are no exercises to add yet.
STATED = re.compile(r"\*\*Minutes:\*\* (\d+)(?: \((\d+) without exercises\))?")
DOCUMENTS = ("README.md", "INSTRUCTORS.md")
TABLE = "| notebook | minutes |"
ROW = re.compile(r"^(\|[^|]*?(\d\d_\w+)[^|]*\|) \d+ \|")


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
    lengths = {p.stem: mine.total for p, b in notebooks.items() if (mine := of(b))}
    paths = [root / name for name in DOCUMENTS if (root / name).exists()]
    old = {path: path.read_text(encoding="utf-8") for path in paths}
    new = {path: filled(text, lengths) for path, text in old.items()}
    for path, notebook in notebooks.items():
        for cell in notebook.cells:
            before = cell.source
            if cell.cell_type == "markdown":
                cell.source = filled(before, lengths)
            if cell.source != before:
                new[path] = nbformat.writes(notebook) + "\n"
    return {path: text for path, text in new.items() if text != old.get(path)}


def filled(text: str, lengths: dict[str, int]) -> str:
    """A text with the minutes of its table of notebooks filled in, where it has one."""
    lines, inside = text.split("\n"), False
    for place, line in enumerate(lines):
        inside = line.startswith(TABLE) or (inside and line.startswith("|"))
        row = ROW.match(line) if inside else None
        if row and row[2] not in lengths:
            raise SystemExit(
                f"A table names {row[2]}, but no notebook of that name states its "
                "minutes. Write **Minutes:** 30. into its first cell, or drop the row."
            )
        if row:
            lines[place] = f"{row[1]} {lengths[row[2]]} |{line[row.end() :]}"
    return "\n".join(lines)
