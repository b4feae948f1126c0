"""`python3 -m grpo_course lab [--reset NAME ...]`: open the course in JupyterLab.

The learner works on copies, in `work/`, with what is kept of their progress: neither an
update of the course nor git meets what they wrote. A copy carries two digests: of the
notebook that it was made from, and of its own cells as they were then. So a later start
can tell whether the course has changed since and whether its owner has. What an owner
has changed is never overwritten.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import chain, count
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode, sign

from grpo_course import install
from grpo_course.classroom import record
from grpo_course.files import PARSING, write_atomically
from tools import links
from tools.notebook import WIDGET_VIEW, digest, read, tags
from tools.run import choose

FOLDER = "work"
# Defaults of JupyterLab: what is typed is saved soon, and no question about news lies
# over the first notebook.
DEFAULTS = Path(__file__).parent / "jupyter"
# Where JupyterLab keeps what lay open: beside the notebooks, or it would open what lay
# open in another copy of the course.
LAYOUT = "JUPYTERLAB_WORKSPACES_DIR"
RESET = "replace these, like 03, by fresh copies; yours are kept beside them"
STARTS = """Starting JupyterLab; Ctrl-C stops it. If no browser opens, copy the last
address below into one."""
MARK = "grpo_course"  # in a copy's metadata; JupyterLab keeps what it does not know
BOTH_CHANGED = (
    "{0} has changed in the course and in your copy: yours stays, the new one is "
    "beside it, {1}."
)
UPDATED = "{0} is the course's new one; answers and guesses are kept."


def main(arguments: list[str], root: Path) -> int:
    """Copy the notebooks, start JupyterLab at the first, or at one that is reset."""
    parser = argparse.ArgumentParser(
        prog=install.call("lab"),
        epilog="All others go to JupyterLab, such as --no-browser or --port 9000.",
        allow_abbrev=False,
    )
    parser.add_argument("--reset", nargs="+", metavar="NAME", default=[], help=RESET)
    # A shell such as zsh hands on what stands behind a #.
    told = arguments[: arguments.index("#")] if "#" in arguments else arguments
    options, others = parser.parse_known_args(told)
    if get_close_matches(others[0] if others else "", ["--reset"]):
        parser.error(f"there is no {others[0]}; did you mean --reset? Nothing changed.")
    chosen = choose(root / "notebooks", options.reset)
    for path in chosen if options.reset else []:
        set_aside(root / FOLDER / path.name)
    for path in choose(root / "notebooks", []):
        notebook = read(path)
        links.settle(notebook, path.stem, root)
        bring(notebook, root / FOLDER / path.name)
    return open_at(Path(FOLDER, chosen[0].name), others, root)


def open_at(notebook: Path, arguments: list[str], root: Path) -> int:
    """Start JupyterLab with a notebook, a path from `root`, and its folder's progress.

    It serves the whole checkout, in which the pictures lie beside that folder. The
    notebook is a part of the address, so that the printed one opens it too.
    """
    start = [
        f"--ServerApp.root_dir={root}",
        f"--LabApp.default_url=/lab/tree/{notebook.as_posix()}",
        "--ServerApp.answer_yes=True",  # one Ctrl-C is enough
        "--MappingKernelManager.transport_encryption=auto",  # or each kernel warns
        "--ContentsManager.pre_save_hook=tools.lab.keep_widgets",
    ]
    # JupyterLab refuses to run as root (a container, say) unless it is told to.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    allow = ["--allow-root"] if is_root else []
    folder = (root / notebook).parent
    keep = {record.FOLDER: str(folder), LAYOUT: str(folder / ".jupyterlab")}
    # The address stands alone, unless more is asked for: Jupyter refuses two levels.
    told = any("log" in argument for argument in arguments)
    quiet = [] if told else ["--log-level=ERROR", "--LabApp.log_level=ERROR"]
    command = ["-m", "jupyterlab", *start, *allow, *quiet, *arguments]
    return serve(command, root, keep | defaults())


def serve(arguments: list[str], root: Path, variables: dict[str, str]) -> int:
    """Run JupyterLab, which ends by itself after Ctrl-C, with its kernels."""
    print(STARTS, flush=True)
    env = os.environ | variables
    server = subprocess.Popen([sys.executable, *arguments], cwd=root, env=env)
    return install.wait_for(server)


def defaults() -> dict[str, str]:
    """Where JupyterLab finds what the course sets, below what the user sets."""
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(DEFAULTS)]
    return {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}


def bring(notebook: NotebookNode, target: Path) -> None:
    """Bring the course's notebook to `target`, or beside a copy that was changed."""
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
            return
    write_atomically(place, nbformat.writes(notebook) + "\n")
    if place != target:
        print(BOTH_CHANGED.format(target.name, place.name), flush=True)
    elif mark:
        print(UPDATED.format(target.name), flush=True)


def trust(notebook: NotebookNode) -> None:
    """Let the course's own outputs act in JupyterLab: films play before they are run.

    It holds for exactly these outputs, not for what else a copy may come to contain.
    Without a home to note it in, they act once their cells have run.
    """
    try:
        with sign.NotebookNotary() as notary:
            notary.sign(notebook)
    except (OSError, RuntimeError):
        pass


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
        copy = read(place)
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
            slide = "" if slide in ("", "-", None) else slide
            told.append([cell.cell_type, cell.source, sorted(tags(cell)), slide])
    return digest(json.dumps(told), 16)


# What buttons and sliders show stays in a saved notebook, also without their kernel.
# JupyterLab writes the states of those widgets alone that it knows from a kernel, so a
# notebook that is opened, not run and saved would lose what its outputs show.

STATE = "application/vnd.jupyter.widget-state+json"
OTHER = re.compile(r"IPY_MODEL_(\w+)")  # a widget names those that it consists of


def keep_widgets(
    model: dict[str, Any], path: str, contents_manager: Any, **_: Any
) -> None:
    """Before a notebook is written, add the widgets' states that only its file has.

    A hook of the Jupyter server, `ContentsManager.pre_save_hook`.
    """
    file, notebook = Path(contents_manager.root_dir, path), model.get("content")
    if model.get("type") != "notebook" or not notebook or not file.exists():
        return
    outputs = [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
    views = [output.get("data", {}).get(WIDGET_VIEW) for output in outputs]
    now = states(notebook)
    waiting = [v["model_id"] for v in views if v and v["model_id"] not in now]
    before = states(json.loads(file.read_text(encoding="utf-8"))) if waiting else {}
    kept: dict[str, Any] = {}
    while waiting:  # a widget, and all that it consists of
        name = waiting.pop()
        if name in before and name not in kept:
            kept[name] = before[name]
            waiting += OTHER.findall(json.dumps(before[name]))
    if kept:
        stored = {"state": kept | now, "version_major": 2, "version_minor": 0}
        notebook["metadata"].setdefault("widgets", {})[STATE] = stored


def states(notebook: dict[str, Any]) -> dict[str, Any]:
    """The states of widgets that a notebook has, by the widgets' names."""
    widgets = notebook.get("metadata", {}).get("widgets", {})
    return widgets.get(STATE, {}).get("state", {})
