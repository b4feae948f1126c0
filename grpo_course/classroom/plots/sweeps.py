"""How wrong an update is as a setting moves; what defects cost."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import COLOURS, LINES, axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import LEVEL

NEAR = (-0.07, 0.025)  # costs that are drawn once more, magnified


def plot_sweeps(
    setting: str, values: Sequence[float], errors: dict[str, Tensor]
) -> Axes:
    """How wrong one rollout's move is at each value of a setting, a line a defect.

    `errors` are [value seed], each seed a thin line; at 1 it is as wrong as no move.
    """
    ax = axes_row(width=6.0, height=3.4)[0]
    places = range(len(values))
    for (cause, error), colour, line in zip(
        errors.items(), COLOURS, LINES, strict=False
    ):
        ax.plot(places, error, color=colour, lw=0.6, alpha=0.35)
        look: dict[str, Any] = {"color": colour, "ls": line, "marker": "o", "ms": 4}
        ax.plot(places, error.mean(dim=1), lw=2, label=cause, **look)
    ax.axhline(1, color="grey", ls=":", label="as wrong as no move")
    ax.set_xticks(places, [f"{value:g}" for value in values])
    ax.set_ylim(bottom=0)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    name = r"$\beta$" if setting == "beta" else setting
    return finish(ax, name, "error after one rollout")


def plot_costs(
    costs: dict[str, tuple[float, float]], seen: Sequence[str] = ()
) -> list[Axes]:
    """What each defect costs: on the left all of them, on the right near zero.

    Rows of `seen` are orange, the others then grey.
    """
    axes = axes_row(2, width=11.0, height=1.0 + 0.22 * len(costs))
    for ax, words in zip(axes, ("", "magnified around 0"), strict=True):
        draw_costs(ax, costs, "", words, seen)
    axes[0].axvspan(*NEAR, color="grey", alpha=0.2, lw=0)
    axes[1].set(xlim=NEAR, yticklabels=[])
    axes[0].figure.supxlabel(
        "reward with the defect minus without (two standard errors)"
    )
    plt.tight_layout()
    told = "; ".join(f"{cause} {mean:+.3f}" for cause, (mean, _) in costs.items())
    orange = f" Orange: {', '.join(seen)}." if seen else ""
    words = "A dot a row, reward with the defect minus without"
    describe(axes[0].figure, f"{words}: {told}.{orange}")
    return axes


def draw_costs(
    ax: Axes,
    costs: dict[str, tuple[float, float]],
    xlabel: str,
    title: str = "",
    seen: Sequence[str] = (),
) -> Axes:
    """Mean and standard error of each difference, one row each, in the order given."""
    look: dict[str, Any] = {"fmt": "o", "ms": 4, "capsize": 2}
    others = LEVEL if seen else COLOURS[0]
    for row, (cause, (mean, error)) in enumerate(costs.items()):
        colour = COLOURS[1] if cause in seen else others
        ax.errorbar(mean, row, xerr=2 * error, color=colour, **look)
    ax.axvline(0, color="grey", lw=1)
    ax.set_yticks(range(len(costs)), list(costs), fontsize=11)
    ax.invert_yaxis()
    ax.margins(y=0.02)
    return finish(ax, xlabel, "", title)


def plot_gains(gains: dict[str, tuple[float, float]], xlabel: str) -> Axes:
    """Mean and standard error of each difference, the largest on top."""
    ordered = dict(sorted(gains.items(), key=lambda row: -abs(row[1][0])))
    ax = draw_costs(axes_row(width=8.5, height=3.8)[0], ordered, xlabel)
    told = "; ".join(f"{name} {mean:+.3f}" for name, (mean, _) in ordered.items())
    describe(ax.figure, f"A dot a row, {xlabel}: {told}.")
    return ax
