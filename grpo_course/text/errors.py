"""Errors for people who train: their own line, the package they lack, what to paste."""

import sysconfig
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType

from grpo_course import install

STOPPED = 130  # the exit status of a program that Ctrl-C ended


def own_line(error: BaseException) -> str:
    """Where an error arose in code that is not the course's, and what it says; or "".

    The deepest line of a file that is neither ours nor of an installed package.
    """
    others = Path(__file__).parents[1], Path(sysconfig.get_path("stdlib"))
    packages = {"site-packages", "dist-packages"}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        ours = any(map(path.is_relative_to, others)) or packages & {*path.parts}
        if path.is_file() and not ours:
            message = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":.")
            return f"{path}, line {frame.lineno}, `{frame.line}`: {message}."
    return ""


# Packages that few people need are loaded when they are asked for; each belongs to an
# extra of pyproject.toml.


class MissingExtra(ImportError):
    """A package of an extra is not installed; the text says how to install it."""


def require_installed(needed: list[str], what: str) -> None:
    """Check that packages are there; `what` asks for them: "LoRA needs peft"."""
    if missing := install.lacking(needed):
        cure = install.pip_install(*missing)
        raise MissingExtra(
            f"{what}. Not installed here: {', '.join(missing)}. Install it:\n{cure}"
        )


def require_extra(package: str, extra: str, what: str) -> ModuleType:
    """The package, where all that its extra needs is installed."""
    needed = install.requirements(install.ROOT, extra) or [package]
    require_installed(needed, what)
    return import_module(package)


def require_peft() -> ModuleType:
    """The peft package, for LoRA."""
    return require_extra("peft", "lora", "LoRA needs the package peft")


def pasted(command: str, *words: str | Path) -> str:
    """A command of the course, to be pasted."""
    return f"{install.call(command)} {install.quoted(*words)}"
