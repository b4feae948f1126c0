"""Kill runs with SIGKILL, resume them, and compare them with one that was left alone.

    python kills.py FOLDER SEED KILLS [CHANGES]

CHANGES, as JSON, are what differs from the small run of runs.json; without them the
run has all the state that a run can have. Trials go on until there were KILLS kills;
each is a line of JSON: what was tried, what was wrong afterwards, what it left behind.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from forked import fork, wait

from grpo_course.runs import checkpoint, journal, resumable, saved_run, state
from grpo_course.runs.folder import CHECKPOINTS, begin
from grpo_course.runs.record import read_record
from grpo_course.training import GRPOConfig, from_values

RUNS = json.loads(Path(__file__).with_name("runs.json").read_text())
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


def small_config(changes: dict | None = None) -> GRPOConfig:
    """Settings of a run that takes a second; without `changes` one of much state."""
    return from_values(
        RUNS["small"] | (RUNS["much state"] if changes is None else changes)
    )


def run_alone(config: GRPOConfig, out: Path) -> float:
    """A run that nobody disturbs, to compare with. -> how many seconds it took"""
    begin(config, out)
    start = time.monotonic()
    if wait(fork(lambda: go(out))):
        sys.exit("A run that was left alone did not come to its end.")
    return time.monotonic() - start


def trial(
    config: GRPOConfig, out: Path, at_a_place: bool, rng: random.Random, seconds: float
) -> dict:
    """One run that is killed up to three times, at moments or at places."""
    begin(config, out)
    kills, left = [], []
    for _ in range(rng.randint(1, 3)):
        if at_a_place:
            place = rng.randint(0, len(PLACES))
            _, name, latest = (*PLACES, (None, "half a line", 18))[place]
            call = rng.randint(1, latest)
            killed, how = killed_at(out, place, call), f"{name} {call}"
        else:
            moment = rng.uniform(0, seconds)
            killed, how = killed_after(out, moment), f"{moment:.3f} s"
        kills += [how] if killed else []
        left += left_behind(out)
    ended = wait(fork(lambda: go(out))) == 0
    found = same(out.with_name("alone"), out) if ended else {"status": False}
    wrong = [name for name, is_same in found.items() if not is_same]
    return {"tried": kills, "wrong": wrong, "left": left}


def main() -> None:
    torch.set_num_threads(1)
    folder, seed, wanted = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    config = small_config(json.loads(sys.argv[4]) if len(sys.argv) > 4 else None)
    seconds = run_alone(config, folder / "alone")
    rng, kills, number = random.Random(seed), 0, 0
    while kills < wanted:
        out = folder / f"trial{number}"
        found = trial(config, out, number % 2 == 0, rng, seconds)
        print(json.dumps(found), flush=True)
        kills, number = kills + len(found["tried"]), number + 1


if __name__ == "__main__":
    main()
