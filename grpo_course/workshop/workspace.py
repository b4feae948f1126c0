"""Copies of the notebooks to work in: the learner's, in `work/`.

A copy carries two digests: of the notebook that it was made from, and of its own cells
as they were then. So a later start, or a later course, can tell whether the course has
changed since and whether the owner has. What an owner has changed is never overwritten.
"""

import json
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path

import nbformat
from nbformat import NotebookNode, sign

from grpo_course.files import PARSING, write_atomically
from grpo_course.workshop import form
from grpo_course.workshop.cells import digest, tags

MARK = "grpo_course"  # in a copy's metadata; JupyterLab keeps what it does not know
BOTH_CHANGED = (
    "{0} has changed in the course and in your copy: yours stays, the new one is "
    "beside it, {1}."
)
UPDATED = "{0} is the course's new one; answers and guesses are kept."
NO_SLIDE_TYPE = ("", "-", None)


def bring(notebook: NotebookNode, target: Path) -> Path:
    """Bring the course's notebook to `target`, or beside a copy that was changed.

    -> the copy that holds it, or the changed one where the course has nothing new.
    """
    own = {"made_from": digest(nbformat.writes(notebook), 16)}
    own["cells"] = digest_of_cells(notebook)
    notebook.metadata[MARK] = own
    trust(notebook)
    for place in chain([target], beside(target, "new")):
        mark, cells = standing(place)
        is_untouched = cells == mark.get("cells")
        if is_untouched and mark.get("made_from") != own["made_from"]:
            break  # not there, or of an older notebook
        if is_untouched or own["cells"] in (cells, mark.get("cells")):
            return place
    write_atomically(place, nbformat.writes(notebook) + "\n")
    if place != target:
        print(BOTH_CHANGED.format(target.name, place.name), flush=True)
    elif mark:
        print(UPDATED.format(target.name), flush=True)
    return place


def trust(notebook: NotebookNode) -> None:
    """Let the course's own outputs act in JupyterLab: films play before they are run.

    It holds for exactly these outputs, not for what else a copy may come to contain.
    """
    with sign.NotebookNotary() as notary:
        notary.sign(notebook)


def set_aside(target: Path) -> None:
    """Keep a copy under another name, so that a fresh one can take its place."""
    if target.exists():
        kept = next(each for each in beside(target, "old") if not each.exists())
        target.rename(kept)
        print(f"{target.name} is fresh; yours is kept as {kept.name}.", flush=True)


def beside(target: Path, word: str) -> Iterator[Path]:
    """Names next to a copy's: 03_deltas.new.ipynb, 03_deltas.new-2.ipynb, ..."""
    for number in count(1):
        mark = word if number == 1 else f"{word}-{number}"
        yield target.with_name(f"{target.stem}.{mark}{target.suffix}")


def standing(place: Path) -> tuple[dict[str, str], str | None]:
    """A copy's digests as it was made, and the digest of its cells as they are now.

    None where there is no copy. One that cannot be read counts as changed.
    """
    if not place.exists():
        return {}, None
    try:
        copy = form.read(place)
        return dict(copy.metadata.get(MARK, {})), digest_of_cells(copy)
    except PARSING:
        return {}, ""


def digest_of_cells(notebook: NotebookNode) -> str:
    """A digest of what an owner can change.

    Running a cell changes none of it, nor does what JupyterLab adds by itself: an
    empty cell below the last, and empty tags of cells that were looked at.
    """
    told = []
    for cell in notebook.cells:
        if cell.source.strip():
            slide = cell.metadata.get("slideshow", {}).get("slide_type")
            slide = "" if slide in NO_SLIDE_TYPE else slide
            told.append([cell.cell_type, cell.source, sorted(tags(cell)), slide])
    return digest(json.dumps(told), 16)
