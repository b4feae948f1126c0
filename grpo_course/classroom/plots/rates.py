"""What a learning rate makes of a run: ties and what is sorted, seed by seed."""

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.history import History
from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.palette import DOWN, PI


def draw_rate(run: History, learning_rate: float) -> str:
    """The picture for a slider: a thin line a seed, the mean thick. -> the sentence."""
    ties, sorts = run.epochs("tied_groups"), run.epochs("sorted_probability")
    axes = axes_row(2, width=9.0, height=2.8)
    draw_seeds(axes[0], ties, DOWN, "tied groups (share)")
    draw_seeds(axes[1], sorts, PI, "P(sorted)")
    axes[0].set_title(f"learning rate {learning_rate:g}")
    late, right = ties[-1].mean(), run.final("sorted_probability").mean()
    return (
        f"learning rate {learning_rate:g}: at the end {late:.2f} of the groups are "
        f"tied, and P(sorted) is {right:.2f}."
    )


def draw_seeds(ax: Axes, curves: Tensor, colour: str, ylabel: str) -> None:
    """Curves [epoch seed] of shares, and their mean."""
    ax.plot(curves, color=colour, alpha=0.35, lw=0.8)
    ax.plot(curves.mean(dim=-1), color=colour, lw=3, label="mean")
    ax.set_ylim(-0.04, 1.04)
    finish(ax, "epoch", ylabel)
