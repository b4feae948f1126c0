"""What notebook 13 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    axes_row,
    finish,
    legend_below,
)
from grpo_course.loop import ENOUGH, mean_and_error


def plot_rising(chances: Mapping[str, Tensor]) -> Axes:
    """The mean probability of a rare token in each rollout, [rollout seed]; log axis."""
    ax = axes_row()[0]
    for row, (name, chance) in enumerate(chances.items()):
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(chance.mean(dim=-1), label=name, **look)
    ax.set(yscale="log", ylim=(0.008, 1.2))
    ax.set_xticks(range(0, 20, 5))
    finish(ax, "rollout", "chance of the rare token")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


def plot_tasks(
    results: Mapping[str, Mapping[str, Sequence[Tensor]]], rates: Sequence[float]
) -> list[Axes]:
    """The reward of each variant by rate, a panel a task; bars hold two errors.

    results[task][variant] has one [seed] for each rate; rates are evenly spaced.
    """
    axes = axes_row(len(results), width=9.0, height=3.4)
    for ax, (task, variants) in zip(axes, results.items(), strict=True):
        for row, (name, rewards) in enumerate(variants.items()):
            means, errors = zip(*map(mean_and_error, rewards), strict=True)
            spots = [place + 0.05 * (row - 1.5) for place in range(len(rates))]
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(spots, means, marker="o", ms=4, label=name, **look)
            bars = [ENOUGH * error for error in errors]
            ax.errorbar(spots, means, bars, ls="", ecolor=COLOURS[row])
        ax.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        finish(ax, "learning rate", "reward", task)
    legend_below(axes)
    return axes
