"""The scenes that stories are set in, and the patterns of their sentences.

Each file of `wording/` is a scene. A line that starts with `%` draws words for a whole
story or sets a number; a line without indent names a role; the lines below it are the
patterns of that role, and `= people` takes up those of another scene.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

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
