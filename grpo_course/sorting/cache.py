"""Keep a run on disk: its log as JSON lines, its curves as a figure."""

import hashlib
import inspect
import json
import os
from collections.abc import Callable
from pathlib import Path

import torch

from grpo_course.algorithm.history import History


def cache_key(settings: dict) -> str:
    """A short name that changes with every setting, the reward's code included."""
    parts = {name: describe(value) for name, value in sorted(settings.items())}
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def describe(value: object) -> str:
    """A setting as text; a function is its source, so that a new body is a new run."""
    if isinstance(value, torch.Tensor):
        return str(value.tolist())
    if not callable(value):
        return repr(value)
    if "<lambda>" in value.__qualname__:
        raise ValueError(
            "use_cache=True cannot tell one lambda from another. Define it with `def`."
        )
    return f"{value.__module__}.{value.__qualname__}: {inspect.getsource(value)}"


def cached(run: Callable[[], History], log: Path) -> History:
    """The run in `log` if it is there; else run it, and write log and figure."""
    if log.exists():
        return read_log(log)
    history = run()
    log.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(log.with_suffix(".png"), lambda path: draw(history, path))
    write_atomically(log, lambda path: path.write_text(log_text(history)))
    return history


def log_text(history: History) -> str:
    """One record a line."""
    as_lists = [
        {name: torch.as_tensor(value).tolist() for name, value in record.items()}
        for record in history.records
    ]
    return "".join(json.dumps(record) + "\n" for record in as_lists)


def read_log(log: Path) -> History:
    """The history that `log_text` wrote; a damaged line is named."""
    records = []
    for number, line in enumerate(log.read_text().splitlines(), start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"line {number} of {log} is damaged ({error}). Delete the file, and "
                "the next call runs again."
            ) from error
        counts = {k: record[k] for k in ("epoch", "step") if k in record}
        values = {k: torch.tensor(v) for k, v in record.items() if k not in counts}
        records.append(counts | values)
    return History(records)


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write beside, then move: an interrupted run leaves no half a file."""
    beside = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def draw(history: History, path: Path) -> None:
    """Loss and mean reward against the optimizer step, one line a seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    for ax, name in zip(figure.subplots(1, 2), ("loss", "mean_reward"), strict=True):
        ax.plot(history.curve(name))
        ax.set_xlabel("optimizer step")
        ax.set_ylabel(name)
    figure.savefig(path, format="png")
