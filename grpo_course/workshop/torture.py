"""`python3 -m grpo_course torture [names]`: what must not be lost, tried many times.

`kills` ends runs with SIGKILL and resumes them, `pairs` starts two processes in one
run folder, `texts` gives hostile texts to the grader and the loader. The programs are
in `tests/torture`, and need Linux or macOS. It takes minutes, and is no part of `test`.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grpo_course.workshop import kernels, machine

PROGRAMS = {"kills": 40, "pairs": 24, "texts": 500}  # how often each tries
COLUMNS = "{:<8} {:>8} {:>9} {:>5} {:>8}"


def main(arguments: list[str], root: Path) -> int:
    """Run the programs and print what was lost; non-zero if anything was."""
    parser = argparse.ArgumentParser(prog=machine.call("torture"))
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(PROGRAMS))
    parser.add_argument("--seed", type=int, default=0, help="other trials of each kind")
    parser.add_argument("--attempts", type=int, help="how often each is tried")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in PROGRAMS]:
        parser.error(f"unknown: {', '.join(unknown)}. There are {', '.join(PROGRAMS)}.")
    kernels.use()
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    print(COLUMNS.format("trial", "attempts", "survived", "lost", "seconds"))
    rows = []
    for name in options.names or PROGRAMS:
        wanted = options.attempts or PROGRAMS[name]
        rows.append(run_one(name, root, folder / name, options.seed, wanted))
        print(COLUMNS.format(*rows[-1]), flush=True)
    if any(lost for *_, lost, _ in rows):
        print(f"What was lost can be looked at in {folder}.")
        return 1
    shutil.rmtree(folder)
    return 0


def run_one(
    name: str, root: Path, folder: Path, seed: int, wanted: int
) -> tuple[str, int, int, int, int]:
    """One program. -> its name; attempts, survived and lost ones; seconds

    It prints a line of JSON for each trial. An attempt that it never came to, because
    it stopped, is lost too.
    """
    folder.mkdir()
    program = str(root / "tests" / "torture" / f"{name}.py")
    command = [sys.executable, program, str(folder), str(seed), str(wanted)]
    start, attempts, lost = time.monotonic(), 0, 0
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as process:
        for line in process.stdout or ():
            trial = json.loads(line)
            tries = max(len(trial["tried"]), bool(trial["wrong"]))
            attempts += tries
            if trial["wrong"]:
                lost += tries
                print(f"{name} lost: {trial['tried']}: {trial['wrong']}", flush=True)
    if process.returncode:
        print(f"{name}: the program ended with status {process.returncode}")
    missed = max(wanted - attempts, int(process.returncode != 0))
    attempts, lost = attempts + missed, lost + missed
    seconds = round(time.monotonic() - start)
    return name, attempts, attempts - lost, lost, seconds
