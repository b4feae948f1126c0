"""Find the course's notebooks and execute them."""

import argparse
import re
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbformat import NotebookNode

CELL_SECONDS = 300
FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError)
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Failed(Exception):
    """A notebook stopped; the message names the cell and the error."""


def choose(folder: Path, names: list[str]) -> list[Path]:
    """The notebooks in `folder`, or those whose names begin with one of `names`."""
    paths = sorted(folder.glob("*.ipynb"))
    if not names:
        return paths
    chosen = []
    for name in names:
        found = [path for path in paths if path.stem.startswith(Path(name).stem)]
        if not found:
            known = ", ".join(path.stem for path in paths) or "none"
            raise SystemExit(f"There is no notebook {name!r}. Notebooks: {known}.")
        chosen += [path for path in found if path not in chosen]
    return chosen


def named(command: str, arguments: list[str], root: Path) -> list[Path]:
    """The notebooks that the command line of `run` or `save` asks for."""
    parser = argparse.ArgumentParser(prog=f"python3 -m grpo_course {command}")
    parser.add_argument("names", nargs="*", help="like 01 or 01_rewards; all if none")
    paths = choose(root / "notebooks", parser.parse_args(arguments).names)
    if not paths:
        raise SystemExit("There are no notebooks.")
    return paths


def execute(notebook: NotebookNode, folder: Path) -> None:
    """Execute a notebook in place, with `folder` as its working folder."""
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        startup_timeout=120,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],  # the kernel's own words, not cells'
        resources={"metadata": {"path": str(folder)}},
    )
    running = {"index": 0}
    client.on_cell_start = lambda cell, cell_index: running.update(index=cell_index)
    try:
        client.execute()
    except FAILURES as error:
        raise Failed(f"cell {running['index']}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """One line that says what went wrong in a cell."""
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {ANSI_COLOUR.sub('', error.evalue)}"
    if isinstance(error, CellTimeoutError):
        return f"still running after {CELL_SECONDS} seconds"
    return f"the kernel died ({error})"
