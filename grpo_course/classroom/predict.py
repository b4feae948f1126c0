"""Guess, then see: `predict` asks, `reveal` answers, `guesses` counts."""

import textwrap
from typing import Any

from grpo_course.classroom import record
from grpo_course.classroom.screen import WIDTH, show_widget

Choice = str | float

_session: dict[str, "Guess"] = {}  # what was asked in this kernel, by its words


def predict(question: str, *choices: Choice | dict[str, float]) -> "Guess":
    """Ask for a guess; the cell that computes the result calls `reveal` on it.

    `choices` are words, or numbers of which the nearest counts, or one dict of words
    with the number that each stands for: {"never": 0, "half the time": 0.5, "always":
    1}. Raises ValueError if there are fewer than two, or the same one twice.
    """
    numbers: dict[Any, float] = {}
    if len(choices) == 1 and isinstance(choices[0], dict):
        numbers = choices[0]
    offered: tuple[Any, ...] = tuple(numbers) or choices
    if len(set(offered)) < max(2, len(offered)):
        raise ValueError(
            f"choices={choices}: a guess needs two or more that differ, "
            'as in predict("which way?", "up", "down").'
        )
    guess = _session[question] = Guess(question, offered, numbers)
    guess.ask()
    return guess


def guesses() -> None:
    """Print how many guesses of this notebook were right, and the others to look at."""
    made = [g for g in _session.values() if None not in (g.guess, g.answer)]
    if not made:
        print("No guess was made in this notebook yet.")
        return
    wrong = [guess for guess in made if guess.guess != guess.answer]
    count = f"{len(made) - len(wrong)} of {len(made)} guesses right"
    print(f"{count}; the ones to look at again:" if wrong else f"{count}.")
    for each in wrong:
        guessed, came = label(each.guess), label(each.answer)
        line = f"{each.question} You guessed: {guessed}. It was: {came}."
        print(textwrap.fill(line, WIDTH, initial_indent="- ", subsequent_indent="  "))


class Guess:
    """A question with its choices: what was guessed, and what came out."""

    def __init__(
        self, question: str, choices: tuple[Choice, ...], numbers: dict[str, float]
    ):
        self.question, self.choices, self.numbers = question, choices, numbers
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
        if record.learner_is_here():
            self.buttons = show_widget(self.make, {"text/plain": text})
        if self.buttons is None:
            print(text)

    def make(self, widgets: Any) -> Any:
        """The buttons, made with ipywidgets."""
        buttons = widgets.ToggleButtons(
            options=[(label(choice), choice) for choice in self.choices],
            value=self.guess,
            style={"button_width": "auto"},
            icons=self.checks(),
        )
        buttons.observe(self.take, "value")
        return buttons

    def take(self, change: dict) -> None:
        """Note the button that was clicked."""
        self.guess = change["new"]
        self.buttons.icons = self.checks()
        record.keep("guesses", self.question, {"guess": self.guess})

    def checks(self) -> list[str]:
        """A check on what was chosen: a dark theme hardly shows it otherwise."""
        return ["check" if each == self.guess else "" for each in self.choices]

    def reveal(self, result: Any) -> None:
        """Print what came out beside what was guessed.

        `result` is one of the choices, or it finds its own: a number the nearest one,
        True or False "yes" or "no", a dict of results by name the largest one's name.
        A tensor with one element is its number. A result that is none of the choices
        comes of what a learner has changed; where outputs are stored or compared it
        raises ValueError instead.
        """
        if isinstance(result, dict):
            result = max(result, key=lambda name: plain(result[name]))
        result = plain(result)
        if isinstance(result, bool):
            result = "yes" if result else "no"
        line = f"Came out: {label(result)}"
        choice = self.choice_of(result)
        if choice is None:
            if record.learner_is_here():
                print(f"{line}, none of the choices. What did you change?")
                return
            raise ValueError(
                f"result={result!r} is no choice of predict({self.question!r}). "
                f"Reveal one of: {', '.join(map(repr, self.choices))}."
            )
        self.answer = choice
        if self.buttons is not None:
            self.buttons.disabled = True  # run the question again to guess again
        if choice in self.numbers:
            line = f"Came out: {choice}"
            if result not in (choice, self.numbers[choice]):
                line += f" ({label(result)})"
        elif label(choice) != label(result):
            line += f", nearest to {label(choice)}"
        if self.guess is None:
            print(f"{line}.")
            return
        kept = {"guess": self.guess, "answer": choice}
        record.keep("guesses", self.question, kept)
        missed = f". You guessed: {label(self.guess)}."
        print(line + (", as you guessed." if self.guess == choice else missed))

    def choice_of(self, result: Choice) -> Choice | None:
        """The choice that a result is, or that with the nearest number; else None."""
        by_choice: dict[Any, Any] = self.numbers or {
            each: each for each in self.choices
        }
        if result in by_choice:
            return result
        if any(isinstance(each, str) for each in (result, *by_choice.values())):
            return None
        return min(
            by_choice, key=lambda choice: abs(float(by_choice[choice]) - float(result))
        )


def plain(result: Any) -> Any:
    """The number that a tensor with one element holds; anything else as it is."""
    return result.item() if hasattr(result, "item") else result


def label(choice: Choice | None) -> str:
    """A choice as it is shown: a number to three digits."""
    if choice is None or isinstance(choice, str):
        return choice or ""
    return f"{choice:.3g}" if abs(choice) < 1000 else f"{choice:,.0f}"
