"""Find the course's notebooks and execute them."""

import argparse
import os
import re
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbformat import NotebookNode

from grpo_course import install

CELL_SECONDS = 600  # the longest takes four minutes alone on a core
FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError)
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Failed(Exception):
    """A notebook stopped; the message names the cell and the error."""


class TwiceClient(NotebookClient):
    """Executes each cell twice in a row, and notes which cells stop the second time."""

    stopped: tuple[str, ...] = ()

    async def async_execute_cell(self, cell, cell_index, *given, **named):
        """Go on after a second time that fails: the first has done the cell's work."""
        cell = await super().async_execute_cell(cell, cell_index, *given, **named)
        try:
            await super().async_execute_cell(cell, cell_index, *given, **named)
        except CellExecutionError as error:
            self.stopped += (f"cell {cell_index}, the second time: {reason(error)}",)
        return cell


def parser(command: str) -> argparse.ArgumentParser:
    """The command line of a command that takes names of notebooks."""
    made = argparse.ArgumentParser(prog=install.call(command))
    made.add_argument("names", nargs="*", help="like 01 or 01_rewards; all if none")
    return made


def choose(folder: Path, names: list[str], *further: Path) -> list[Path]:
    """The notebooks in the folders, or those of these numbers, or that begin so."""
    paths = [
        path for each in (folder, *further) for path in sorted(each.glob("*.ipynb"))
    ]
    known = ", ".join(path.stem for path in paths) or "none"
    chosen = [] if names else paths
    for name in names:
        stem = Path(name).stem
        begins = f"{stem:0>2}_" if stem.isdigit() else stem  # 1 is 01, and not 10
        found = [path for path in paths if path.stem.startswith(begins)]
        if not found:
            raise SystemExit(f"There is no notebook {name!r}. Notebooks: {known}.")
        chosen += [path for path in found if path not in chosen]
    if not chosen:
        raise SystemExit("There are no notebooks.")
    return chosen


def execute(
    notebook: NotebookNode,
    folder: Path,
    variables: dict[str, str] | None = None,
    kind: type[NotebookClient] = NotebookClient,
) -> None:
    """Execute a notebook in place; `folder` and `variables` are its kernel's."""
    client = kind(
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
        client.execute(env=os.environ | (variables or {}))
    except FAILURES as error:
        raise Failed(f"cell {running['index']}: {reason(error)}") from None
    if stopped := getattr(client, "stopped", ()):
        raise Failed("; ".join(stopped))


def reason(error: Exception) -> str:
    """One line that says what went wrong in a cell."""
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {ANSI_COLOUR.sub('', error.evalue)}"
    if isinstance(error, CellTimeoutError):
        return f"still running after {CELL_SECONDS} seconds"
    return f"the kernel died ({error})"
