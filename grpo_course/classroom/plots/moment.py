"""A moment of learning: a policy, and the group that it samples with its deltas."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_group, draw_policy, right_words
from grpo_course.classroom.plots.palette import sign_colour


def plot_moment(moment: Any, answer: Sequence[int], most: float) -> list[Axes]:
    """A policy, and the group that it samples with the rewards, `most` at best.

    `moment` is one of `lessons.one_prompt.learn_one`. Colour and sign of a bar are
    those of its delta: above or below the mean of the group.
    """
    left, right = axes_row(2, width=8.6, height=2.9)
    draw_policy(left, moment.probs, answer, r"the policy $\pi$")
    names = [" ".join(map(str, row)) for row in moment.responses.tolist()]
    draw_group(right, moment.rewards, names, "points")
    right.set_title("the answers it writes")
    right.set(xlim=(0, most), xticks=range(int(most) + 1))
    for row, delta in enumerate(moment.deltas.tolist()):
        mark_delta(right, row, delta)
    plt.tight_layout()
    points = ", ".join(f"{reward:g}" for reward in moment.rewards.tolist())
    text = f"A policy as a table of colours, {right_words(moment.probs, answer)}"
    text += f". Its answers as bars of {points} points"
    above = int((moment.deltas > 0).sum())
    describe(left.figure, f"{text}; {above} of them above the mean of the group.")
    return [left, right]


def mark_delta(ax: Axes, row: int, delta: float) -> None:
    """The bar of a row in the colour of its delta, and the sign at its right."""
    sign = "+" if delta > 0 else "\N{MINUS SIGN}" if delta < 0 else "0"
    ax.patches[row].set_color(sign_colour(delta))
    place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center"}
    style: dict[str, Any] = {"color": sign_colour(delta), "weight": "bold"}
    ax.annotate(sign, (1.03, row), annotation_clip=False, **place, **style)
