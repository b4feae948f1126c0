"""A question to a whole class: large, with the hands counted as bars."""

from collections.abc import Sequence
from html import escape
from typing import Any

from grpo_course.classroom import record

BAR = 30  # characters of the longest bar


def poll(question: str, *choices: str, counts: Sequence[int] | None = None) -> None:
    """Show a question large, and how many of a class are for each choice.

    A button for each choice adds a hand as it is raised, and one beside it takes it
    back. `counts` gives the hands at once, one number for each choice: then there are
    no buttons. Raises ValueError if a choice is missing or has no count.
    """
    hands = list(counts if counts is not None else [0] * len(choices))
    if not choices or len(hands) != len(choices) or min(hands) < 0:
        raise ValueError(
            f"counts={counts} for {len(choices)} choices: give a number of hands for "
            'each, as in poll("which way?", "up", "down", counts=(9, 3)).'
        )
    if not record.learner_is_here():
        print(as_text(question, choices, hands))
        return
    from IPython.display import display
    from ipywidgets import HTML, VBox

    plain = as_text(question, choices, hands)
    chart = HTML(as_html(question, choices, hands))
    if counts is not None:
        display({"text/html": chart.value, "text/plain": plain}, raw=True)
        return
    rows = [buttons(k, question, choices, hands, chart) for k in range(len(choices))]
    shown = VBox([chart, *rows])._repr_mimebundle_() | {"text/plain": plain}
    display(shown, raw=True)


def buttons(
    place: int, question: str, choices: Sequence[str], hands: list[int], chart: Any
) -> Any:
    """The buttons that add a hand for one choice and take one back."""
    from ipywidgets import Button, HBox

    def change(by: int) -> None:
        hands[place] = max(0, hands[place] + by)
        chart.value = as_html(question, choices, hands)

    more = Button(description=str(choices[place]), layout={"width": "auto"})
    less = Button(description="−1", layout={"width": "auto"})
    more.on_click(lambda _: change(1))
    less.on_click(lambda _: change(-1))
    return HBox([more, less])


def as_text(question: str, choices: Sequence[str], hands: Sequence[int]) -> str:
    """The question, and a bar of characters for each choice."""
    width, most = max(len(str(choice)) for choice in choices), max(*hands, 1)
    rows = [
        f"  {choice!s:<{width}}  {count:3} {'#' * round(BAR * count / most)}"
        for choice, count in zip(choices, hands, strict=True)
    ]
    return "\n".join([question, *(row.rstrip() for row in rows)])


def as_html(question: str, choices: Sequence[str], hands: Sequence[int]) -> str:
    """The same, to be read from the last row."""
    most = max(*hands, 1)
    bar = '<div style="background: #0072b2; height: 1em; width: {}em"></div>'
    cells = [
        (escape(str(choice)), str(count), bar.format(round(16 * count / most, 1)))
        for choice, count in zip(choices, hands, strict=True)
    ]
    rows = "".join(
        f"<tr>{''.join(map('<td>{}</td>'.format, row))}</tr>" for row in cells
    )
    title = f'<div style="font-size: 1.8em; line-height: 1.3">{escape(question)}</div>'
    return f'{title}<table style="font-size: 1.4em">{rows}</table>'
