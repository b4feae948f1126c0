"""Keep a run on disk: its log as JSON lines, its curves as a figure."""

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from io import BytesIO
from pathlib import Path
from sysconfig import get_paths
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import torch

from grpo_course.algorithm.history import History, as_json, from_json
from grpo_course.files import json_lines, read_json_lines, write_atomically

Code = FunctionType | BuiltinFunctionType | type
PLAIN = (NoneType, bool, int, float, complex, str, bytes, range, torch.dtype)
LIBRARIES = tuple(get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def cache_key(settings: dict) -> str:
    """A short name that changes with every setting, the reward's code included."""
    parts = {name: describe(value) for name, value in sorted(settings.items())}
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def describe(value: Any, told: tuple = ()) -> str:
    """A setting as text; a function is its source and all that it reads besides.

    `told` are the functions that are being described. Raises ValueError for what has
    no text of its own: it would be taken for another.
    """
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, Code):
        return describe_function(value, told)
    if isinstance(value, torch.Tensor) or type(value).__module__ == "numpy":
        return describe(value.tolist(), told)
    if isinstance(value, dict):
        return f"{{{describe([*value], told)}: {describe([*value.values()], told)}}}"
    if isinstance(value, list | tuple | set | frozenset):
        parts = [describe(each, told) for each in value]
        return str(sorted(parts) if isinstance(value, set | frozenset) else parts)
    if is_dataclass(value):
        return f"{type(value).__qualname__} {describe(vars(value), told)}"
    if isinstance(value, PLAIN):
        return repr(value)
    raise ValueError(
        f"use_cache=True cannot tell {value!r} from another of its kind. Let the "
        "reward be a function that reads plain numbers, texts, lists or tensors; "
        "or leave use_cache out."
    )


def describe_function(function: Code, told: tuple) -> str:
    """Its source, and what its code finds outside: defaults, closure, globals."""
    if "<lambda>" in function.__qualname__:
        raise ValueError(
            "use_cache=True cannot tell one lambda from another. Define it with `def`."
        )
    name = f"{function.__module__}.{function.__qualname__}"
    home = told[-1].__module__ if told else function.__module__
    elsewhere = function.__module__ != home
    if function in told or (elsewhere and is_library(function.__module__)):
        return name
    found = [describe(value, (*told, function)) for value in outside(function)]
    return " ".join([f"{name}: {inspect.getsource(function)}", *found])


def is_library(module: str | None) -> bool:
    """Whether a module is Python's, an installed package's or the course's."""
    if module is None or module.startswith("grpo_course."):
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    return file.startswith(LIBRARIES) if file else module != "__main__"


def outside(function: Code) -> Iterator[Any]:
    """The values that a function's code reads and does not make."""
    names = [*names_in(getattr(function, "__code__", None))]
    known = getattr(function, "__globals__", {})
    for value in (
        *(getattr(function, "__defaults__", None) or ()),
        *(getattr(function, "__kwdefaults__", None) or {}).values(),
        *(c.cell_contents for c in getattr(function, "__closure__", None) or ()),
        *(known[name] for name in names if name in known),
    ):
        yield value
        if isinstance(value, ModuleType) and not is_library(value.__name__):
            yield from (vars(value)[name] for name in names if name in vars(value))


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
