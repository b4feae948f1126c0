"""What notebook 18 alone draws."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    GROUND,
    LINES,
    UP,
    axes_row,
    finish,
    legend_below,
)
from grpo_course.lessons.finale import Run, won_by


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


def plot_won(start: str, ends: Mapping[str, str]) -> Axes:
    """Which rows each end won, a line an end; those that two share stand first.

    `start` and `ends` have a character a row, "1" where the answer is right. Rows that
    no end won are left out. Those that the first two share lead, and the often won ones
    stand before the others.
    """
    won = {name: won_by(start, end) for name, end in ends.items()}
    first, second, *_ = won.values()
    often = Counter(row for rows in won.values() for row in rows)
    shared = first & second
    shown = sorted(often, key=lambda row: (row not in shared, -often[row], row))
    ax = axes_row(width=11, height=0.9 + 0.4 * len(ends))[0]
    for line, (name, rows) in enumerate(won.items()):
        colour = UP if name.startswith("GRPO") else COLOURS[0]
        for place, row in enumerate(shown):
            box = (place, line - 0.4), 0.85, 0.8
            fill = colour if row in rows else GROUND
            ax.add_patch(Rectangle(*box, fc=fill, ec="#c8c8c8"))
    ax.axvline(len(shared) - 0.07, color="black", lw=1.5)
    ax.set(xlim=(-0.5, len(shown) + 0.5), ylim=(len(won) - 0.4, -0.6), xticks=[])
    ax.set_yticks(
        range(len(won)), [f"{n} ({len(rows)} won)" for n, rows in won.items()]
    )
    both = {name: len(shared & rows) for name, rows in won.items()}
    told = "; ".join(f"{name}: {len(won[name])}, {both[name]} of these" for name in won)
    describe(ax.figure, f"Rows won. The first two share {len(shared)}. {told}.")
    xlabel = f"left of the line: the {len(shared)} rows that the first two both won "
    xlabel += "(green: with a reward, blue: without)"
    finish(ax, xlabel, "").grid(visible=False)
    return ax


def plot_updates(runs: Mapping[str, Sequence[Run]]) -> list[Axes]:
    """Three things that runs noted at each update; of several seeds, mean and range."""
    panels = {"form": "share in the form", "mean_length": "tokens of a response"}
    panels |= {"tied_groups": "share of groups that tie"}
    axes = axes_row(3, width=11, height=3.4)
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
