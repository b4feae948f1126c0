"""What notebook 18 alone draws."""

from collections.abc import Sequence
from math import comb
from typing import Any

import torch
from matplotlib.axes import Axes

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import DOWN, UP, axes_row, finish
from grpo_course.lessons.finale import (
    Run,
    least_uneven,
    lost_and_won,
    new_rows,
    start_of,
    trained,
    turned,
)


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


def draw_balance(ax: Axes, row: int, lost: int, won: int) -> str:
    """Won less lost as a dot with its interval; returns the interval in words."""
    low, high = balance(lost, won)
    ax.plot([low, high], [row, row], color="black", lw=2)
    ax.plot(won - lost, row, "o", color="black", ms=6)
    return f"interval {low:+.1f} to {high:+.1f}"


def plot_ends(rows: Run) -> Axes:
    """A row for each run: rows lost to the left, won to the right, their difference.

    The bars of a run that kept only sums are the least uneven pair that these allow,
    hatched. The dot of the difference has its interval.
    """
    runs, told = trained(rows), []
    ax = axes_row(width=8, height=0.9 + 0.42 * len(runs))[0]
    for row, run in enumerate(runs):
        pair, kept = least_uneven(rows, run), lost_and_won(run)
        told.append(f"{run['name']}, seed {run['seed']}: {pair[1] - pair[0]:+d}")
        for sign, count, colour in zip((-1, 1), pair, (DOWN, UP), strict=True):
            look: dict[str, Any] = {"ec": colour, "alpha": 0.6}
            look |= {"fc": colour} if kept else {"fc": "none", "hatch": "///"}
            ax.barh(row, sign * count, 0.62, **look)
        told[-1] += f", {pair[0]} lost and {pair[1]} won"
        told[-1] += f", {draw_balance(ax, row, *pair)}"
    names = [f"{i}  {run['name']}, seed {run['seed']}" for i, run in enumerate(runs)]
    ax.set_yticks(range(len(runs)), names)
    ax.invert_yaxis()
    ax.axvline(0, color="black", lw=1)
    reach = max(map(abs, ax.get_xlim()))
    ax.set_xlim(-reach, reach)
    problems = start_of(rows)["problems"]
    describe(ax.figure, f"Rows lost and won, of {problems}. {'; '.join(told)}.")
    xlabel = f"of {problems} rows: lost ←   → won   (● the difference)"
    finish(ax, xlabel, "").grid(visible=False, axis="y")
    return ax


def plot_looks(tests: Sequence[Run], names: Sequence[str]) -> Axes:
    """Rows won less rows lost in each planned run, and its interval, a row a run."""
    ax = axes_row(width=8, height=0.9 + 0.42 * len(tests))[0]
    told = []
    for row, (test, name) in enumerate(zip(tests, names, strict=True)):
        lost, won = turned(*(each["rows"] for each in new_rows(test).values()))
        told.append(f"{name}: {won - lost:+d}, {draw_balance(ax, row, lost, won)}")
    asked = len(new_rows(tests[0])["end"]["rows"])
    ax.axvline(0, color="black", lw=1)
    ax.axvline(0.05 * asked, color=UP, ls="--")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    five = f"dashed: five in a hundred, {0.05 * asked:.1f}"
    describe(ax.figure, f"Won less lost, of {asked} new rows. {'; '.join(told)}.")
    xlabel = f"of {asked} new rows: won less lost ({five})"
    finish(ax, xlabel, "").grid(visible=False, axis="y")
    return ax
