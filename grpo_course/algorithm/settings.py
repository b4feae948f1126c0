"""Settings that check themselves: one line each for name, type, range, default, help.

`@settings` makes a frozen dataclass whose fields pydantic checks; what it finds is said
in plain words. The comment beside a field is its help on the command line (tyro).
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar, dataclass_transform

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from grpo_course.algorithm.validation import choices

Made = TypeVar("Made", bound=type)
# No "1" for 1 and no 1 for True, no name that nobody reads, no NaN.
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(Field,)
)
def settings(*, kw_only: bool = True) -> Callable[[Made], Made]:
    """A class of annotated fields as checked, frozen settings, passed by name.

    The class raises ValueError: for a name that is not known, a wrong type, a value out
    of range, and what its `__post_init__` refuses.
    """

    def make(cls: Made) -> Made:
        made: Any = dataclass(frozen=True, kw_only=kw_only, config=STRICT)(cls)
        made.__init__ = in_plain_words(made, kw_only)
        return made

    return make


def in_plain_words(made: Any, kw_only: bool) -> Callable[..., None]:
    """The `__init__` that pydantic made, with errors for people."""
    checked = made.__init__

    @wraps(checked)
    def init(self: Any, *args: Any, **given: Any) -> None:
        if kw_only and args:  # pydantic would take it for the first field
            raise ValueError(
                f"{made.__name__}({', '.join(map(repr, args))}): settings are passed "
                f"by name. Known: {', '.join(names_of(made))}."
            )
        try:
            checked(self, *args, **given)
        except ValidationError as problem:
            raise ValueError(in_words(problem, made)) from None

    return init


def one_of(known: Iterable[str]) -> BeforeValidator:
    """For a field that is one of some names: Annotated[str, one_of(known)]."""

    def check(name: object) -> object:
        if not isinstance(name, str) or name not in known:
            raise ValueError(choices(known))
        return name

    return BeforeValidator(check)


def in_words(problem: ValidationError, made: type) -> str:
    """What pydantic found, a sentence for each field."""
    return " ".join(sentence(error, made) for error in problem.errors())


def names_of(made: Any) -> list[str]:
    """The names of all settings."""
    return [field.name for field in fields(made)]


def sentence(error: Any, made: Any) -> str:
    """One finding: the field, what was given, what is allowed."""
    kind, value, known = error["type"], error["input"], names_of(made)
    name = error["loc"][0] if error["loc"] else ""
    if kind == "unexpected_positional_argument":
        return f"{made.__name__} takes {len(known)} settings; {value!r} is one more."
    name = known[name] if isinstance(name, int) else name
    if kind == "unexpected_keyword_argument":
        return unknown_setting(name, made)
    if kind == "missing":
        return f"{made.__name__} needs {name}: {made.__name__}({name}=...)."
    if kind == "value_error":  # of a check of ours
        reason = str(error["ctx"]["error"])
        return f"{name}={value!r} {reason}" if name else reason
    allowed = error["msg"].removeprefix("Input should be ")
    hints = {field.name: str(field.type) for field in fields(made)}
    or_none = ", or None" if "None" in hints.get(name, "") else ""
    return f"{name}={value!r}, but it must be {allowed}{or_none}."


def unknown_setting(name: str, made: type) -> str:
    """A name that is no field, and the field that may have been meant."""
    known = names_of(made)
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{made.__name__} has no {name!r}.{hint} Known: {', '.join(known)}."
