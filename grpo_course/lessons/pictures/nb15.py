"""What notebook 15 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from pandas import DataFrame
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    axes_row,
    finish,
)
from grpo_course.lessons.own_task import means_of

RIGHT, PAID = COLOURS[:2]
SIGNS = "os^Dv"  # of the seeds


def plot_starts(starts: Mapping[str, Tensor]) -> list[Axes]:
    """Groups as columns of cells, a plot for each start. [group trial]

    Right responses are dark; a cross stands over a tied group, a tick over a mixed one.
    """
    axes = axes_row(len(starts), width=5.5 * len(starts), height=1.9)
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
        for label, each in zip(ax.get_xticklabels(), tied, strict=True):
            label.set_color(DOWN if each else "black")
        finish(ax, "group", "response", name).grid(visible=False)
        ax.set_yticks([])
        ax.label_outer()
    return axes


def plot_runs(runs: Mapping[str, DataFrame], start: Tensor) -> list[Axes]:
    """A plot for each run: what was paid and what was right, as means of ten epochs.

    A dotted line is the mean of the start's responses, which were right or not.
    """
    axes = axes_row(len(runs), width=1.5 + 3.3 * len(runs), height=3)
    for ax, (name, run) in zip(axes, runs.items(), strict=True):
        smooth = run.rolling(10).mean()
        for column, colour, style, lw in (
            ("paid", PAID, "-", 4),
            ("right", RIGHT, "--", 2),
        ):
            look: dict[str, Any] = {"color": colour, "ls": style, "lw": lw}
            ax.plot(range(1, len(run) + 1), smooth[column], label=column, **look)
        begun = "the start, new words"
        ax.axhline(start.mean().item(), color=RIGHT, ls=":", lw=1.5, label=begun)
        ax.set_ylim(0, 1)
        finish(ax, "epoch", "mean of ten epochs", f"paid for: {name}").label_outer()
    return key_above(axes, 3)


def key_above(axes: list[Axes], columns: int) -> list[Axes]:
    """One legend over a row of plots that show the same."""
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), ncols=columns, **place)
    return axes


def plot_ends(rows: Sequence[Mapping[str, Any]], ways: Sequence[str]) -> list[Axes]:
    """A plot for each way to answer: a line and a sign for each seed, a bar the mean.

    A seed's line joins its start with what the others made of the same words.
    """
    means = means_of(rows)
    axes = axes_row(len(ways), width=11, height=3.6)
    for ax, way in zip(axes, ways, strict=True):
        for row, colour, sign in zip(rows, COLOURS, SIGNS, strict=False):
            shares = [row[model][way] for model in map(str, means)]
            look: dict[str, Any] = {"color": colour, "marker": sign, "ms": 6, "lw": 1}
            ax.plot(range(len(shares)), shares, label=f"seed {row['seed']}", **look)
        bars: dict[str, Any] = {"color": "black", "lw": 3, "alpha": 0.5, "zorder": 1}
        edges = [x + side for x in range(means.shape[1]) for side in (-0.3, 0.3)]
        ax.hlines(means.loc[way], edges[::2], edges[1::2], label="mean", **bars)
        ax.set_xticks(range(means.shape[1]), [*means])
        ax.set_ylim(-0.03, 1.03)
        finish(ax, "", "share right", way).label_outer()
    return key_above(axes, 6)
