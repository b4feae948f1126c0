"""The frames: which there are, and which training never has."""

import re
from collections import Counter
from functools import cache
from itertools import product
from zlib import crc32

from grpo_course.stories.scenes import DEFAULT, scenes

HELD_OUT_SHARE = 0.2  # of the frames of each role


def expand(pattern: str, opening: str, closing: str) -> list[str]:
    """A pattern with each choice between the two brackets made in every way."""
    left, right = re.escape(opening), re.escape(closing)
    parts = re.split(rf"{left}([^{right}]*){right}", pattern)
    choices = [p.split("|") if i % 2 else [p] for i, p in enumerate(parts)]
    return ["".join(made) for made in product(*choices)]


@cache
def frames(role: str, scene: str = DEFAULT) -> tuple[str, ...]:
    """All frames of a role in a scene; their decoration is still to be chosen."""
    patterns = scenes()[scene].patterns[role]
    made = [frame for pattern in patterns for frame in expand(pattern, "[", "]")]
    return tuple(dict.fromkeys(made))


@cache
def roles() -> tuple[tuple[str, str], ...]:
    """Each role of each scene, and the scene."""
    return tuple(
        (role, name) for name, scene in scenes().items() for role in scene.patterns
    )


@cache
def all_frames() -> frozenset[str]:
    """Every frame there is."""
    return frozenset(frame for role in roles() for frame in frames(*role))


@cache
def held_out_frames() -> frozenset[str]:
    """A fifth of the frames of each role: training never has these.

    Each word of theirs stands in a frame that training has, so they ask a model to
    read a sentence it never saw, not a word. The choice is the same on every machine.
    """
    left = Counter(word for frame in all_frames() for word in words_of(frame))
    held: set[str] = set()
    for role in roles():
        made = sorted(frames(*role), key=lambda frame: crc32(frame.encode()))
        wanted = round(HELD_OUT_SHARE * len(made)) or len(made) > 1
        for frame in made:
            enough = sum(f in held for f in made) >= wanted
            if enough or frame in held or any(left[w] < 2 for w in words_of(frame)):
                continue
            held.add(frame)
            left.subtract(words_of(frame))
    return frozenset(held)


def words_of(frame: str) -> set[str]:
    """The words of a frame, places and decoration left out."""
    bare = re.sub(r"\{[^}]*\}|\([^)]*\)", " ", frame)
    return set(re.findall(r"[a-z]+", bare.lower()))


@cache
def own_frames(role: str, scene: str, unseen: bool) -> tuple[str, ...]:
    """The frames of a role that a split tells with: the held-out ones, or the rest."""
    made, held = frames(role, scene), held_out_frames()
    return tuple(frame for frame in made if (frame in held) == unseen)
