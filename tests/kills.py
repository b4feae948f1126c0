"""Kill runs with SIGKILL, resume them, and compare them with one that was left alone.

    python tests/kills.py FOLDER SETTINGS KILLS [SEED]

SETTINGS are those of a run of a second, as JSON. It is killed up to three times, at
random moments or inside what writes: the sync of a file, a rename, the saving of the
state, half a line of a journal. Then it goes on to its end. Prints the number of kills;
fails where metrics, samples, weights or any part of the last state differ from those of
a run that was left alone by one bit.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch

from grpo_course.text import runs
from grpo_course.text.runs import (
    METRICS,
    SAMPLES,
    STATE,
    Run,
    begin,
    checkpoint_path,
    saved_epochs,
)
from grpo_course.text.training import GRPOConfig, from_values

# Places to die at, each with the latest of its calls to choose.
PLACES = (
    (os, "fsync", 40),
    (Path, "rename", 4),
    (torch, "save", 4),
    (shutil, "rmtree", 6),
    (os, "truncate", 2),
    (runs, "append", 17),
)


def die_at(owner: object, name: str, call: int) -> None:
    """Make a call of a function the last thing that this process does."""
    original, calls = getattr(owner, name), 0

    def dying(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls < call:
            return original(*args, **kwargs)
        if name == "append":  # half a line
            with args[0].open("a") as file:
                file.write(runs.json_lines(args[1])[:-20])
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, dying)


def run_in_a_child(out: Path, place: tuple | None = None, after: float = 0) -> int:
    """Begin or go on with a run, and die at a place or after some seconds. -> status"""
    child = os.fork()
    if not child:
        status = 1
        try:
            if place:
                die_at(*place)
            Run(out, show=False).go()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    if after:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def result(out: Path) -> list:
    """All that a finished run leaves, but for the checkpoints before the last."""
    last = checkpoint_path(out, saved_epochs(out)[-1])
    paths = out / METRICS, out / SAMPLES, last / "model.safetensors"
    state = torch.load(last / STATE, weights_only=True)
    return [*(path.read_bytes() for path in paths), flat(state)]


def flat(state: object) -> list:
    """The numbers of a nest of tensors, dicts and lists, tensors as bytes."""
    if isinstance(state, torch.Tensor):
        return [state.numpy().tobytes()]
    if isinstance(state, dict):
        state = [part for pair in state.items() for part in pair]
    if isinstance(state, list | tuple):
        return [number for part in state for number in flat(part)]
    return [state]


def kill(config: GRPOConfig, folder: Path, wanted: int, seed: int) -> int:
    """Kill runs until so many kills are done; how many they came to."""
    begin(config, folder / "alone")
    started = time.monotonic()
    assert run_in_a_child(folder / "alone") == 0, "a run alone did not come to its end"
    seconds, alone = time.monotonic() - started, result(folder / "alone")
    rng, kills, trial = random.Random(seed), 0, 0
    while kills < wanted:
        out, told = folder / f"trial{trial}", []
        begin(config, out)
        for _ in range(rng.randint(1, 3)):
            if rng.random() < 0.7:
                owner, place, latest = rng.choice(PLACES)
                how = {"place": (owner, place, rng.randint(1, latest))}
            else:
                how = {"after": rng.uniform(0, seconds)}
            if run_in_a_child(out, **how) == -signal.SIGKILL:
                told.append(how)
        assert run_in_a_child(out) == 0, f"{out} not resumed after {told}"
        assert result(out) == alone, f"{out} differs after {told}"
        shutil.rmtree(out)
        kills, trial = kills + len(told), trial + 1
    return kills


def main(folder: Path, settings: str, wanted: int, seed: int = 0) -> None:
    torch.set_num_threads(1)
    print(kill(from_values(json.loads(settings)), folder, wanted, seed))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:]))
