"""What notebook 15 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from pandas import DataFrame
from torch import Tensor

from grpo_course.classroom.plots import COLOURS, axes_grid, finish, legend_outside
from grpo_course.lessons.own_task import means_of

RIGHT, PAID = COLOURS[:2]
SEEDS = (*zip(COLOURS[2:], "os^Dv", strict=True),)  # a colour and a sign for each


def plot_starts(starts: Mapping[str, Tensor]) -> list[Axes]:
    """Groups as columns of cells, a plot for each start. [group trial]

    A cross stands over a tied group, a tick over a mixed one.
    """
    (axes,) = axes_grid(1, len(starts), width=5.5 * len(starts), height=2.8)
    # No response is as light as the paper: a reward of 0 is a response too.
    shades: dict[str, Any] = {"cmap": "Blues", "vmin": -0.15, "vmax": 1}
    for ax, (name, right) in zip(axes, starts.items(), strict=True):
        ax.imshow(right.T, aspect="auto", interpolation="nearest", **shades)
        for edge in range(1, len(right)):
            ax.axvline(edge - 0.5, color="white", lw=2)
        tied = (right == right[:, :1]).all(dim=1).tolist()
        ax.set_xticks(range(len(right)), ["×" if each else "✓" for each in tied])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        finish(ax, "group", "response", name).grid(visible=False)
        ax.set_yticks([])
        ax.label_outer()
    dark, pale = (colormaps["Blues"]((each + 0.15) / 1.15) for each in (1, 0))
    for label, sign, colour in (
        ("right", "s", dark),
        ("wrong", "s", pale),
        ("mixed", "$✓$", "black"),
        ("tied", "$×$", "black"),
    ):
        axes[0].scatter([], [], s=120, marker=sign, color=colour, label=label)
    legend_outside(axes, "lower")
    return axes


def plot_runs(runs: Mapping[str, DataFrame]) -> list[Axes]:
    """A plot for each run: what was paid and what was right, as means of ten epochs."""
    (axes,) = axes_grid(1, len(runs), width=1.5 + 3.3 * len(runs), height=3.6)
    for ax, (name, run) in zip(axes, runs.items(), strict=True):
        smooth = run.rolling(10).mean()
        for column, colour, style, lw in (
            ("paid", PAID, "-", 4),
            ("right", RIGHT, "--", 2),
        ):
            look: dict[str, Any] = {"color": colour, "ls": style, "lw": lw}
            ax.plot(range(1, len(run) + 1), smooth[column], label=column, **look)
        ax.set_ylim(0, 1)
        what = "mean of ten epochs,\ntraining words"
        finish(ax, "epoch", what, f"paid for: {name}").label_outer()
    legend_outside(axes)
    return axes


def plot_ends(rows: Sequence[Mapping[str, Any]], ways: Sequence[str]) -> list[Axes]:
    """A plot for each way to answer: a sign for each model of a seed, a bar the mean.

    Signs of a seed stand in the same place beside the middle, in each model's column.
    """
    means = means_of(rows)
    (axes,) = axes_grid(1, len(ways), width=11, height=4.2)
    for ax, way in zip(axes, ways, strict=True):
        for place, (row, (colour, sign)) in enumerate(zip(rows, SEEDS, strict=False)):
            shares = [row[model][way] for model in map(str, means)]
            beside = 0.13 * (place - (len(rows) - 1) / 2)
            look: dict[str, Any] = {"color": colour, "marker": sign, "ms": 7}
            xs = [column + beside for column in range(len(shares))]
            ax.plot(xs, shares, ls="", label=f"seed {row['seed']}", **look)
        bars: dict[str, Any] = {"color": "black", "lw": 3, "alpha": 0.5, "zorder": 1}
        edges = [x + side for x in range(means.shape[1]) for side in (-0.4, 0.4)]
        ax.hlines(means.loc[way], edges[::2], edges[1::2], label="mean", **bars)
        for edge in range(1, means.shape[1]):
            ax.axvline(edge - 0.5, color="0.85", lw=1, zorder=0)
        ax.set_xticks(range(means.shape[1]), [*means])
        ax.set_xlim(-0.5, means.shape[1] - 0.5)
        ax.set_ylim(-0.03, 1.03)
        finish(ax, "", "share right", way).grid(visible=False, axis="x")
        ax.label_outer()
    legend_outside(axes)
    return axes
