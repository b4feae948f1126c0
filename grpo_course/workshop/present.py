"""`python3 -m grpo_course slides`: present copies of the notebooks, with notes.

The copies lie in `slides/`. What a presenter changes there stays until the notebook
itself changes; then the copy is made anew, and the changed one kept beside it.
"""

from pathlib import Path

import nbformat

from grpo_course.files import write_atomically
from grpo_course.workshop import form, lab, notebooks, presenter_notes, speaker
from grpo_course.workshop.cells import digest

FOLDER = "slides"
MADE_FROM = "made_from"


def main(arguments: list[str], root: Path) -> int:
    """Copy the notebooks and open the first copy; `arguments` go to JupyterLab."""
    paths = notebooks.choose(root / "notebooks", [])
    copies = [copy(path, root / FOLDER) for path in paths]
    return lab.open_at(copies[0].relative_to(root), arguments, root)


def copy(path: Path, folder: Path) -> Path:
    """A notebook with the presenter's notes, in `folder`."""
    target = folder / path.name
    told = presenter_notes.read(path.stem)
    source = digest("".join([path.read_text(encoding="utf-8"), *told.values()]), 16)
    if target.exists():
        if form.read(target).metadata.get(MADE_FROM) == source:
            return target
        kept = digest(target.read_text(encoding="utf-8"), 8)
        target.replace(target.with_suffix(f".before-{kept}.ipynb"))
    notebook = form.read(path)
    notebook.metadata[MADE_FROM] = source
    speaker.add_notes(notebook, told)
    write_atomically(target, nbformat.writes(notebook) + "\n")
    return target
