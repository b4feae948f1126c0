"""What notebook 18 alone draws."""

from collections.abc import Mapping, Sequence
from math import comb

import torch
from matplotlib.axes import Axes

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    UP,
    axes_row,
    finish,
    legend_below,
)
from grpo_course.lessons.finale import Run


def balance(lost: int, won: int) -> tuple[float, float]:
    """The 95 % interval of won less lost, for a coin flipped once a changed row.

    After Clopper and Pearson. It leaves out 0 where the sign test is below 0.05.
    """
    flips, shares = lost + won, torch.linspace(0, 1, 2001, dtype=torch.float64)
    falls = torch.stack(
        [
            comb(flips, heads) * shares**heads * (1 - shares) ** (flips - heads)
            for heads in range(flips + 1)
        ]
    )
    likely = (falls[: won + 1].sum(0) > 0.025) & (falls[won:].sum(0) > 0.025)
    ends = flips * (2 * shares[likely] - 1)
    return ends.min().item(), ends.max().item()


def plot_balances(pairs: Mapping[str, tuple[int, int]], rows: int) -> Axes:
    """Rows won less rows lost, of so many asked, and its interval, a line a run.

    `pairs` has the rows lost and won under the name of each run.
    """
    ax, told = axes_row(width=8, height=0.9 + 0.42 * len(pairs))[0], []
    for place, (name, (lost, won)) in enumerate(pairs.items()):
        low, high = balance(lost, won)
        ax.plot([low, high], [place, place], color="black", lw=2)
        ax.plot(won - lost, place, "o", color="black", ms=6)
        told.append(f"{name}: {won - lost:+d}, interval {low:+.1f} to {high:+.1f}")
    five = 0.05 * rows
    ax.axvline(0, color="black", lw=1)
    ax.axvline(five, color=UP, ls="--")
    ax.set_yticks(range(len(pairs)), list(pairs))
    ax.set_ylim(len(pairs) - 0.5, -0.5)
    describe(ax.figure, f"Won less lost, of {rows} rows. {'; '.join(told)}.")
    xlabel = f"of {rows} rows: won less lost (dashed: five in a hundred, {five:.1f})"
    finish(ax, xlabel, "").grid(visible=False, axis="y")
    return ax


def plot_updates(runs: Mapping[str, Sequence[Run]]) -> list[Axes]:
    """Form and length at each update of runs; of several seeds, mean and range."""
    panels = {"form": "share in the form", "mean_length": "tokens of a response"}
    axes = axes_row(2, width=9, height=3.4)
    for ax, (key, title) in zip(axes, panels.items(), strict=True):
        for (name, seeds), colour, line in zip(
            runs.items(), COLOURS, LINES, strict=False
        ):
            noted = torch.tensor(
                [[one[key] for one in run["updates"]] for run in seeds]
            )
            ax.plot(noted.mean(0), color=colour, ls=line, marker="o", ms=3, label=name)
            if len(seeds) > 1:
                edges = noted.amin(0), noted.amax(0)
                ax.fill_between(range(noted.shape[1]), *edges, color=colour, alpha=0.2)
        finish(ax, "update", "", title)
        ax.set_ylim(0, None if key == "mean_length" else 1.03)
    legend_below(axes)
    return axes
