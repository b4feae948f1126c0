"""What a learning rate makes of a run: why groups tie, and what is sorted."""

from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, GROUND, PI, UP
from grpo_course.loop import History


def draw_rate(run: History, learning_rate: float) -> str:
    """The picture for a slider: why groups tie, what is sorted. -> the sentence."""
    axes = axes_row(2, width=9.0, height=3.1)
    right, wrong = (
        run.epochs(kind).mean(dim=-1) for kind in ("tied_right", "tied_wrong")
    )
    draw_ties(axes[0], right, wrong)
    draw_seeds(axes[1], run.epochs("sorted_probability"), PI, "P(sorted)")
    axes[1].set_title(f"learning rate {learning_rate:g}")
    sorts = run.final("sorted_probability").mean()
    describe(
        axes[0].figure,
        f"Shares of the groups that are tied, stacked: all sorted from {right[0]:.2f} "
        f"to {right[-1]:.2f}, none sorted from {wrong[0]:.2f} to {wrong[-1]:.2f}. "
        f"Beside it P(sorted), a line for each seed; their mean ends at {sorts:.2f}.",
    )
    return (
        f"learning rate {learning_rate:g}: at the end {right[-1]:.2f} of the groups "
        f"are tied, all sorted, and {wrong[-1]:.2f} tied, none sorted; P(sorted) is "
        f"{sorts:.2f}."
    )


def draw_ties(ax: Axes, right: Tensor, wrong: Tensor) -> None:
    """The shares of two kinds of tied groups, stacked. [epoch] each"""
    hatched: dict[str, Any] = {"facecolor": DOWN, "edgecolor": GROUND, "hatch": "//"}
    epochs, both = range(len(right)), right + wrong
    ax.fill_between(epochs, right, color=UP, label="tied, all sorted", lw=0)
    ax.fill_between(epochs, right, both, label="tied, none sorted", lw=0, **hatched)
    ax.set_ylim(-0.04, 1.04)
    legend_above(finish(ax, "epoch", "share of the groups"))


def draw_seeds(ax: Axes, curves: Tensor, colour: str, ylabel: str) -> None:
    """Curves [epoch seed] of shares, and their mean."""
    ax.plot(curves, color=colour, alpha=0.35, lw=0.8)
    ax.plot(curves.mean(dim=-1), color=colour, lw=3, label="mean")
    ax.set_ylim(-0.04, 1.04)
    finish(ax, "epoch", ylabel)
