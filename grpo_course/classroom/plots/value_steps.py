"""What a critic expects, token by token: its TD errors as the steps of a stair."""

from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow
from grpo_course.classroom.plots.palette import PI, PI_REF, sign_colour


def plot_value_steps(values: Tensor, reward: float) -> Axes:
    """The values as levels, the reward as the last one, and what each token changed.

    values [pos] are said before each token; the reward is paid after the last one.
    """
    levels = [*values.tolist(), reward]
    ax = axes_row(width=8.0, height=3.4)[0]
    for x, level in enumerate(levels):
        draw_level(ax, x, level, is_paid=x == len(values))
    errors = [after - now for now, after in pairwise(levels)]
    for t, error in enumerate(errors):
        place: dict[str, Any] = {"va": "center", "fontsize": 12, "weight": "bold"}
        start, end = (t + 0.5, levels[t]), (t + 0.5, levels[t + 1])
        draw_arrow(ax, start, end, error, width=3)
        middle = (levels[t] + levels[t + 1]) / 2
        ax.text(t + 0.58, middle, f"{error:+.1f}", color=sign_colour(error), **place)
    names = [f"token {t}" for t in range(len(values))]
    ax.set_xticks([t + 0.5 for t in range(len(values))], names, fontsize=12)
    ax.set(xlim=(-0.6, len(values) + 0.7), ylim=(0, 1.1 * max(levels)))
    finish(ax, "", "reward still expected").grid(visible=False, axis="x")
    told = ", ".join(f"{t}: {error:+.1f}" for t, error in enumerate(errors))
    said = ", ".join(f"{value:.1f}" for value in values.tolist())
    describe(
        ax.figure,
        f"A stair of the values {said}, with the reward {reward:g} as its last level. "
        f"An arrow at each token, from one level to the next. {told}.",
    )
    return ax


def draw_level(ax: Axes, x: float, level: float, is_paid: bool) -> None:
    """A level with its name below it."""
    colour = PI_REF if is_paid else PI
    ax.plot([x - 0.42, x + 0.42], [level, level], color=colour, lw=4)
    name = f"paid {level:g}" if is_paid else f"$V_{x}$ = {level:.1f}"
    place: dict[str, Any] = {"ha": "center", "va": "top", "fontsize": 12}
    ax.text(x, level - 0.06, name, **place)
