"""What lies in the folder of a run: its settings, its journals, its checkpoints.

Enough to refuse what does not fit before a model is loaded.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from grpo_course.files import PARSING, write_atomically
from grpo_course.text.config import GRPOConfig, load_config, spelled_out
from grpo_course.text.tasks import own_source

CONFIG, TASK, LOCK = "grpo_config.json", "task.py", ".lock"
METRICS, SAMPLES = "metrics.jsonl", "samples.jsonl"
CHECKPOINTS, STATE = "checkpoints", "training.pt"
SEED = "seed"  # and its number: the folder of one of several runs
PICTURE, PICTURES = "run.png", "runs.png"  # of one run, of several


def begin(config: GRPOConfig, out: Path) -> None:
    """Make the folder of a new run; one that has saved nothing yet is begun anew."""
    with alone_in(out):
        require_no_run(out)
        config.save(out / CONFIG)
        if source := own_source(config.task):
            write_atomically(out / TASK, source)


def require_no_run(out: Path) -> None:
    """Check that a folder holds no run that has saved something."""
    if saved_epochs(out) or (out / METRICS).exists():
        raise FileExistsError(
            f"{out} holds a run already. Go on with it: --resume. Or choose "
            "another folder: --out DIR. If nothing in it is worth keeping, delete "
            "it."
        )


@contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Make the folder of a run if need be, and keep other processes out of it.

    The system frees the lock when its holder ends or dies; the holder may ask again.
    Raises OSError where another process has it, or the folder cannot be made.
    """
    out.mkdir(parents=True, exist_ok=True)
    lock = FileLock(out.resolve() / LOCK, timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise OSError(
            f"Another process is training in {out}. Wait until it ends, or choose "
            "another folder: --out DIR."
        ) from None
    try:
        yield
    finally:
        lock.release()


def saved_epochs(out: Path) -> list[int]:
    """The epochs that have a checkpoint, in order; other things are passed by."""
    names = [path.parent.name for path in (out / CHECKPOINTS).glob(f"*/{STATE}")]
    return sorted(int(n) for n in names if re.fullmatch("[0-9]{6}|[1-9][0-9]{6,}", n))


def checkpoint_path(out: Path, epoch: int) -> Path:
    """Where the checkpoint after so many epochs is."""
    return out / CHECKPOINTS / f"{epoch:06d}"


def saved_config(out: Path) -> GRPOConfig:
    """The settings of the run in a folder. FileNotFoundError where there is none."""
    if (out / CONFIG).is_file():
        return load_config(out / CONFIG)
    raise FileNotFoundError(
        f"There is no run in {out}: it has no {CONFIG}, of which each checkpoint holds "
        "a copy. Pass the folder of a run; train without --resume begins one."
    )


def first_of_seeds(out: Path) -> Path:
    """The folder of the lowest seed in a folder of runs; that of 0 where none is."""
    begun = [path.parent for path in out.glob(f"{SEED}*/{CONFIG}")]
    return min(begun, key=lambda path: saved_config(path).seed, default=out / "seed0")


def here(config: GRPOConfig, now: GRPOConfig) -> GRPOConfig:
    """The config on the machine that another one is for."""
    return replace(config, device=now.device, num_threads=now.num_threads)


def going_on(config: GRPOConfig, now: GRPOConfig) -> GRPOConfig:
    """The config with what may change while its run goes on: the machine, the length.

    Not the length where the learning rate falls towards the end.
    """
    config = here(config, now)
    if config.schedule == "linear":
        return config
    return replace(config, num_epochs=now.num_epochs)


def differences(there: GRPOConfig, now: GRPOConfig) -> str:
    """The settings in which two configs differ: "seed 0 -> 1; ..."; "" for none."""
    one, other = (asdict(spelled_out(config)) for config in (there, now))
    return "; ".join(
        f"{n} {one[n]!r} -> {other[n]!r}" for n in one if one[n] != other[n]
    )


def find_model(path: str) -> str:
    """Where to load a model from: in the folder of a run, the newest checkpoint."""
    if not Path(path, CHECKPOINTS).is_dir():
        return path
    if there := saved_epochs(Path(path)):
        return str(checkpoint_path(Path(path), there[-1]))
    raise FileNotFoundError(
        f"The run in {path} has no checkpoint yet. Wait for its first, or pass the "
        "folder of another model."
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a journal, up to one that is not whole: it is being written."""
    found: list[dict[str, Any]] = []
    for text in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(dict(json.loads(text)))
        except PARSING:
            break
    return found
