"""Runs of texts: a row for each beside the healthy one; training beside held out."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.history import History
from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS

SHARES = {"tied_groups", "format", "lenient_accuracy"}
GIVES_AWAY = "#fdedc9"  # the ground of the panel that tells how a run fails


def plot_run_rows(
    runs: dict[str, History],
    columns: dict[str, str],
    window: int = 5,
    tells: dict[str, str] | None = None,
) -> list[list[Axes]]:
    """A row for each run but the first, which is drawn behind it in grey.

    `columns` maps a column of a history to its title. A point is the mean of `window`
    updates; the axes are those of the longest run that is not the first. `tells` maps
    a run to the column that gives it away, whose panel is shaded.
    """
    (healthy, usual), *rest = runs.items()
    size = (11, 1.35 * len(rest) + 0.7)
    share: dict = {"sharex": True, "sharey": "col", "layout": "constrained"}
    figure, grid = plt.subplots(
        len(rest), len(columns), squeeze=False, figsize=size, **share
    )
    last = max(len(run.records) for _, run in rest)
    for row, (name, run) in zip(grid, rest, strict=True):
        for ax, column in zip(row, columns, strict=True):
            draw_curve(ax, usual, column, window, color="0.6", lw=3, label=healthy)
            draw_curve(ax, run, column, window, color=COLOURS[1], label="this run")
            ax.set_xlim(0, last)
            if column in SHARES:
                ax.set_ylim(-0.05, 1.05)
            if tells and tells.get(name) == column:
                ax.set_facecolor(GIVES_AWAY)
        row[0].set_ylabel(name, fontsize=11)
    for ax, title in zip(grid[0], columns.values(), strict=True):
        ax.set_title(title, fontsize=11)
    figure.supxlabel("update", fontsize=11)
    handles = grid[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    describe(figure, in_words(runs, columns, window, tells or {}))
    return [list(row) for row in grid]


def in_words(
    runs: dict[str, History], columns: dict[str, str], window: int, tells: dict
) -> str:
    """The rows for readers who cannot see them: where each curve starts and ends."""
    told = []
    for name, run in runs.items():
        curves = {t: smoothed(run, column, window) for column, t in columns.items()}
        ends = [
            f"{title} from {curve[0].item():.2f} to {curve[-1].item():.2f}"
            for title, curve in curves.items()
        ]
        told.append(f"{name}: {', '.join(ends)}")
    told += [f"shaded for {name}: {columns[tells[name]]}" for name in tells]
    return f"A row for each run beside the first. {'; '.join(told)}."


def draw_curve(ax: Axes, run: History, column: str, window: int, **look) -> None:
    """A column of a run, as means of so many updates, each at the last of them."""
    smooth = smoothed(run, column, window)
    ax.plot(range(window, window + len(smooth)), smooth, **look)
    ax.grid(alpha=0.3)


def smoothed(run: History, column: str, window: int) -> Tensor:
    """Means of so many updates. -> [update-window+1]"""
    return run.curve(column).flatten().float().unfold(0, window, 1).mean(-1)


def plot_held_out(
    training: dict[str, Tensor], held_out: dict[str, Sequence[float]], every: int
) -> list[Axes]:
    """A run in each plot: training, dots for what was held out, the gap shaded.

    Training is [epoch] and ends where the last dot stands; a dot of `held_out` stands
    at each `every` epochs, from 0 on.
    """
    axes = axes_row(len(training), width=9.5, height=3.4)
    for ax, (name, curve), colour in zip(axes, training.items(), COLOURS, strict=False):
        looks = held_out[name]
        places = [every * look for look in range(len(looks))]
        x = range(places[-1] + 1 - len(curve), places[-1] + 1)
        ax.plot(x, curve, color=colour, label="training")
        ax.plot(places, looks, color=colour, ls=":", marker="o", label="held out")
        below = np.interp(x, places, looks)
        ax.fill_between(x, below, curve, color=colour, alpha=0.15, lw=0)
        ax.set_ylim(0, 1)
        legend_above(finish(ax, "epoch", "strict accuracy", name))
    told = [
        f"{name}: training from {curve[0]:.2f} to {curve[-1]:.2f}, held out from "
        f"{held_out[name][0]:.2f} to {held_out[name][-1]:.2f}"
        for name, curve in training.items()
    ]
    describe(axes[0].figure, f"{'; '.join(told)}. The gap between them is shaded.")
    return axes
