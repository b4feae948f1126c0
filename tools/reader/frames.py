"""The scenes that stories are set in, and the frames of their sentences.

Each file of `wording/` is a scene. A line that starts with `%` draws words for a whole
story or sets a number; a line without indent names a role; the lines below it are the
patterns of that role, and `= people` takes up those of another scene. A pattern with
each choice in [brackets] made in every way gives the frames of a role: a fifth of them
is held out, and training never has it.
"""

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from zlib import crc32

FOLDER = Path(__file__).parent / "wording"
COMMON = "common"  # its roles are every scene's that has none of its own
DEFAULT = "people"
# Decoration that many patterns share.
SHORTHAND = {
    "<lead>": "(|||Then |Later |After that, |The next day, |Soon |A little later, )",
    "<when>": "(||| today| at the {place}| in the morning| on {day}| at school)",
}
NUMBERS = ("share", "largest", "steps")
Words = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Scene:
    """Where a story is set: its patterns by role, and the words it may be about."""

    name: str
    patterns: Mapping[str, tuple[str, ...]]
    words: tuple[tuple[Words, Words], ...] = ()  # names of places, and what they may be
    share: float = 1.0  # of the stories, beside the shares of the other scenes
    largest: float = 1000  # number of a story
    steps: float = 4  # at most

    def draw(self, rng: random.Random) -> dict[str, str]:
        """The words of one story: for each place of the scene's own, what stands there.

        Names in one line never get the same words.
        """
        drawn: dict[str, str] = {}
        for names, choices in self.words:
            for forms, chosen in zip(
                names, rng.sample(choices, len(names)), strict=True
            ):
                drawn |= dict(zip(forms, chosen, strict=True))
        return drawn


@cache
def scenes() -> dict[str, Scene]:
    """Every scene by its name, the common roles in each."""
    files = sorted(FOLDER.glob("*.txt"))
    read = {path.stem: read_scene(path.stem, path.read_text("utf-8")) for path in files}
    common = read[COMMON].patterns
    for name, scene in read.items():
        told = {
            role: taken_up(read, role, lines) for role, lines in scene.patterns.items()
        }
        read[name] = replace(scene, patterns={**common, **told})
    del read[COMMON]
    return read


def taken_up(
    read: Mapping[str, Scene], role: str, lines: tuple[str, ...]
) -> tuple[str, ...]:
    """The patterns of a role, with those of the scenes that it takes them from."""
    made: list[str] = []
    for line in lines:
        taken = line.startswith("= ")
        made.extend(
            taken_up(read, role, read[line[2:]].patterns[role]) if taken else [line]
        )
    return tuple(made)


def read_scene(name: str, text: str) -> Scene:
    """A scene as its file tells it."""
    patterns: dict[str, list[str]] = {}
    words: list[tuple[Words, Words]] = []
    numbers: dict[str, float] = {}
    role = ""
    for line in filter(str.strip, text.splitlines()):
        if line.startswith("#"):
            continue
        if line.startswith("%"):
            left, _, right = (part.strip() for part in line[1:].partition("="))
            if left in NUMBERS:
                numbers[left] = float(right)
            else:
                words.append((forms_of(left.split()), forms_of(right.split("|"))))
        elif line[0] != " ":
            role = line.strip()
        else:
            patterns.setdefault(role, []).append(in_full(line.strip()))
    told = {role: tuple(lines) for role, lines in patterns.items()}
    return Scene(name, told, tuple(words), **numbers)


def forms_of(choices: list[str]) -> Words:
    """Each choice with its forms, which a slash parts: "pen/pens"."""
    return tuple(tuple(choice.strip().split("/")) for choice in choices)


def in_full(pattern: str) -> str:
    """A pattern with its shorthand written out."""
    for short, long in SHORTHAND.items():
        pattern = pattern.replace(short, long)
    return pattern


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
