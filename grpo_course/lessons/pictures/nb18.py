"""What notebook 18 alone draws."""

from collections.abc import Mapping
from math import comb

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import DOWN, GROUND, LEVEL, UP, axes_row, finish
from grpo_course.lessons.finale import turned


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


def plot_moves(start: str, ends: Mapping[str, str]) -> Axes:
    """What became of each row, a line an end; rows that were right nowhere are left out.

    `start` and `ends` have a character a row, "1" where the answer is right. Rows that
    were right at the start stand first, then those that were won, the often won first.
    """
    often = [sum(end[row] == "1" for end in ends.values()) for row in range(len(start))]
    shown = [row for row in range(len(start)) if start[row] == "1" or often[row]]
    shown.sort(key=lambda row: (start[row] == "0", -often[row]))
    ax, told = axes_row(width=11, height=0.9 + 0.45 * len(ends))[0], []
    looks = {"11": (LEVEL, ""), "10": (DOWN, "−"), "01": (UP, "+"), "00": (GROUND, "")}
    for line, (name, end) in enumerate(ends.items()):
        for place, row in enumerate(shown):
            colour, sign = looks[start[row] + end[row]]
            box = Rectangle((place, line - 0.4), 0.85, 0.8, fc=colour, ec="#c8c8c8")
            ax.add_patch(box)
            ax.text(place + 0.42, line, sign, color="white", ha="center", va="center")
        lost, won = turned(start, end)
        told.append(f"{name}: {lost} lost, {won} won")
    ax.set_xlim(-0.5, len(shown) + 0.5)
    ax.set_ylim(len(ends) - 0.4, -0.6)
    ax.set_yticks(range(len(ends)), list(ends))
    right = start.count("1")
    ax.axvline(right - 0.07, color="black", lw=1.5)
    describe(ax.figure, f"{len(shown)} of {len(start)} rows. {'; '.join(told)}.")
    ax.set_xticks([])
    xlabel = f"{right} rows right before (grey: kept, −: lost)          "
    xlabel += f"{len(shown) - right} rows won at some end (+)"
    finish(ax, xlabel, "").grid(visible=False)
    return ax
