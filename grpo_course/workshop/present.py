"""`python3 -m grpo_course slides`: present copies of the notebooks, with notes.

The copies lie in `slides/`. What a presenter changes there stays: a newer one of the
course is put beside it (`workspace`).
"""

from pathlib import Path

from grpo_course.workshop import (
    form,
    lab,
    notebooks,
    presenter_notes,
    speaker,
    workspace,
)

FOLDER = "slides"


def main(arguments: list[str], root: Path) -> int:
    """Copy the notebooks and open the first copy; `arguments` go to JupyterLab."""
    paths = notebooks.choose(root / "notebooks", [])
    for path in paths:
        copy(path, root / FOLDER)
    return lab.open_at(Path(FOLDER, paths[0].name), arguments, root)


def copy(path: Path, folder: Path) -> Path:
    """A notebook with the presenter's notes, in `folder`."""
    notebook = form.read(path)
    speaker.add_notes(notebook, presenter_notes.read(path.stem))
    return workspace.bring(notebook, folder / path.name)
