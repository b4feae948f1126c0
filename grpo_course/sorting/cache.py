"""Keep a run on disk: its log as JSON lines, its curves as a figure."""

import hashlib
import inspect
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from grpo_course.algorithm.history import History, as_json, from_json
from grpo_course.files import json_lines, read_json_lines, write_atomically


def cache_key(settings: dict) -> str:
    """A short name that changes with every setting, the reward's code included."""
    parts = {name: describe(value) for name, value in sorted(settings.items())}
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def describe(value: Any) -> str:
    """A setting as text; a function is its source, so that a new body is a new run."""
    if isinstance(value, torch.Tensor):
        return str(value.tolist())
    if not callable(value):
        return repr(value)
    name = getattr(value, "__qualname__", "<lambda>")  # functools.partial has none
    if "<lambda>" in name:
        raise ValueError(
            "use_cache=True cannot tell one lambda from another. Define it with `def`."
        )
    return f"{value.__module__}.{name}: {inspect.getsource(value)}"


def cached(run: Callable[[], History], log: Path) -> History:
    """The run in `log` if it is there; else run it, and write log and figure."""
    if log.exists():
        cure = "Delete the file, and the next call runs again."
        return History(list(read_json_lines(log, from_json, cure)))
    history = run()
    write_atomically(log.with_suffix(".png"), figure(history))
    write_atomically(log, json_lines([as_json(record) for record in history.records]))
    return history


def figure(history: History) -> bytes:
    """Loss and mean reward against the optimizer step, one line a seed; a PNG."""
    from matplotlib.figure import Figure

    drawn, image = Figure(figsize=(9, 3.2), layout="constrained"), BytesIO()
    for ax, name in zip(drawn.subplots(1, 2), ("loss", "mean_reward"), strict=True):
        ax.plot(history.curve(name))
        ax.set_xlabel("optimizer step")
        ax.set_ylabel(name)
    drawn.savefig(image, format="png")
    return image.getvalue()
