"""TRL is an optional extra: load it when it is asked for, and say how to get it."""

from importlib import import_module
from types import ModuleType

CURE = 'Install the extra: python -m pip install -c constraints.txt -e ".[scale]"'


def require_trl() -> ModuleType:
    """The trl package. Raises ImportError with the cure where it is not installed."""
    try:
        return import_module("trl")
    except ModuleNotFoundError as problem:
        if problem.name != "trl":
            raise
        raise ImportError(f"this needs TRL, which is not installed. {CURE}") from None
