"""What notebook 15 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    FAINT,
    LINES,
    axes_grid,
    axes_row,
    finish,
)


def plot_starts(starts: Mapping[int, Tensor]) -> list[Axes]:
    """Groups as columns of cells, a plot for each number of steps. [group trial]

    Right responses are dark; a cross stands over a tied group.
    """
    axes = axes_row(len(starts), width=11, height=1.9)
    # No response is as light as the paper: a reward of 0 is a response too.
    shades: dict[str, Any] = {"cmap": "Blues", "vmin": -0.15, "vmax": 1}
    for ax, (steps, right) in zip(axes, starts.items(), strict=True):
        ax.imshow(right.T, aspect="auto", interpolation="nearest", **shades)
        for edge in range(1, len(right)):
            ax.axvline(edge - 0.5, color="white", lw=2)
        tied = (right == right[:, :1]).all(dim=1).tolist()
        ax.set_xticks(range(len(right)), ["×" if each else "✓" for each in tied])
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        for label, each in zip(ax.get_xticklabels(), tied, strict=True):
            label.set_color(DOWN if each else "black")
        finish(ax, "group", "response", f"{steps} steps").grid(visible=False)
        ax.set_yticks([])
        ax.label_outer()
    return axes


def plot_metrics(lines: Sequence[Mapping[str, Any]]) -> list[Axes]:
    """A run's lines, means of ten epochs: what is right, and the tied groups.

    Dots are problems never paid for.
    """
    axes = axes_row(2, width=8, height=3)
    epochs = [line for line in lines if "accuracy" in line]
    looks = [(line["epoch"], line["held_out"]) for line in lines if "held_out" in line]
    parts = (
        {"accuracy": "paid for"},
        {"tied_wrong": "all wrong", "tied_right": "all right"},
    )
    titles = ("right (share)", "tied groups (share)")
    for ax, names, title in zip(axes, parts, titles, strict=True):
        for (name, label), colour, style in zip(names.items(), COLOURS, LINES):
            curve = np.array([line[name] for line in epochs])
            smooth = sliding_window_view(curve, 10).mean(axis=-1)
            ax.plot(
                range(10, len(curve) + 1), smooth, color=colour, ls=style, label=label
            )
        if "accuracy" in names:
            ax.plot(*zip(*looks), "o", color=COLOURS[1], label="never paid for")
        ax.set_ylim(0, 1)
        finish(ax, "epoch", "", title)
        ax.legend(loc="upper right")
    return axes


def plot_signs(runs: Sequence[Mapping[str, Any]]) -> list[Axes]:
    """What each run shows early, a dot a run: paid by right, and KL from the start.

    runs hold a cause and a start, with the numbers right, paid and kl.
    """
    (axes,) = axes_grid(1, 2, width=9, height=3.3)
    causes = dict.fromkeys(run["cause"] for run in runs)
    for row, (cause, colour) in enumerate(zip(causes, COLOURS, strict=False)):
        look: dict[str, Any] = {"color": colour, "marker": "osD^"[row], "ls": ""}
        starts = [run["start"] for run in runs if run["cause"] == cause]
        right, paid, kl = (
            [s[name] for s in starts] for name in ("right", "paid", "kl")
        )
        axes[0].plot(right, paid, label=cause, ms=6, alpha=0.8, **look)
        axes[1].plot(np.maximum(kl, 0.001), [row] * len(kl), ms=6, alpha=0.6, **look)
    axes[0].axline((0, 0), slope=1, color=FAINT, ls=":")
    axes[0].set(xlim=(-0.04, 1), ylim=(-0.04, 1.04))
    axes[1].set(xscale="log", ylim=(len(causes) - 0.5, -0.5))
    axes[1].set_yticks(range(len(causes)), list(causes))
    finish(axes[0], "right before the run", "paid in three epochs")
    finish(axes[1], "KL from the start in three epochs (at least 0.001)", "")
    return axes


def plot_ways(rows: Sequence[Mapping[str, Any]]) -> list[Axes]:
    """A small plot for each way to answer: the models side by side, a line a seed.

    rows hold a seed, and by model and way a share. The seed with the weakest start is
    drawn in another colour, dashed.
    """
    models = [name for name in rows[0] if name != "seed"]
    ways = list(rows[0][models[0]])
    axes = axes_row(len(ways), width=11, height=3.4)
    weakest = min(rows, key=lambda row: row[models[0]][ways[0]])
    for ax, way in zip(axes, ways, strict=True):
        look: dict[str, Any] = {"color": COLOURS[0], "lw": 1, "alpha": 0.75}
        others = [
            [row[model][way] for row in rows if row is not weakest] for model in models
        ]
        ax.plot(others, "o-", ms=5, **look)
        look = {"color": COLOURS[1], "lw": 2, "ls": "--", "marker": "o", "ms": 5}
        ax.plot([weakest[model][way] for model in models], **look)
        ax.set_xticks(range(len(models)), [name.split()[-1] for name in models])
        ax.set(ylim=(0, 1.03), xlim=(-0.3, len(models) - 0.7))
        finish(ax, "", "share right", way.replace(", ", ",\n")).label_outer()
    labels = ["the other seeds", f"seed {weakest['seed']}, the weakest start"]
    lines = axes[0].lines[0], axes[0].lines[-1]
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
    axes[0].figure.legend(lines, labels, ncols=2, **place)
    return axes
