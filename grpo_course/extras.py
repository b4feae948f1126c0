"""Packages that few people need: loaded when they are asked for. Standard library only.

Each belongs to an extra of pyproject.toml.
"""

from importlib import import_module
from types import ModuleType

INSTALL = "python -m pip install -c constraints.txt -e"


class MissingExtra(ImportError):
    """A package of an extra is not installed; the text says how to install it."""


def require_extra(package: str, extra: str, what: str) -> ModuleType:
    """The package. Raises MissingExtra with the cure where it is not installed.

    `what` begins the sentence: "LoRA needs the package peft".
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as problem:
        if problem.name != package:
            raise
        raise MissingExtra(
            f'{what}, which is not installed. Install the extra: {INSTALL} ".[{extra}]"'
        ) from None
