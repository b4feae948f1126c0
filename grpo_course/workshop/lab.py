"""`python3 -m grpo_course lab [--reset NAME ...]`: open the course in JupyterLab.

The learner works on copies, in `work/`, with what is kept of their progress: neither an
update of the course nor git meets what they wrote.
"""

import argparse
import os
from difflib import get_close_matches
from pathlib import Path

from grpo_course import install
from grpo_course.classroom import record
from grpo_course.workshop import (
    anywhere,
    form,
    kernels,
    notebooks,
    widget_state,
    workspace,
)

FOLDER = "work"
# Defaults of JupyterLab: what is typed is saved soon, and no question about news lies
# over the first notebook.
DEFAULTS = Path(__file__).parent / "jupyter"
# Where JupyterLab keeps what lay open: beside the notebooks, or it would open what lay
# open in another copy of the course.
LAYOUT = "JUPYTERLAB_WORKSPACES_DIR"
RESET = "replace these, like 03, by fresh copies; yours are kept beside them"


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
    paths = notebooks.choose(root / "notebooks", [])
    chosen = notebooks.choose(root / "notebooks", options.reset)
    for path in chosen if options.reset else []:
        workspace.set_aside(root / FOLDER / path.name)
    for path in paths:
        notebook = form.read(path)
        anywhere.settle(notebook, root)
        workspace.bring(notebook, root / FOLDER / path.name)
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
        f"--ContentsManager.pre_save_hook={widget_state.__name__}.keep",
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
    return kernels.serve(command, root, keep | defaults())


def defaults() -> dict[str, str]:
    """Where JupyterLab finds what the course sets, below what the user sets."""
    paths = [os.environ.get("JUPYTER_CONFIG_PATH"), str(DEFAULTS)]
    return {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, paths))}
