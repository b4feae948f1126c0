"""`run`, `test`, `bench`: execute what the course consists of.

`run [names]` executes the notebooks in a temporary copy and writes nothing;
`--cpu default avx2 compatible` as on other processors, once for each; `--learner` with
the buttons and sliders that a learner sees, and that stored outputs lack; `--twice`
each cell twice in a row, as a learner does who looks again: both must print the same.

`test` runs the tests, compares every notebook, and checks style, imports and types;
`--checks` does these checks alone, as the pre-commit hook does. What else is given goes
to pytest: a file, `-x`, or `-n0` for one process (which `--pdb` needs).

`bench [names]` runs the benchmarks.
"""

import argparse
import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import zip_longest
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from grpo_course import install
from grpo_course.classroom.record import FOLDER, STORED
from grpo_course.classroom.setup import QUIET
from tools.notebook import DATA_ADDRESS, read, tags

# What notebooks are executed with, here and under pytest.
VARIABLES = {
    # One thread: the models are so small that a second one only waits.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "HF_HUB_OFFLINE": "1",  # no notebook waits for a network
    STORED: "1",  # plain text, and no file of a learner
    **QUIET,
}
# How PyTorch and MKL calculate on another processor: sums in another order.
CPUS = {
    "default": {"ATEN_CPU_CAPABILITY": "default"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "compatible": {"MKL_CBWR": "COMPATIBLE"},
}
# Notebooks that `test` executes so, that a margin too narrow for others is seen here.
# Their outputs must be the stored ones all the same; every processor can do these.
ELSEWHERE = {"09_sequences": "default"}
CELL_SECONDS = 600  # the longest takes four minutes alone on a core
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Failed(Exception):
    """A notebook stopped at a cell, and why."""

    def __init__(self, cell: int, reason: str):
        super().__init__(f"cell {cell}: {reason}")
        self.cell, self.reason = cell, reason


def use_variables() -> None:
    """Set the variables for this process and the kernels it starts."""
    os.environ.update(VARIABLES)


def python(arguments: list[str], folder: Path) -> int:
    """Run this Python on `arguments` in a folder; the exit status."""
    return subprocess.call([sys.executable, *arguments], cwd=folder)


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
    notebook: NotebookNode, folder: Path, variables: dict[str, str] | None = None
) -> None:
    """Execute a notebook in place; `folder` and `variables` are its kernel's."""
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
    at = 0

    def note(cell: NotebookNode, cell_index: int) -> None:
        nonlocal at
        at = cell_index

    client.on_cell_start = note
    try:
        client.execute(env=os.environ | (variables or {}))
    except CellExecutionError as error:
        reason = f"{error.ename}: {ANSI_COLOUR.sub('', error.evalue)}"
    except CellTimeoutError:
        reason = f"still running after {CELL_SECONDS} seconds"
    except DeadKernelError as error:
        reason = f"the kernel died ({error})"
    else:
        return
    raise Failed(at, reason)


def execute_twice(
    notebook: NotebookNode, folder: Path, variables: dict[str, str] | None
) -> None:
    """Execute each code cell twice in a row; `notebook` keeps the first outputs.

    Raises Failed, also for cells that print something else the second time or stop.
    Compared is what nbval compares: texts, and not where a tag says that they vary.
    """
    pairs, places, doubled = [], [], []
    for place, cell in enumerate(notebook.cells):
        again = copy.deepcopy(cell)
        again.metadata["tags"] = [*tags(cell), "raises-exception"]  # tell them all
        runs = [cell, again] if cell.cell_type == "code" else [cell]
        if len(runs) == 2:
            pairs.append((place, cell, again))
        places += [place] * len(runs)
        doubled += runs
    try:
        execute(NotebookNode(notebook | {"cells": doubled}), folder, variables)
    except Failed as error:
        raise Failed(places[error.cell], error.reason) from None
    changed = [(at, reason) for at, *both in pairs if (reason := difference(*both))]
    if changed:
        (first, reason), *others = changed
        more = "".join(f"; cell {at}: {reason}" for at, reason in others)
        raise Failed(first, reason + more)


def difference(cell: NotebookNode, again: NotebookNode) -> str:
    """What a cell did otherwise when it was run again; empty if nothing."""
    before, after = texts(cell), texts(again)
    died = [o for o in again.outputs if o.output_type == "error"]
    if died and "raises-exception" not in tags(cell):
        return f"run again, it stops with {died[0].ename}: {died[0].evalue}"
    if before == after or "nbval-ignore-output" in tags(cell):
        return ""
    lines = [text.splitlines() for text in (before, after)]
    for old, new in zip_longest(*lines, fillvalue=""):
        if old != new:
            return f"run again, it prints {new[:75]!r}, not {old[:75]!r}"
    return ""


def texts(cell: NotebookNode) -> str:
    """All that a cell printed or displayed but its pictures, each kind in order."""
    found: dict[str, str] = {}
    for output in cell.outputs:
        shown = output.get("data") or {
            output.get("name", "error"): output.get("text") or output.get("evalue", "")
        }
        for kind, text in shown.items():
            if not kind.startswith("image/"):
                found[kind] = found.get(kind, "") + DATA_ADDRESS.sub("", str(text))
    return "\n".join(f"{kind}\n{text}" for kind, text in sorted(found.items()))


def run(arguments: list[str], root: Path) -> int:
    """Execute each notebook in a temporary copy; non-zero if any failed."""
    made = parser("run")
    made.add_argument("--cpu", nargs="+", choices=CPUS, default=[""])
    made.add_argument("--learner", action="store_true", help="with buttons and sliders")
    made.add_argument("--twice", action="store_true", help="each cell twice in a row")
    options = made.parse_args(arguments)
    folders = (root / "notebooks", root / "teaching")
    paths = choose(folders[0], options.names, folders[1])
    use_variables()
    if options.learner:
        for name in (STORED, FOLDER):
            os.environ.pop(name, None)
    passed = []
    for cpu in options.cpu:
        with tempfile.TemporaryDirectory() as folder:
            for each in filter(Path.exists, folders):
                shutil.copytree(each, Path(folder, each.name))
            copies = [Path(folder, path.relative_to(root)) for path in paths]
            passed += [run_one(each, cpu, options.twice) for each in copies]
    return int(not all(passed))


def run_one(path: Path, cpu: str = "", twice: bool = False) -> bool:
    """Execute one notebook and print its line; whether it ran to the end."""
    start, outcome = time.perf_counter(), "ok"
    try:
        (execute_twice if twice else execute)(read(path), path.parent, CPUS.get(cpu))
    except Failed as error:
        outcome = f"FAILED, {error}"
    seconds = time.perf_counter() - start
    column = f"{cpu:<18} " if cpu else ""
    print(f"{path.stem:<20} {column}{seconds:6.1f} s  {outcome}", flush=True)
    return outcome == "ok"


LINT_IMPORTS = "from importlinter.cli import lint_imports_command as lint; lint()"
CHECKS = {
    "ruff check": ["-m", "ruff", "check", "."],
    "ruff format": ["-m", "ruff", "format", "--check", "."],
    "lint-imports": ["-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
    "mypy": ["-m", "mypy"],
}
NOTEBOOKS = [
    "--nbval",
    "--nbval-current-env",
    f"--nbval-cell-timeout={CELL_SECONDS}",
    "--nbval-kernel-startup-timeout=120",
]
# A file at a time for each of two processes; the notebooks first, which take longest.
TWO_AT_ONCE = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
EVERYTHING = ["-o", "testpaths=notebooks teaching tests"]  # where no file is named
CHECKS_ONLY = "--checks"


def test(arguments: list[str], root: Path) -> int:
    """Run pytest with `arguments`, and every check beside it; non-zero if any failed.

    What the checks say comes last: above a passed pytest nobody would look for it.
    """
    use_variables()
    checks = {
        name: subprocess.Popen(
            [sys.executable, *command],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",  # a code page may lack what a shown line of source has
        )
        for name, command in CHECKS.items()
    }
    status = 0
    if CHECKS_ONLY not in arguments:
        pytest = ["-m", "pytest", *NOTEBOOKS, *TWO_AT_ONCE, *EVERYTHING, *arguments]
        status = python(pytest, root)
    failed = []
    for name, check in checks.items():
        print(f"== {name}\n{check.communicate()[0]}", end="", flush=True)
        if check.returncode != 0:
            failed.append(name)
    if failed:
        print(f"== FAILED: {', '.join(failed)}", flush=True)
    return status or int(bool(failed))


def bench(arguments: list[str], root: Path) -> int:
    """Run `benchmarks/bench_*.py`, or those named; non-zero if any failed."""
    paths = sorted((root / "benchmarks").glob("bench_*.py"))
    known = {path.stem.removeprefix("bench_"): path for path in paths}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        told = f"usage: bench [names]. Benchmarks: {', '.join(known)}."
        print(told, file=sys.stderr)
        return 2
    use_variables()
    statuses = []
    for name in arguments or known:
        print(f"== {name}", flush=True)
        statuses.append(python([str(known[name])], root))
    return int(any(statuses))
