"""What notebook 10 alone draws: the hunt's trainer, its logs, what probes say of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    LEVEL,
    axes_grid,
    axes_row,
    finish,
    legend_outside,
)
from grpo_course.lessons.pictures.shared import draw_costs

WELL, ILL = COLOURS[0], COLOURS[1]  # for the reward; whatever else is grey or black
MIDDLE: dict[str, Any] = {"ha": "center", "va": "center"}

# Title of a small plot -> what it draws of the log.
PANEL = {
    "reward": ("reward",),
    "length (tokens)": ("length",),
    "entropy (nats a token)": ("entropy",),
    "KL (nats a token)": ("kl",),
    "ratio, lowest and highest": ("ratio_low", "ratio_high"),
    "clipped tokens (share)": ("clip_fraction",),
    "gradient norm": ("gradient_norm",),
    "learning rate": ("learning_rate",),
}
FAR = 8.0  # times the healthy range: from there on powers of ten are drawn

Log = Sequence[dict[str, float]]


def plot_log_panel(log: Log, healthy: Sequence[Log]) -> list[Axes]:
    """A small plot for each measure: the range of healthy runs, this run over it.

    Measures that the log does not hold are left out.
    """
    panel = {title: names for title, names in PANEL.items() if names[0] in log[0]}
    rows, columns = (2, 4) if len(panel) > 4 else (1, len(panel))
    grid = axes_grid(rows, columns, 1.6 + 2.35 * columns, 0.8 + 1.7 * rows)
    axes = [ax for row in grid for ax in row]
    band = "from the lowest to the highest of the healthy runs"
    if columns == 1:
        band = "healthy runs"
    for ax, (title, names) in zip(axes, panel.items(), strict=True):
        usual = torch.tensor(
            [[[row[n] for row in run] for run in healthy] for n in names]
        )
        here = torch.tensor([[row[n] for row in log] for n in names])
        for runs, curve in zip(usual, here, strict=True):
            low, high = runs.aminmax(dim=0)
            steps, grey = range(len(curve)), "0.8"
            ax.fill_between(steps, low, high, color=grey, lw=1.5, label=band)
            ax.plot(curve, color="black", lw=1.8, label="this run")
        if here.abs().max() > FAR * usual.abs().max():
            title += ", log scale"
            if min(here.abs().min(), usual.abs().min()) > 0:
                ax.set_yscale("log")
            else:  # a KL begins at zero
                ax.set_yscale("symlog", linthresh=usual.abs().max().item())
        if "ratio_low" in names and min(here.min(), usual.min()) > 0:
            ax.set_yscale("log")
            ax.axhline(1, color="black", lw=0.8, ls=":")
        finish(ax, "", "", title).tick_params(labelsize=11)
        if ax.get_yscale() == "log":  # ticks at 0.1, 0.3, 1, 3 and so on
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.yaxis.set_minor_locator(NullLocator())
            ax.grid(axis="y", alpha=0.8)
    axes[0].figure.supxlabel("rollout")
    legend_outside(axes)
    return axes


# What probes say, what defects cost.


def plot_matrix(rows: Mapping[str, Any], order: Sequence[int], num_lower: int) -> Axes:
    """What each probe said, a row each: a filled cell is a trainer in which it fires.

    All healthy trainers stand left of the line, with their number of false alarms;
    the broken ones on its right, in the order given by their numbers. The first
    `num_lower` of them lower the reward.
    """
    first, level = next(iter(rows.values())), {"silent": 0, "fires": 1}
    table = []
    for row in rows.values():
        worst = max(level.get(each, 2) for each in row.healthy.values())
        said = [level.get(row.broken[number], 2) for number in order]
        table.append([worst, *said])
    size = 3.0 + 0.22 * len(order), 1.45 + 0.24 * len(rows)
    ax = axes_grid(1, 1, *size)[0][0]
    shades = {"silent": "#E6E6E6", "fires": "0.35", "error": ILL}
    look: dict[str, Any] = {
        "cmap": ListedColormap([*shades.values()]),
        "vmin": 0,
        "vmax": 2,
    }
    ax.pcolormesh(table, edgecolors="white", lw=1.2, **look)
    for y, row in enumerate(rows.values()):
        ax.text(0.5, y + 0.5, str(len(row.alarms())), fontsize=10, **MIDDLE)
    for border in (1, 1 + num_lower):
        ax.axvline(border, color="black", lw=1.5)
    num_others = len(order) - num_lower
    for middle, words in (
        (1 + num_lower / 2, "seen to lower the reward"),
        (1 + num_lower + num_others / 2, "not seen to lower it"),
    ):
        ax.text(middle, -0.35, words, fontsize=11, **MIDDLE)
    names = [f"false alarms in\n{len(first.healthy)} healthy", *map(str, order)]
    ax.set_xticks([x + 0.5 for x in range(len(names))], names, fontsize=10)
    ax.get_xticklabels()[0].set(ha="right")
    ax.set_yticks([y + 0.5 for y in range(len(rows))], list(rows), fontsize=10)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.invert_yaxis()
    ax.set_xlabel(
        "number of the bug, from the largest loss of reward to the largest gain"
    )
    worst = max(map(max, table))
    patches = [
        Patch(color=shade, label=name)
        for place, (name, shade) in enumerate(shades.items())
        if place <= max(worst, 1)
    ]
    ax.figure.legend(handles=patches, loc="outside upper right", ncols=3, fontsize=10)
    told = [f"{name} fires for {row.found() or 'none'}" for name, row in rows.items()]
    describe(
        ax.figure, f"A table of probes and numbers of trainers: {'; '.join(told)}."
    )
    return ax


def plot_costs(costs: dict[int, tuple[float, float]], seen: Sequence[int]) -> Axes:
    """What each defect costs; one too large for the picture is written there.

    Rows of `seen` are coloured, the others grey.
    """
    ax = axes_row(width=9.0, height=1.0 + 0.2 * len(costs))[0]
    title = "bars and ±: three standard errors on either side"
    draw_costs(ax, costs, "reward with the bug minus without", title, seen)
    least = -0.15
    for row, (mean, error) in enumerate(costs.values()):
        if mean < least:
            told = f" ◂ −{-mean:.2f} ± {3 * error:.2f}"
            ax.text(least, row, told, color=ILL, va="center", fontsize=11)
    said = {"seen to lower the reward": ILL, "eight pairs cannot tell": LEVEL}
    patches = [
        Patch(color=shade, label=name)
        for name, shade in (said | {"seen to raise it": WELL}).items()
    ]
    ax.legend(handles=patches, loc="upper right", fontsize=11)
    ax.set(xlim=(least, 0.08), ylabel="number of the bug")
    plt.tight_layout()
    return ax


def print_seen(awake: Mapping[int, Any], default: Mapping[int, Any]) -> None:
    """How many defects the reward tells from nothing, by the way that it goes: at the
    settings that wake each, and at the script's own."""
    for name, costs, num_pairs in (
        ("eight pairs of runs", awake, 8),
        ("one pair of runs", awake, 1),
        ("eight pairs, default settings", default, 8),
    ):
        seen = [cost.mean for cost in costs.values() if cost.is_seen(num_pairs)]
        lower = sum(mean < 0 for mean in seen)
        print(f"{name:30} {lower:2} lower the reward, {len(seen) - lower} raise it")
