"""Who and what one story is about, and what stands in the places of its frames."""

import random
from collections.abc import Callable

from grpo_course.stories import words
from grpo_course.stories.scenes import Scene

Fill = dict[str, Callable[[], str]]  # place: what stands there
# How often a word is left out that the story has had, and a pronoun names a person.
SHORTER, PRONOUN = 0.4, 0.7


class Cast:
    """The people and things of a story, and which of them were named so far."""

    def __init__(
        self, rng: random.Random, scene: Scene, *, third_person: bool = False
    ) -> None:
        self.rng, self.scene = rng, scene
        self.people = words.draw_people(rng, third_person=third_person)
        self.things, self.others = words.draw_things(rng)
        self.drawn = scene.draw(rng)
        self.own_things = "things" in self.drawn  # the scene's, which must be named
        self.things = self.drawn.get("things", self.things)
        self.things_named = False
        self.people_named: set[str] = set()

    def who(self, letter: str, case: int) -> str:
        """A person by name, or by pronoun where nobody else was named so far.

        `case` is a place in words.PEOPLE: 1 he, 2 him, 3 his.
        """
        person = self.people["ABC".index(letter)]
        known = self.people_named == {letter}
        self.people_named.add(letter)
        if person[1] == person[0] or (known and self.rng.random() < PRONOUN):
            return person[case]
        ending = "'" if person[0].endswith("s") else "'s"
        return person[0] + (ending if case == 3 else "")

    def name_things(self) -> str:
        """What is counted."""
        self.things_named = True
        return self.things

    def may_leave_out(self) -> bool:
        """Whether the things go without saying; a scene's own never do."""
        known = self.things_named and not self.own_things
        return known and self.rng.random() < SHORTER

    def count(self, number: int, word: str = "") -> str:
        """A number with the things it counts; they may be left out once named."""
        told = f"{number} {word}".strip()
        return told if self.may_leave_out() else f"{told} {self.name_things()}"

    def numbers(self, numbers: tuple[int, ...], first: int, last: int) -> Fill:
        """What stands where a frame tells a number."""
        return {
            "n": lambda: self.count(last),
            "more": lambda: self.count(last, "more"),
            "bare": lambda: str(last),
            "many": lambda: str(first),
            "also": lambda: str(numbers[1]),
            "third": lambda: str(numbers[2]),
            "number": lambda: str(last),
            "times": lambda: "twice" if last == 2 else f"{last} times",
        }

    def words(self, first: int) -> Fill:
        """What stands where a frame tells of things, times and places."""
        rng = self.rng
        return {
            "holders": lambda: f"{first} {words.pick(rng, words.HOLDERS)}",
            "members": lambda: f"{first} {words.pick(rng, words.MEMBERS)}",
            "goods": lambda: f"{first} {words.pick(rng, words.GOODS)}",
            "things": self.name_things,
            "things?": lambda: "" if self.may_leave_out() else self.name_things(),
            "them": lambda: (
                "them" if self.things_named else f"the {self.name_things()}"
            ),
            "place": lambda: words.pick(rng, words.PLACES, ending=""),
            "day": lambda: rng.choice(words.DAYS),
            "others": lambda: self.others,
            "friend": lambda: rng.choice(words.FRIENDS),
        }

    def own_words(self) -> Fill:
        """What stands in the places that the scene alone has."""
        own = {name: lambda text=text: text for name, text in self.drawn.items()}
        return {name: told for name, told in own.items() if name != "things"}

    def persons(self, swap: bool, letters: str) -> dict[str, Callable[[], str]]:
        """Who stands in each place of a frame; with `swap` B has the larger number."""
        one, other = letters[0], letters[1]
        return {
            "A": lambda: self.who(one, 1),
            "A.": lambda: self.who(one, 2),
            "A's": lambda: self.who(one, 3),
            "B": lambda: self.who(other, 1),
            "B.": lambda: self.who(other, 2),
            "B's": lambda: self.who(other, 3),
            "C": lambda: self.who("C", 1),
            "larger": lambda: self.people[swap][0],
            "smaller": lambda: self.people[not swap][0],
        }
