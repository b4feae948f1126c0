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
from grpo_course.lessons.finale import Run, sampled_shares


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


def plot_sampled(rows: Run, *ways: str) -> float:
    """The share of right samples before, and after each way. -> that of the last one

    The lines of the last row are the 95 % intervals of what it rose by.
    """
    shares, rises = sampled_shares(rows, *ways)
    ax, told = axes_row(width=8, height=3)[0], []
    start = shares["the 192 rows, weighted"][0]
    for k, name in enumerate(("before", *ways)):
        colour, mark = ("black", *COLOURS)[k], "oD^"[k]
        up = [place + 0.22 * (k - 0.5 * len(ways)) for place in range(len(shares))]
        ax.plot([each[k] for each in shares.values()], up, mark, c=colour, label=name)
        if k:
            rise, half = rises[k - 1]
            ends = start + rise - half, start + rise + half
            ax.plot(ends, [up[-1]] * 2, color=colour, lw=2)
            print(f"{name}: {rise:+.3f} ± {half:.3f} more right than before")
    for kind, each in shares.items():
        told.append(f"{kind}: {', '.join(f'{share:.2f}' for share in each)}")
    ax.axvline(start, ymax=0.25, color="black", lw=1)
    ax.set_yticks(range(len(shares)), list(shares))
    ax.set_ylim(len(shares) - 0.5, -0.5)
    ax.set_xlim(0, None)
    describe(ax.figure, f"Right before, {', '.join(ways)}. {'; '.join(told)}.")
    finish(ax, "share of the samples that are right", "").grid(visible=False, axis="y")
    legend_below([ax])
    return shares["the 192 rows, weighted"][-1]


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
