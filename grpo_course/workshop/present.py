"""`python3 -m grpo_course slides`: present the notebooks, with notes.

A deck for each lies in `slides/`. What a presenter changes there stays: a newer one of
the course is put beside it (`workspace`). With `--plan hour` it makes one deck of the
plan instead: `slides/hour.ipynb`, and the folder `slides/hour`, which opens from disk;
`--build` stops there.
"""

import argparse
from pathlib import Path

from grpo_course.workshop import lab, machine, notebooks, plans, workspace

FOLDER = "slides"


def main(arguments: list[str], root: Path) -> int:
    """Make one deck, or one for each notebook, and open it in JupyterLab."""
    parser = argparse.ArgumentParser(
        prog=machine.call("slides"),
        epilog="All other options go to JupyterLab.",
        allow_abbrev=False,
    )
    parser.add_argument("--plan", choices=plans.read(root), help="one deck of a plan")
    parser.add_argument("--build", action="store_true", help="do not open JupyterLab")
    options, others = parser.parse_known_args(arguments)
    if options.plan:
        first = deck(options.plan, root)
    else:
        for path in (paths := notebooks.choose(root / "notebooks", [])):
            copy(path, root / FOLDER)
        first = root / FOLDER / paths[0].name
    if options.build:
        return 0
    return lab.open_at(first.relative_to(root), others, root)


def deck(plan: str, root: Path) -> Path:
    """The deck of a plan as a notebook, and beside it as a folder."""
    from grpo_course.workshop.deck import build, offline

    notebook = build.deck(plan, root)
    title = f"GRPO in {plans.read(root)[plan].title}"
    folder = root / FOLDER / plan
    page = offline.write(notebook, title, folder, root / "images")
    print(f"To open without JupyterLab and without network: {page}")
    return workspace.bring(notebook, folder.with_suffix(".ipynb"))


def copy(path: Path, folder: Path) -> Path:
    """The deck of one notebook, in `folder`."""
    from grpo_course.workshop.deck import build

    return workspace.bring(build.single(path), folder / path.name)
