"""Guess, then see: `predict` asks, `reveal` answers, `guesses` counts."""

import textwrap
from typing import Any

from grpo_course.classroom import record

Choice = str | float
WIDTH = 75  # longer lines wrap in JupyterLab and scroll on the site

# The questions asked in this kernel, by their words.
_session: dict[str, "Guess"] = {}


class Guess:
    """A question with its choices: what was guessed, and what came out."""

    def __init__(self, question: str, choices: tuple[Choice, ...]):
        self.question, self.choices = question, choices
        before = record.kept("guesses").get(question, {}).get("guess")
        self.guess: Choice | None = before if before in choices else None
        self.answer: Choice | None = None
        self.buttons: Any = None  # ToggleButtons, once they are shown

    def ask(self) -> None:
        """Show the choices as buttons; as plain text where nobody can click."""
        if not record.learner_is_here():
            print(self.as_text())
            return
        from IPython.display import display
        from ipywidgets import ToggleButtons

        self.buttons = ToggleButtons(
            options=[(label(choice), choice) for choice in self.choices],
            value=self.guess,
            style={"button_width": "auto"},
            icons=self.checks(),
        )
        self.buttons.observe(self.take, "value")
        # A front end without widgets shows the text.
        shown = self.buttons._repr_mimebundle_() | {"text/plain": self.as_text()}
        display(shown, raw=True)

    def checks(self) -> list[str]:
        """A check on what was chosen: a dark theme hardly shows it otherwise."""
        return ["check" if each == self.guess else "" for each in self.choices]

    def as_text(self) -> str:
        """The question, and its choices in one line or in one line each."""
        names = [label(choice) for choice in self.choices]
        line = "  " + "   ".join(f"( ) {name}" for name in names)
        rows = [line] if len(line) <= WIDTH else [f"  ( ) {name}" for name in names]
        return "\n".join([*textwrap.wrap(self.question, WIDTH), *rows])

    def take(self, change: dict) -> None:
        """Note the button that was clicked."""
        self.guess = change["new"]
        self.buttons.icons = self.checks()
        record.keep("guesses", self.question, {"guess": self.guess})

    def reveal(self, answer: Choice) -> None:
        """Print what came out beside what was guessed.

        Where the choices are numbers, the answer is any number, and the choice nearest
        to it counts. An answer that is none of the choices comes of what a learner has
        changed; where outputs are stored or compared it raises ValueError instead.
        """
        if record.learner_is_here() and not self.offers(answer):
            told = "none of the choices. What did you change?"
            print(f"Came out: {label(answer)}, {told}")
            return
        self.answer = self.nearest(answer)
        if self.buttons is not None:
            self.buttons.disabled = True  # run the question again to guess again
        told = f"Came out: {label(answer)}"
        if label(self.answer) != label(answer):
            told += f", nearest to {label(self.answer)}"
        if self.guess is None:
            print(f"{told}.")
            return
        kept = {"guess": self.guess, "answer": self.answer}
        record.keep("guesses", self.question, kept)
        right = self.guess == self.answer
        print(f"{told}, as you guessed." if right else f"{told}. {self.guessed}")

    @property
    def guessed(self) -> str:
        """The guess in words."""
        return f"You guessed: {label(self.guess)}."

    def offers(self, answer: Choice) -> bool:
        """Whether the answer is a choice, or a number among numbers."""
        words = any(isinstance(each, str) for each in (answer, *self.choices))
        return answer in self.choices or not words

    def nearest(self, answer: Choice) -> Choice:
        """The choice that an answer is, or the number nearest to it."""
        if not self.offers(answer):
            raise ValueError(
                f"answer={answer!r} is no choice of predict({self.question!r}). "
                f"Reveal one of: {', '.join(map(repr, self.choices))}."
            )
        if answer in self.choices:
            return answer
        here = float(answer)  # `offers` has seen that all are numbers
        return min(self.choices, key=lambda choice: abs(float(choice) - here))


def predict(question: str, *choices: Choice) -> Guess:
    """Ask for a guess; the cell that computes the result calls `reveal` on it.

    `choices` are words, or numbers of which the nearest counts. Raises ValueError if
    there are fewer than two, or the same one twice.
    """
    if len(set(choices)) < max(2, len(choices)):
        raise ValueError(
            f"choices={choices}: a guess needs two or more that differ, "
            'as in predict("which way?", "up", "down").'
        )
    guess = _session[question] = Guess(question, choices)
    guess.ask()
    return guess


def guesses() -> None:
    """Print how many guesses of this notebook were right, and the others to look at."""
    made = [
        g for g in _session.values() if g.guess is not None and g.answer is not None
    ]
    if not made:
        print("No guess was made in this notebook yet.")
        return
    wrong = [guess for guess in made if guess.guess != guess.answer]
    told = f"{len(made) - len(wrong)} of {len(made)} guesses right"
    print(f"{told}; the ones to look at again:" if wrong else f"{told}.")
    for guess in wrong:
        line = f"{guess.question} {guess.guessed} It was: {label(guess.answer)}."
        print(textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  "))


def label(choice: Choice | None) -> str:
    """A choice as it is shown: a number to three digits."""
    if choice is None or isinstance(choice, str):
        return choice or ""
    return f"{choice:.3g}" if abs(choice) < 1000 else f"{choice:,.0f}"
