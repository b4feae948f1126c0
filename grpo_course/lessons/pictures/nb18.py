"""What notebook 18 alone draws."""

from math import comb
from typing import Any

import torch
from matplotlib.axes import Axes

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import DOWN, UP, axes_row, finish
from grpo_course.lessons.finale import (
    Run,
    begun,
    least_uneven,
    lost_and_won,
    start_of,
    trained,
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


def plot_ends(rows: Run) -> Axes:
    """A row for each run: rows lost to the left, won to the right, their difference.

    The bars of a run that kept only sums are the least uneven pair that these allow,
    hatched. The dot of the difference has its interval.
    """
    runs, told = trained(rows), []
    ax = axes_row(width=8, height=0.9 + 0.42 * len(runs))[0]
    for row, run in enumerate(runs):
        pair, kept = least_uneven(rows, run), lost_and_won(run)
        change = run["end"]["right"] - begun(rows, run)["right"]
        told.append(f"{run['name']}, seed {run['seed']}: {change:+d}")
        for sign, count, colour in zip((-1, 1), pair, (DOWN, UP), strict=True):
            look: dict[str, Any] = {"ec": colour, "alpha": 0.6}
            look |= {"fc": colour} if kept else {"fc": "none", "hatch": "///"}
            ax.barh(row, sign * count, 0.62, **look)
        low, high = balance(*pair)
        ax.plot([low, high], [row, row], color="black", lw=2)
        told[-1] += f", {pair[0]} lost and {pair[1]} won"
        told[-1] += f", interval {low:+.1f} to {high:+.1f}"
        ax.plot(change, row, "o", color="black", ms=6)
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
