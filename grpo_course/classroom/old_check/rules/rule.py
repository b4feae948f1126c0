"""One rule: a misconception, and the pieces of code that show it."""

from dataclasses import dataclass

NAMES = {
    "REDUCE": ("sum", "mean", "amax", "amin", "std", "var", "all", "any"),
    "ALONG": ("softmax", "log_softmax", "cumsum", "sort"),
}


@dataclass(frozen=True)
class Rule:
    """One misconception, and the pieces of code that show it."""

    kind: str
    words: str
    pairs: tuple[str, ...]


def rule(kind: str, words: str, *pairs: str) -> Rule:
    """A pair is written `pattern => replacement`."""
    return Rule(kind, words, pairs)
