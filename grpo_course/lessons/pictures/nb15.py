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

# Runs of texts in rows: their groups, their curves; training beside held out.


Group = tuple[str, Sequence[str], Sequence[float]]  # the right answer, given, pay


SHARES = {"tied_groups", "format", "lenient_accuracy"}


GIVES_AWAY = "#fdedc9"  # the ground of the panel that tells how a run fails


def plot_answers(runs: Mapping[str, Sequence[Group]]) -> Axes:
    """Groups of answers, a row for each run; left of each group stands what is right.

    Pay is a share of the most that a run pays: the more, the darker is the cell.
    """
    blocks = max(map(len, runs.values()))
    ax = axes_row(width=11, height=0.45 * len(runs) + 0.5)[0]
    ax.set(xlim=(-2.5, 12 * blocks), ylim=(1.2 * len(runs) + 1, -0.2))
    ax.set_position((0, 0, 1, 1))
    ax.axis("off")
    told = []
    for row, (name, groups) in enumerate(runs.items()):
        name_row(ax, 1.2 * row, name)
        for place, group in enumerate(groups):
            draw_answers(ax, 12 * place, 1.2 * row, group)
        ties = sum(len({*pay}) == 1 for _, _, pay in groups)
        kinds = len({answer for _, given, _ in groups for answer in given})
        told.append(f"{name} {ties} tied, different answers {kinds}")
    words = "bold: the right answer; darker is paid more; × is tied, ✓ has a signal"
    ax.text(6 * blocks, 1.2 * len(runs) + 0.6, words, ha="center", va="center")
    describe(ax.figure, f"{blocks} groups of answers a run. {'; '.join(told)}.")
    return ax


def draw_answers(ax: Axes, x: float, y: float, group: Group) -> None:
    """A group as cells, which hold its answers and are coloured by their pay."""
    right, given, paid = group
    style: dict = {"va": "center"}
    ax.text(x + 1.8, y + 0.5, right, ha="right", weight="bold", **style)
    for place, (answer, pay) in enumerate(zip(given, paid, strict=True)):
        shade = to_hex(plt.get_cmap("Blues")(0.08 + 0.47 * pay))  # black is read on it
        cell(ax, x + 2.1 + place, y, answer, colour=shade)
    sign, ink = ("×", DOWN) if len({*paid}) == 1 else ("✓", "black")
    ax.text(x + 2.7 + len(given), y + 0.5, sign, ha="center", color=ink, **style)


def plot_run_rows(
    runs: dict[str, History],
    columns: dict[str, str],
    window: int = 5,
    tells: dict[str, str] | None = None,
) -> list[list[Axes]]:
    """A row for each run but the first, which is drawn behind it in grey.

    `columns` maps a column of a history to its title. A point is the mean of `window`
    updates; the axes are those of the longest run that is not the first. `tells` maps
    a run to the column that gives it away, whose panel is shaded.
    """
    (healthy, usual), *rest = runs.items()
    size = (11, 1.35 * len(rest) + 0.7)
    share: dict = {"sharex": True, "sharey": "col", "layout": "constrained"}
    figure, grid = plt.subplots(
        len(rest), len(columns), squeeze=False, figsize=size, **share
    )
    last = max(len(run.records) for _, run in rest)
    for row, (name, run) in zip(grid, rest, strict=True):
        for ax, column in zip(row, columns, strict=True):
            draw_curve(ax, usual, column, window, color="0.6", lw=3, label=healthy)
            draw_curve(ax, run, column, window, color=COLOURS[1], label="this run")
            ax.set_xlim(0, last)
            if column in SHARES:
                ax.set_ylim(-0.05, 1.05)
            if tells and tells.get(name) == column:
                ax.set_facecolor(GIVES_AWAY)
        row[0].set_ylabel(name)
    for ax, title in zip(grid[0], columns.values(), strict=True):
        ax.set_title(title)
    figure.supxlabel("update")
    handles = grid[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    describe(figure, in_words_of_run_rows(runs, columns, window, tells or {}))
    return [list(row) for row in grid]


def in_words_of_run_rows(
    runs: dict[str, History], columns: dict[str, str], window: int, tells: dict
) -> str:
    """The rows for readers who cannot see them: where each curve starts and ends."""
    told = []
    for name, run in runs.items():
        curves = {t: smoothed(run, column, window) for column, t in columns.items()}
        ends = [
            f"{title} from {curve[0].item():.2f} to {curve[-1].item():.2f}"
            for title, curve in curves.items()
        ]
        told.append(f"{name}: {', '.join(ends)}")
    told += [f"shaded for {name}: {columns[tells[name]]}" for name in tells]
    return f"A row for each run beside the first. {'; '.join(told)}."


def draw_curve(ax: Axes, run: History, column: str, window: int, **look) -> None:
    """A column of a run, as means of so many updates, each at the last of them."""
    smooth = smoothed(run, column, window)
    ax.plot(range(window, window + len(smooth)), smooth, **look)
    ax.grid(alpha=0.3)


def smoothed(run: History, column: str, window: int) -> Tensor:
    """Means of so many updates. -> [update-window+1]"""
    return run.curve(column).flatten().float().unfold(0, window, 1).mean(-1)


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
    told = [
        f"{name}: training from {curve[0]:.2f} to {curve[-1]:.2f}, held out from "
        f"{held_out[name][0]:.2f} to {held_out[name][-1]:.2f}"
        for name, curve in training.items()
    ]
    describe(axes[0].figure, f"{'; '.join(told)}. The gap between them is shaded.")
    return axes


# What each seed gained, and by which training, for each way to answer.


def plot_ways(rows: Sequence[Mapping[str, Any]], short: Sequence[str]) -> list[Axes]:
    """A small plot for each way to answer: the models side by side, a line a seed.

    Rows are those of `lessons/own_task_seeds.json`; `short` names the models below
    their columns. The seed with the weakest start is drawn in another colour, dashed.
    """
    models = [name for name in rows[0] if name != "seed"]

    def in_words(way: str) -> str:
        """Where the seeds lie, model by model."""
        shares = {m: [row[m][way] for row in rows] for m in models}
        spans = [f"{m} {min(s):.2f} to {max(s):.2f}" for m, s in shares.items()]
        return f"{way}: {', '.join(spans)}"

    ways = list(rows[0][models[0]])
    weakest = min(rows, key=lambda row: row[models[0]][ways[0]])
    axes = axes_row(len(ways), width=11, height=3.4)
    for ax, way in zip(axes, ways, strict=True):
        for row in rows:
            shares = [row[model][way] for model in models]
            draw_seed(ax, shares, row["seed"], row is weakest)
        ax.set_title(way.replace(", ", ",\n"))
        ax.set_xticks(range(len(models)), short)
        ax.set(ylim=(0, 1.03), xlim=(-0.3, len(models) - 0.7))
        ax.label_outer()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("share right")
    figure = axes[0].figure
    named = [each for each in axes[0].lines if str(each.get_label())[0] != "_"]
    figure.legend(handles=named, loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1))
    describe(figure, f"A line for each seed. {'; '.join(map(in_words, ways))}.")
    return axes


def draw_seed(ax: Axes, shares: list[float], seed: int, is_weakest: bool) -> None:
    """One seed's line through its models."""
    look: dict[str, Any] = {"color": COLOURS[0], "lw": 1, "alpha": 0.75}
    label = "each other seed"
    if is_weakest:
        look = {"color": COLOURS[1], "lw": 2, "ls": "--"}
        label = f"seed {seed}, the weakest start"
    known = {line.get_label() for line in ax.lines}
    ax.plot(
        shares, marker="o", ms=5, label="_again" if label in known else label, **look
    )
