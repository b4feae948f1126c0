"""A task by its name, by its module, or by the path of its file."""

import re
import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from grpo_course.algorithm.validation import choices
from grpo_course.language_model.text_task import TextTask, require_rewards

# name: where its class is. A name with a colon says so itself.
TASKS = {
    "gsm8k": "grpo_course.gsm8k.task:GSM8K",
    "countdown": "grpo_course.countdown:Countdown",
    "reverse": "grpo_course.reverse:Reverse",
    "stories": "grpo_course.reader:Stories",
}
PLACE = re.compile(r"(?:(?P<file>.+\.py)|(?P<module>\w+(?:\.\w+)*)):(?P<name>\w+)")
_files: dict[
    Path, tuple[int, ModuleType]
] = {}  # those that were loaded, and when saved


def find_task(name: str) -> type[TextTask]:
    """The class of a task: one of TASKS, or one of your own, in a file or a module.

    Raises ValueError for what cannot be found or is no task, and says why.
    """
    place = PLACE.fullmatch(TASKS.get(name, name) if isinstance(name, str) else "")
    if not place:
        raise ValueError(
            f"task={name!r} {choices(TASKS)} Or name a class of your own by its file, "
            "my_task.py:MyTask, or by its module, my_task:MyTask."
        )
    load = load_file if place["file"] else load_module
    module = load(place["file"] or place["module"])
    task = getattr(module, place["name"], None)
    if task is None:
        there = [n for n, x in vars(module).items() if is_task(x) and x is not TextTask]
        raise ValueError(
            f"task={name!r}: {module.__file__} has no {place['name']}. The tasks in it "
            f"are: {', '.join(there) or 'none'}."
        )
    require_task(name, task)
    return task


def load_module(name: str) -> ModuleType:
    """A module that can be imported. Raises ValueError for one that cannot."""
    try:
        return import_module(name)
    except ImportError as problem:
        raise ValueError(
            f"{name!r} cannot be loaded: {problem}. Run from the folder of "
            f"{name.replace('.', '/')}.py, or give the path of the file: "
            "path/to/my_task.py:MyTask."
        ) from problem


def load_file(name: str) -> ModuleType:
    """The module in a file, loaded anew after each change of the file.

    Its folder goes on sys.path, so that it can import what lies beside it.
    Raises ValueError for a file that is not there or that breaks, with the line.
    """
    path = Path(name).resolve()
    if not path.is_file():
        raise ValueError(f"There is no file {path}. Is the path that of a task's file?")
    saved = path.stat().st_mtime_ns
    if path in _files and _files[path][0] == saved:
        return _files[path][1]
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    spec = spec_from_file_location(str(path), path)
    assert spec and spec.loader  # a name that ends with .py has both
    module = sys.modules[str(path)] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__)]
        raise ValueError(
            f"{path} cannot be loaded, line {getattr(error, 'lineno', lines[-1])}: "
            f"{type(error).__name__}: {error}."
        ) from error
    _files[path] = saved, module
    return module


def own_source(name: str) -> str:
    """The text of the file that a task of one's own is in; "" for one of TASKS."""
    if name in TASKS:
        return ""
    file = sys.modules[find_task(name).__module__].__file__
    return Path(str(file)).read_text("utf-8")


def is_task(thing: object) -> bool:
    """Whether this is a class of tasks."""
    return isinstance(thing, type) and issubclass(thing, TextTask)


def require_task(name: str, task: Any) -> None:
    """Check that this is a class with all that a task needs."""
    if not is_task(task):
        raise ValueError(f"task={name!r} must be a subclass of TextTask.")
    if task.__abstractmethods__:
        lacks = ", ".join(sorted(task.__abstractmethods__))
        raise ValueError(f"task={name!r} lacks {lacks}: define what TextTask asks for.")
    if "__pydantic_fields__" not in vars(task):
        raise ValueError(f"task={name!r} must be decorated with @settings().")
    require_rewards(getattr(task, "rewards", None), task.measures)
