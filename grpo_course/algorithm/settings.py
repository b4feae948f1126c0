"""Settings that check themselves: one line each for name, type, range, default, help.

`@settings` makes a frozen dataclass whose fields pydantic checks; what it finds is said
in plain words. The comment beside a field is its help on the command line (tyro).
"""

from collections.abc import Callable, Iterable
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform

from pydantic import AfterValidator, ConfigDict, Field, ValidationError
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
        made = dataclass(frozen=True, kw_only=kw_only, config=STRICT)(cls)
        made.__init__ = in_plain_words(made)
        return made

    return make


def in_plain_words(made: type) -> Callable[..., None]:
    """The `__init__` that pydantic made, with errors for people."""
    checked = made.__init__

    @wraps(checked)
    def init(self: Any, *args: Any, **given: Any) -> None:
        try:
            checked(self, *args, **given)
        except ValidationError as problem:
            raise ValueError(in_words(problem, made)) from None

    return init


def one_of(known: Iterable[str]) -> Any:
    """The type of a field that holds a name; `known` may grow later on."""

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(choices(known))
        return name

    return Annotated[str, AfterValidator(check)]


def in_words(problem: ValidationError, made: type) -> str:
    """What pydantic found, a sentence for each field."""
    return " ".join(sentence(error, made) for error in problem.errors())


def sentence(error: Any, made: type) -> str:
    """One finding: the field, what was given, what is allowed."""
    name = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "unexpected_keyword_argument":
        return unknown_setting(name, made)
    given = f"{name}={error['input']!r}"
    if error["type"] == "value_error":  # of a check of ours
        reason = str(error["ctx"]["error"])
        return f"{given} {reason}" if name else reason
    allowed = error["msg"].removeprefix("Input should be ")
    hints = {field.name: str(field.type) for field in fields(made)}
    or_none = ", or None" if "None" in hints.get(name, "") else ""
    return f"{given}, but it must be {allowed}{or_none}."


def unknown_setting(name: str, made: type) -> str:
    """A name that is no field, and the field that may have been meant."""
    known = [field.name for field in fields(made)]
    close = get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{made.__name__} has no {name!r}.{hint} Known: {', '.join(known)}."
