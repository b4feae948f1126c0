"""Kill runs with SIGKILL, resume them, and compare them with one that was left alone.

    python kill_and_resume.py CONFIG.json FOLDER SEED TRIALS

A program of its own: it imports once and forks, so that a trial takes part of a second.
It prints a list of trials as JSON.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from grpo_course.language_model.config import load_config
from grpo_course.runs import checkpoint, journal, resumable, saved_run, state
from grpo_course.runs.folder import CHECKPOINTS, begin
from grpo_course.runs.record import read_record

# Places to die at: a function, and the latest call of it to choose.
PLACES = (
    (checkpoint, "digest", 20),
    (checkpoint, "force_to_disk", 20),
    (checkpoint, "put_in_place", 3),
    (os, "rename", 3),
    (state.torch, "save", 3),
    (saved_run, "remove_old", 3),
    (saved_run, "write_checkpoint", 3),
    (journal.LinesFile, "cut", 6),
    (journal.LinesFile, "append", 18),
)


def go(out: Path) -> None:
    resumable.Run(out, show=False).go()


def fork(work: Callable[[], None]) -> int:
    """Do something in a child. -> its process id"""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def wait(child: int) -> int:
    """The exit status; minus the signal if one ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die_at(owner: object, name: str, call: int) -> None:
    """Make the given call of a function the last thing that this process does."""
    original, calls = getattr(owner, name), [0]

    def dying(*args: object, **kwargs: object) -> object:
        calls[0] += 1
        if calls[0] == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(owner, name, dying)


def die_in_a_line(call: int) -> None:
    """Write half a line of metrics, samples or times, then die."""
    original, calls = journal.LinesFile.append, [0]

    def half(self: journal.LinesFile, lines: list[dict]) -> None:
        calls[0] += 1
        if calls[0] < call:
            return original(self, lines)
        with self.path.open("a") as file:
            file.write(journal.json_lines(lines)[:-20])
        os.kill(os.getpid(), signal.SIGKILL)

    journal.LinesFile.append = half


def killed_at(out: Path, place: int, call: int) -> bool:
    """Run until a place; whether it got there."""

    def work() -> None:
        if place == len(PLACES):
            die_in_a_line(call)
        else:
            die_at(*PLACES[place][:2], call)
        go(out)

    return wait(fork(work)) == -signal.SIGKILL


def killed_after(out: Path, seconds: float) -> bool:
    """Run for some time; whether it was still running."""
    child = fork(lambda: go(out))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return wait(child) == -signal.SIGKILL


def left_behind(out: Path) -> list[str]:
    """Folders that are not finished checkpoints."""
    return sorted(path.name for path in (out / CHECKPOINTS).glob(".*"))


def same(one: Path, other: Path) -> dict[str, bool]:
    """What two finished runs have in common, bit by bit."""
    epochs = [checkpoint.saved_epochs(x / CHECKPOINTS) for x in (one, other)]
    last = [
        checkpoint.checkpoint_path(x / CHECKPOINTS, e[-1])
        for x, e in zip((one, other), epochs, strict=True)
    ]
    weights = [(path / "model.safetensors").read_bytes() for path in last]
    states = [torch.load(p / checkpoint.STATE, weights_only=True) for p in last]
    for saved in states:
        saved["lines"].pop(journal.TIMES)  # no two runs take the same time
    times = [[line["epoch"] for line in read_record(x).times] for x in (one, other)]
    return {
        "epochs": epochs[0] == epochs[1],
        "metrics": same_bytes(one, other, journal.METRICS),
        "samples": same_bytes(one, other, journal.SAMPLES),
        "times": times[0] == times[1] == list(range(len(times[0]))) != [],
        "weights": weights[0] == weights[1],
        "state": equal(*states),
    }


def same_bytes(one: Path, other: Path, name: str) -> bool:
    """Whether a file of both runs is the same, and not empty."""
    data = (one / name).read_bytes()
    return data == (other / name).read_bytes() != b""


def equal(one: object, other: object) -> bool:
    """Whether two nests of tensors, numbers and lists are the same."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        pairs = zip(one, other, strict=True)
        return len(one) == len(other) and all(equal(*pair) for pair in pairs)
    return one == other


def trial(folder: Path, number: int, rng: random.Random, seconds: float) -> dict:
    """One run that is killed up to three times, at moments or at places."""
    out = folder / f"trial{number}"
    begin(load_config(sys.argv[1]), out)
    kills, left = [], []
    for _ in range(rng.randint(1, 3)):
        if number % 2:
            moment = rng.uniform(0, seconds)
            killed, how = killed_after(out, moment), f"{moment:.3f} s"
        else:
            place = rng.randint(0, len(PLACES))
            _, name, latest = (*PLACES, (None, "half a line", 18))[place]
            call = rng.randint(1, latest)
            killed, how = killed_at(out, place, call), f"{name} {call}"
        kills += [how] if killed else []
        left += left_behind(out)
    status = wait(fork(lambda: go(out)))
    found = same(folder / "alone", out) if status == 0 else {"status": False}
    return {"kills": kills, "left": left, "same": found}


def main() -> None:
    torch.set_num_threads(1)
    folder, rng = Path(sys.argv[2]), random.Random(int(sys.argv[3]))
    begin(load_config(sys.argv[1]), folder / "alone")
    start = time.monotonic()
    assert wait(fork(lambda: go(folder / "alone"))) == 0
    seconds = time.monotonic() - start
    trials = [trial(folder, i, rng, seconds) for i in range(int(sys.argv[4]))]
    print(json.dumps({"seconds": seconds, "trials": trials}))


if __name__ == "__main__":
    main()
