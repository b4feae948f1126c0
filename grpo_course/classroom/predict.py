"""Guess, then see: `predict` asks, `reveal` answers, `guesses` counts."""

import textwrap
from typing import Any

from grpo_course.classroom import record

Choice = str | float
WIDTH = 75  # longer lines wrap in JupyterLab and scroll on the site

_session: dict[str, "Guess"] = {}  # what was asked in this kernel, by its words


def predict(question: str, *choices: Choice) -> "Guess":
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
    made = [g for g in _session.values() if None not in (g.guess, g.answer)]
    if not made:
        print("No guess was made in this notebook yet.")
        return
    wrong = [guess for guess in made if guess.guess != guess.answer]
    told = f"{len(made) - len(wrong)} of {len(made)} guesses right"
    print(f"{told}; the ones to look at again:" if wrong else f"{told}.")
    for each in wrong:
        guessed, came = label(each.guess), label(each.answer)
        line = f"{each.question} You guessed: {guessed}. It was: {came}."
        print(textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  "))


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
        names = [f"( ) {label(choice)}" for choice in self.choices]
        fits = len("   ".join(names)) + 2 <= WIDTH
        rows = ["   ".join(names)] if fits else names
        lines = textwrap.wrap(self.question, WIDTH) + [f"  {row}" for row in rows]
        text = "\n".join(lines)
        if not record.learner_is_here():
            print(text)
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
        display(self.buttons._repr_mimebundle_() | {"text/plain": text}, raw=True)

    def take(self, change: dict) -> None:
        """Note the button that was clicked."""
        self.guess = change["new"]
        self.buttons.icons = self.checks()
        record.keep("guesses", self.question, {"guess": self.guess})

    def checks(self) -> list[str]:
        """A check on what was chosen: a dark theme hardly shows it otherwise."""
        return ["check" if each == self.guess else "" for each in self.choices]

    def reveal(self, answer: Choice) -> None:
        """Print what came out beside what was guessed.

        Where the choices are numbers, the answer is any number, and the choice nearest
        to it counts. An answer that is none of the choices comes of what a learner has
        changed; where outputs are stored or compared it raises ValueError instead.
        """
        told = f"Came out: {label(answer)}"
        nearest = self.nearest(answer)
        if nearest is None:
            if record.learner_is_here():
                print(f"{told}, none of the choices. What did you change?")
                return
            raise ValueError(
                f"answer={answer!r} is no choice of predict({self.question!r}). "
                f"Reveal one of: {', '.join(map(repr, self.choices))}."
            )
        self.answer = nearest
        if self.buttons is not None:
            self.buttons.disabled = True  # run the question again to guess again
        if label(nearest) != label(answer):
            told += f", nearest to {label(nearest)}"
        if self.guess is None:
            print(f"{told}.")
            return
        kept = {"guess": self.guess, "answer": nearest}
        record.keep("guesses", self.question, kept)
        missed = f". You guessed: {label(self.guess)}."
        print(told + (", as you guessed." if self.guess == nearest else missed))

    def nearest(self, answer: Choice) -> Choice | None:
        """The choice that an answer is, or the number nearest to it; else None."""
        if answer in self.choices:
            return answer
        if any(isinstance(each, str) for each in (answer, *self.choices)):
            return None
        return min(self.choices, key=lambda choice: abs(float(choice) - float(answer)))


def label(choice: Choice | None) -> str:
    """A choice as it is shown: a number to three digits."""
    if choice is None or isinstance(choice, str):
        return choice or ""
    return f"{choice:.3g}" if abs(choice) < 1000 else f"{choice:,.0f}"
