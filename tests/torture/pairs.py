"""Two processes begin or resume one run at the same time: exactly one may train.

    python pairs.py FOLDER SEED PAIRS

Each pair is a line of JSON: what was tried, and what was wrong. The second process
comes at a random moment of the first one's life, and the first waits at its last epoch
until the second has ended; so the second finds it at work, however slow the machine is.
"""

import json
import os
import random
import select
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch
from forked import fork, wait
from kills import die_at, go, run_alone, same, small_config

from grpo_course.runs import journal, saved_run, train
from grpo_course.runs.folder import begin

PATIENCE = 30  # seconds; both wait for each other where both train
BEGIN, RESUME = "begin", "resume"
KINDS = ((BEGIN, BEGIN), (RESUME, RESUME), (BEGIN, RESUME), (RESUME, BEGIN))
REFUSED, TOO_EARLY = "Another process is training in", "There is no run in"


def wait_at_the_last_epoch(epochs: int, other: int) -> None:
    """Let a run go on there when the other process, which holds a pipe open, ended."""
    add = journal.Journal.add

    def waiting(self: journal.Journal, line: dict, *more: object) -> None:
        if line["epoch"] == epochs - 1:
            select.select([other], [], [], PATIENCE)
        add(self, line, *more)

    journal.Journal.add = waiting


def train_there(out: Path, how: str, told: Path) -> int:
    """The command as a user calls it; what it says goes to a file."""
    text = os.open(told, os.O_WRONLY | os.O_CREAT)
    os.dup2(text, 1)
    os.dup2(text, 2)
    saved_run.redraw = lambda *_: None  # a drawing takes half a second
    config = ["--config", str(out.with_name("config.json"))]
    more = ["--resume"] if how == RESUME else config
    return train.main([*more, "--out", str(out)], out.parent)


def both(out: Path, hows: tuple[str, str], delay: float, epochs: int) -> list[int]:
    """Two processes, the second one later. -> their statuses"""
    alive = [os.pipe(), os.pipe()]
    gate = os.pipe()

    def one(number: int) -> int:
        os.close(gate[1])
        os.close(alive[1 - number][1])
        os.read(gate[0], 1)  # until the parent closes its end
        time.sleep(delay * number)
        wait_at_the_last_epoch(epochs, alive[1 - number][0])
        return train_there(out, hows[number], told_by(out, number))

    children = [fork(lambda number=number: one(number)) for number in (0, 1)]
    for end in (alive[0][1], alive[1][1], gate[1]):
        os.close(end)
    statuses = [wait(child) for child in children]
    for end in (alive[0][0], alive[1][0], gate[0]):
        os.close(end)
    return statuses


def told_by(out: Path, number: int) -> Path:
    """Where one of the two says what it has to say."""
    return out.with_name(f"{out.name}-{number}.txt")


def faults(
    out: Path, hows: tuple[str, str], statuses: list[int], told: list[str]
) -> list[str]:
    """What is wrong with how the two ended, in words."""
    if sorted(statuses) != [0, 1]:
        return [f"the exit statuses are {statuses}, not 0 of one and 1 of the other"]
    refused = statuses.index(1)
    names = [f"{REFUSED} {out}"]
    if (hows[1 - refused], hows[refused]) == (BEGIN, RESUME):
        names.append(f"{TOO_EARLY} {out}")
    if any(name in told[refused] for name in names):
        return []
    return ["refused with: " + told[refused].strip().rpartition("\n")[2][:200]]


def killed_in_the_middle(out: Path, rng: random.Random) -> None:
    """A run that was killed before its last epochs, to go on with."""

    def work() -> None:
        die_at(journal.LinesFile, "append", rng.randint(1, 18))
        go(out)

    begin(small_config(), out)
    wait(fork(work))


def pair(out: Path, hows: tuple[str, str], rng: random.Random, seconds: float) -> dict:
    """One trial."""
    delay = rng.choice([0.0, rng.uniform(0, seconds)])
    if hows == (RESUME, RESUME):
        killed_in_the_middle(out, rng)
    statuses = both(out, hows, delay, small_config().num_epochs)
    told = [told_by(out, number).read_text() for number in (0, 1)]
    wrong = faults(out, hows, statuses, told)
    if 0 in statuses:
        found = same(out.with_name("alone"), out)
        wrong += [name for name, is_same in found.items() if not is_same]
    return {"tried": [f"{' and '.join(hows)}, {delay:.3f} s later"], "wrong": wrong}


def main() -> None:
    torch.set_num_threads(1)
    folder, rng = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    config = small_config()
    (folder / "config.json").write_text(json.dumps(asdict(config)))
    seconds = run_alone(config, folder / "alone")
    for number in range(int(sys.argv[3])):
        hows = KINDS[number % len(KINDS)]
        print(
            json.dumps(pair(folder / f"pair{number}", hows, rng, seconds)), flush=True
        )


if __name__ == "__main__":
    main()
