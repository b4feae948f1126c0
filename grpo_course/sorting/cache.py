"""Keep a run on disk: its log as JSON lines, its curves as a figure."""

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import torch

from grpo_course.algorithm.history import History, as_json, from_json
from grpo_course.files import json_lines, read_json_lines, write_atomically

Code = FunctionType | BuiltinFunctionType | type


def cache_key(settings: dict) -> str:
    """A short name that changes with every setting, the reward's code included."""
    parts = {name: describe(value) for name, value in sorted(settings.items())}
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def describe(value: Any) -> str:
    """A setting as text; a function is its source and all that it reads besides.

    Raises ValueError for what has no text of its own: it would be taken for another.
    """
    if isinstance(value, torch.Tensor):
        return str(value.tolist())
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, Code):
        return describe_function(value)
    if callable(value) or " at 0x" in repr(value):
        raise ValueError(
            f"use_cache=True cannot tell {value!r} from another of its kind. Let the "
            "reward be a function that reads plain numbers, texts, lists or tensors; "
            "or leave use_cache out."
        )
    return repr(value)


def describe_function(function: Code) -> str:
    """Its source, and what its code finds outside: defaults, closure, globals."""
    if "<lambda>" in function.__qualname__:
        raise ValueError(
            "use_cache=True cannot tell one lambda from another. Define it with `def`."
        )
    home = function.__module__
    told = [f"{home}.{function.__qualname__}: {inspect.getsource(function)}"]
    for value in outside(function):
        elsewhere = isinstance(value, Code) and value.__module__ != home
        if not elsewhere and value is not function:
            told.append(describe(value))
    return " ".join(told)


def outside(function: Code) -> Iterator[Any]:
    """The values that a function's code reads and does not make."""
    yield from getattr(function, "__defaults__", None) or ()
    yield from (getattr(function, "__kwdefaults__", None) or {}).values()
    for cell in getattr(function, "__closure__", None) or ():
        yield cell.cell_contents
    code = getattr(function, "__code__", None)
    known = getattr(function, "__globals__", {})
    yield from (known[name] for name in names_in(code) if name in known)


def names_in(code: CodeType | None) -> Iterator[str]:
    """The names that code and the code inside it look up."""
    if code is not None:
        yield from code.co_names
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                yield from names_in(inner)


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
