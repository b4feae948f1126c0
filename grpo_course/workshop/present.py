"""`python3 -m grpo_course slides`: present copies of the notebooks, with notes.

The copies lie in `slides/`. What a presenter changes there stays until the notebook
itself changes; then the copy is made anew, and the changed one kept beside it. With
`--plan hour` it makes one deck of the plan instead: `slides/hour.ipynb`, and the folder
`slides/hour`, which opens from disk; `--build` stops there.
"""

import argparse
from pathlib import Path

import nbformat
from nbformat import NotebookNode, sign

from grpo_course.files import write_atomically
from grpo_course.workshop import form, lab, notebooks, plans, presenter_notes, speaker
from grpo_course.workshop.cells import digest

FOLDER = "slides"
MADE_FROM = "made_from"


def main(arguments: list[str], root: Path) -> int:
    """Make a deck or the copies, and open it; `arguments` go to JupyterLab."""
    parser = argparse.ArgumentParser(prog="python3 -m grpo_course slides")
    parser.add_argument("--plan", choices=plans.read(root), help="one deck of a plan")
    parser.add_argument("--build", action="store_true", help="do not open JupyterLab")
    options, rest = parser.parse_known_args(arguments)
    if options.plan:
        first = deck(options.plan, root)
    else:
        paths = notebooks.choose(root / "notebooks", [])
        first, *_ = [copy(path, root / FOLDER) for path in paths]
    if options.build:
        return 0
    return lab.open_at(first.relative_to(root), rest, root)


def deck(plan: str, root: Path) -> Path:
    """The deck of a plan as a notebook, and beside it as a folder."""
    from grpo_course.workshop.deck import build, offline

    notebook = build.deck(plan, root)
    target = root / FOLDER / f"{plan}.ipynb"
    keep_or_write(notebook, digest(nbformat.writes(notebook), 16), target)
    sign.NotebookNotary().sign(form.read(target))  # its films play before they are run
    title = plans.read(root)[plan].title
    page = offline.write(
        notebook, f"GRPO in {title}", target.with_suffix(""), root / "images"
    )
    print(f"To open without JupyterLab and without network: {page}")
    return target


def copy(path: Path, folder: Path) -> Path:
    """A notebook with the presenter's notes, in `folder`."""
    target = folder / path.name
    told = presenter_notes.read(path.stem)
    source = digest("".join([path.read_text(encoding="utf-8"), *told.values()]), 16)
    notebook = form.read(path)
    speaker.add_notes(notebook, told)
    keep_or_write(notebook, source, target)
    return target


def keep_or_write(notebook: NotebookNode, source: str, target: Path) -> None:
    """Write what is made from `source`, unless it lies there; keep what else does."""
    if target.exists():
        if form.read(target).metadata.get(MADE_FROM) == source:
            return
        kept = digest(target.read_text(encoding="utf-8"), 8)
        target.replace(target.with_suffix(f".before-{kept}.ipynb"))
    notebook.metadata[MADE_FROM] = source
    write_atomically(target, nbformat.writes(notebook) + "\n")
