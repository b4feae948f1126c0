"""TRL is an optional extra: load it when it is asked for, and say how to get it."""

from types import ModuleType

from grpo_course.extras import require_extra


def require_trl() -> ModuleType:
    """The trl package. Raises MissingExtra with the cure where it is not installed."""
    return require_extra("trl", "scale", "this needs TRL")
