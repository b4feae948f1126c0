"""`python3 -m grpo_course save [names]`: execute the notebooks, store their outputs.

`--form-only` keeps the stored outputs, and brings minutes, links and slides up to
date. The minutes in README.md, INSTRUCTORS.md and the map of the course follow.

Saving twice gives the same bytes. A notebook with an error, a warning or a path of
this machine in its outputs is not saved.
"""

from pathlib import Path

import nbformat
from nbformat import NotebookNode

from grpo_course.files import write_atomically
from grpo_course.workshop import (
    anywhere,
    form,
    kernels,
    minutes,
    notebooks,
    pictures,
    prediction_cells,
    slides,
    tidy,
)


def main(arguments: list[str], root: Path) -> int:
    """Execute and store each notebook; non-zero if one was refused."""
    parser = notebooks.parser("save")
    parser.add_argument("--form-only", action="store_true")
    options = parser.parse_args(arguments)
    paths = notebooks.choose(root / "notebooks", options.names, root / "teaching")
    kernels.use()
    saved = [save_one(path, root, not options.form_only) for path in paths]
    for path, text in minutes.documents(root).items():
        write_atomically(path, text)
        print(f"{path.name:<20} saved: its table of minutes", flush=True)
    return int(not all(saved))


def save_one(path: Path, root: Path, execute: bool = True) -> bool:
    """Execute one notebook and store it if nothing is wrong; whether it was stored."""
    problems, text = executed_text(path, root, execute)
    if problems:
        lines = "\n  ".join(problems)
        print(f"{path.stem:<20} NOT saved:\n  {lines}", flush=True)
        return False
    changed = text != path.read_text(encoding="utf-8")
    if changed:
        write_atomically(path, text)
    for name, image in pictures.taken_from(nbformat.reads(text, as_version=4)):
        write_atomically(root / "images" / name, image)
    print(f"{path.stem:<20} {'saved' if changed else 'unchanged'}", flush=True)
    return True


def executed_text(path: Path, root: Path, execute: bool) -> tuple[list[str], str]:
    """What is wrong with an executed notebook, and the text to store."""
    notebook = form.read(path)
    tidy.give_ids(notebook, path.stem)
    counted = [cell.execution_count for _, cell in form.code_cells(notebook)]
    unrun = not execute and counted != list(range(1, len(counted) + 1))
    if unrun:
        return ["a code cell has never run: save it without --form-only"], ""
    try:
        if execute:
            notebooks.execute(notebook, path.parent)
    except notebooks.Failed as error:
        return [str(error)], ""
    arrange(notebook, path, root)
    tidy.tidy(notebook)
    machine = (str(root.resolve()), str(Path.home()))
    problems = form.accidents(notebook, machine)
    return problems, nbformat.writes(notebook) + "\n"


def arrange(notebook: NotebookNode, path: Path, root: Path) -> None:
    """Write what is made from the notebook itself: minutes, links, slides, ..."""
    minutes.state(notebook)
    if path.parent.name == "notebooks":  # a deck is opened from a checkout
        anywhere.add(notebook, path.stem, anywhere.repository(root))
    slides.place(notebook)
    prediction_cells.close(notebook)
