"""The words of the generated problems: who, what, and how the story is told.

A story is an opening with the first number, one sentence for each operation, and the
question, before or after. Sentences of one scene fit together in any mix, so problems
of any number of steps are told in many ways.
"""

import random
from dataclasses import dataclass

NAMES = ("Mia", "Tom", "Ana", "Ben", "Sue", "Leo")
THINGS = ("apples", "coins", "cards", "pens", "eggs", "stars")
QUESTION_FIRST = 0.25  # the share of the stories that open with their question


@dataclass(frozen=True)
class Scene:
    """Sentences with the places {name}, {things} and {n}, a number."""

    openings: tuple[str, ...]
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    times: tuple[str, ...]
    questions: tuple[str, ...]

    def sentences(self) -> set[str]:
        """All of them."""
        told = self.openings + self.plus + self.minus + self.times
        return {*told, *self.questions}

    def tell(
        self,
        rng: random.Random,
        operations: tuple[str, ...],
        operands: tuple[int, ...],
    ) -> str:
        """A whole word problem. There is one operand more than operations."""
        words = {"name": rng.choice(NAMES), "things": rng.choice(THINGS)}
        events = {"+": self.plus, "-": self.minus, "*": self.times}
        choices = [self.openings, *(events[operation] for operation in operations)]
        told = [
            rng.choice(sentences).format(n=number, **words)
            for sentences, number in zip(choices, operands, strict=True)
        ]
        question = rng.choice(self.questions).format(**words)
        first = rng.random() < QUESTION_FIRST
        return " ".join([question, *told] if first else [*told, question])


TRAINING_SCENES = (
    Scene(
        openings=(
            "{name} has {n} {things}.",
            "{name} starts with {n} {things}.",
            "At first {name} has {n} {things}.",
        ),
        plus=(
            "{name} gets {n} more.",
            "Then {name} finds {n}.",
            "{name} buys {n}.",
            "Then {name} is given {n} more.",
        ),
        minus=(
            "{name} loses {n}.",
            "Then {name} sells {n}.",
            "{name} gives away {n}.",
            "Then {name} gives {n} to a friend.",
        ),
        times=("Then {name} has {n} times as many.",),
        questions=(
            "How many {things} does {name} have now?",
            "How many does {name} have in all?",
            "So how many {things} has {name}?",
        ),
    ),
    Scene(
        openings=(
            "There are {n} {things} in a box.",
            "A box holds {n} {things}.",
            "{name} puts {n} {things} in a box.",
        ),
        plus=(
            "{name} puts in {n} more.",
            "Then {n} more are put in.",
            "{name} adds {n} to the box.",
        ),
        minus=(
            "{name} takes out {n}.",
            "Then {n} are taken out.",
            "{name} takes {n} away.",
        ),
        times=("Then there are {n} times as many.",),
        questions=(
            "How many {things} are in the box?",
            "How many {things} does the box hold now?",
            "How many are there now?",
        ),
    ),
)

# Every word of these stands in a training sentence too; the sentences do not.
HELD_OUT_SCENES = (
    Scene(
        openings=("{name} has {n} {things} at first.",),
        plus=("{name} finds {n} more.", "Then {name} buys {n} more."),
        minus=("{name} sells {n}.", "Then {name} gives {n} away."),
        times=("{name} has {n} times as many now.",),
        questions=("How many {things} does {name} have in all?",),
    ),
    Scene(
        openings=("There is a box. {name} puts {n} {things} in.",),
        plus=("{name} adds {n} more to the box.", "{n} more are put in the box."),
        minus=("Then {name} takes {n} out.", "{n} are taken away."),
        times=("Now there are {n} times as many in the box.",),
        questions=("How many {things} are there in the box now?",),
    ),
)
