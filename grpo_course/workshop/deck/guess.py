"""A guess on a slide: the question, and a card for each choice with its letter."""

import math

from nbformat import NotebookNode

from grpo_course.workshop import prediction_cells
from grpo_course.workshop.deck.heights import (
    ACROSS,
    ASKED_COLUMNS,
    ASKED_LINE,
    CARD,
    GAP,
)


def question(cell: NotebookNode) -> tuple[str, int]:
    """A prediction as text, and its height."""
    told, high = [], 0
    for asked, choices in zip(
        prediction_cells.questions([cell]),
        prediction_cells.choices(cell).values(),
        strict=True,
    ):
        side = beside_each_other(choices)
        rows = "\n".join(["", f"**{asked}**", "", *(f"- {each}" for each in choices)])
        told.append(f'<div class="guess across-{side}">\n{rows}\n\n</div>')
        high += math.ceil(len(asked) / ASKED_COLUMNS) * ASKED_LINE
        high += math.ceil(len(choices) / side) * CARD + GAP
    return "\n\n".join(told), high


def beside_each_other(choices: list[str]) -> int:
    """How many cards stand in a row: all, half or one, as their words allow."""
    longest, count = max(map(len, choices)), len(choices)
    whole = (side for side in ACROSS if count % side == 0)
    return next((side for side in whole if longest <= ACROSS[side]), 1)
