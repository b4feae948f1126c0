"""What notebook 15 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    axes_row,
    cell,
    finish,
    legend_above,
    name_row,
)
from grpo_course.loop import History


def plot_answers(
    runs: Mapping[str, Sequence[tuple[str, Sequence[str], Sequence[float]]]],
) -> Axes:
    """Groups of answers, a row for each run: what is right, what is given, its pay.

    Pay is a share of the most that a run pays: the more, the darker is the cell.
    """
    blocks, told = max(map(len, runs.values())), []
    ax = axes_row(width=11, height=0.45 * len(runs) + 0.5)[0]
    for row, (name, groups) in enumerate(runs.items()):
        y, kinds, ties = 1.2 * row, set(), 0
        name_row(ax, y, name)
        for block, (right, given, paid) in enumerate(groups):
            x = 12 * block + 2.1
            at: dict[str, Any] = {"y": y + 0.5, "va": "center"}
            ax.text(x - 0.3, s=right, ha="right", weight="bold", **at)
            for place, (answer, pay) in enumerate(zip(given, paid, strict=True)):
                shade = plt.get_cmap("Blues")(0.08 + 0.47 * pay)  # black is read on it
                cell(ax, x + place, y, answer, colour=to_hex(shade))
            sign, ink = ("×", DOWN) if len({*paid}) == 1 else ("✓", "black")
            ax.text(x + 0.6 + len(given), s=sign, ha="center", color=ink, **at)
            kinds |= {*given}
            ties += sign == "×"
        told.append(f"{name} {ties} tied, different answers {len(kinds)}")
    words = "bold: the right answer; darker is paid more; × is tied, ✓ has a signal"
    ax.text(6 * blocks, 1.2 * len(runs) + 0.6, words, ha="center", va="center")
    ax.set(xlim=(-2.5, 12 * blocks), ylim=(1.2 * len(runs) + 1, -0.2))
    ax.set_position((0, 0, 1, 1))
    ax.axis("off")
    describe(ax.figure, f"{blocks} groups of answers a run. {'; '.join(told)}.")
    return ax


def plot_run_rows(
    runs: dict[str, History], columns: dict[str, str], tells: dict[str, str]
) -> list[list[Axes]]:
    """A row for each run but the first, which is drawn behind it in grey.

    `columns` maps a column of a history to its title, `tells` a run to the column that
    gives it away, whose panel is shaded. A point is the mean of five updates; the axes
    are those of the longest run that is not the first.
    """
    window, ((healthy, usual), *rest) = 5, runs.items()
    share: dict[str, Any] = {"sharex": True, "sharey": "col", "layout": "constrained"}
    share |= {"squeeze": False, "figsize": (11, 1.35 * len(rest) + 0.7)}
    figure, grid = plt.subplots(len(rest), len(columns), **share)
    last = max(len(run.records) for _, run in rest)
    for row, (name, run) in zip(grid, rest, strict=True):
        for ax, (column, title) in zip(row, columns.items(), strict=True):
            for each, colour, width, label in (
                (usual, "0.6", 3, healthy),
                (run, COLOURS[1], None, "this run"),
            ):
                curve = each.curve(column).flatten().float()
                smooth = curve.unfold(0, window, 1).mean(-1)
                updates = range(window, window + len(smooth))
                ax.plot(updates, smooth, color=colour, lw=width, label=label)
            finish(ax, "", "", title if name == rest[0][0] else "").set_xlim(0, last)
            if column in ("tied_groups", "format", "lenient_accuracy"):  # shares
                ax.set_ylim(-0.05, 1.05)
            if tells.get(name) == column:
                ax.set_facecolor("#fdedc9")
        row[0].set_ylabel(name)
    figure.supxlabel("update")
    handles = grid[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    return [list(row) for row in grid]


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
    return axes


def plot_ways(rows: Sequence[Mapping[str, Any]], short: Sequence[str]) -> list[Axes]:
    """A small plot for each way to answer: the models side by side, a line a seed.

    rows hold a seed, and by model and way a share; `short` names the models below their
    columns. The seed with the weakest start is drawn in another colour, dashed.
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
        ax.set_xticks(range(len(models)), short)
        ax.set(ylim=(0, 1.03), xlim=(-0.3, len(models) - 0.7))
        finish(ax, "", "share right", way.replace(", ", ",\n")).label_outer()
    labels = ["each other seed", f"seed {weakest['seed']}, the weakest start"]
    lines = axes[0].lines[0], axes[0].lines[-1]
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}
    axes[0].figure.legend(lines, labels, ncols=2, **place)
    return axes
