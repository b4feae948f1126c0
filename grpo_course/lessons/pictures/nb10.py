"""What notebook 10 alone draws: the trainer of the hunt, its logs, what probes say of it."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    axes_grid,
    axes_row,
    draw_arrow,
    draw_box,
    finish,
)
from grpo_course.lessons.pictures.shared import draw_costs

WELL, ILL = COLOURS[0], COLOURS[1]
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
            ax.plot(curve, color=ILL, lw=1.8, label="this run")
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
    figure, handles = axes[0].figure, axes[0].get_legend_handles_labels()
    figure.supxlabel("rollout")
    figure.legend(*handles, loc="outside upper center", ncols=2)
    return axes


# Rows of boxes: how often, where the row begins, and of each method what it makes.
FLOW: dict[str, tuple[str, tuple[float, float], dict[str, str]]] = {
    "collect": (
        "once a rollout",
        (0.0, 2.2),
        {
            "draw_problems": "8 lists of\nnumbers",
            "encode": "prompts,\npadded left",
            "sample": "8 responses\nto each",
            "pay": "reward of\neach text",
            "compute_deltas": "compared in\nits group",
            "response_mask": "tokens\nthat count",
            "score": "old and ref.\nlog-probs",
        },
    ),
    "step": (
        "4 times on the same rollout",
        (0.0, 0.15),
        {
            "score": "log-probs\nby now",
            "token_losses": "ratio, clip,\nKL",
            "update": "gradient,\nin parts",
        },
    ),
    "made": ("once", (6.6, 0.15), {"__init__": "optimizer,\nschedule"}),
}


def draw_flow() -> Axes:
    """The stages of the trainer as boxes, and arrows from one to the next."""
    ax = axes_grid(1, 1, 10.9, 3.6)[0][0]
    ax.set(xlim=(-0.3, 14.2), ylim=(-0.1, 3.8))
    ax.axis("off")
    wide, high, apart = 1.86, 0.95, 2.0  # of a box, and from one to the next

    def box(corner: tuple, size: tuple, fill: str) -> None:
        draw_box(ax, corner, size, "", facecolor=fill, lw=1)

    def arrow(foot: tuple, head: tuple, size: int) -> None:
        draw_arrow(ax, foot, head, 0, 1, mutation_scale=size, path_effects=[])

    for name, (often, (left, y), methods) in FLOW.items():
        size = apart * (len(methods) - 1) + wide + 0.3, high + 0.6
        box((left - 0.15, y - 0.15), size, "#f3f3f3")
        ax.text(left, y + high + 0.2, f"{name}: {often}", color="#555555", va="center")
        for place, (method, makes) in enumerate(methods.items()):
            x = left + place * apart
            box((x, y), (wide, high), "white")
            ax.text(x + wide / 2, y + 0.74, method, **MIDDLE)
            ax.text(x + wide / 2, y + 0.32, makes, color="#444444", **MIDDLE)
            if place:
                arrow((x - apart + wide, y + high / 2), (x, y + high / 2), 10)
    arrow((3.0, 2.05), (3.0, 1.55), 14)
    rows = [f"{name}: {', '.join(methods)}" for name, (_, _, methods) in FLOW.items()]
    describe(ax.figure, f"The stages of the trainer as boxes. {'; '.join(rows)}.")
    return ax


# What probes say, what defects cost.


def plot_matrix(rows: Mapping[str, Any], order: Sequence[int], num_lower: int) -> Axes:
    """A row for each probe, of what it said: a filled cell is a trainer in which it fires.

    All healthy trainers stand left of the line, with the number of false alarms in their
    cell; the broken ones on its right, in the order given by their numbers. The first
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
    shades = {"silent": "#E6E6E6", "fires": WELL, "error": ILL}
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
        (1 + num_lower / 2, "they lower the reward"),
        (1 + num_lower + num_others / 2, "they do not"),
    ):
        ax.text(middle, -0.35, words, fontsize=11, **MIDDLE)
    names = [f"false alarms in\n{len(first.healthy)} healthy", *map(str, order)]
    ax.set_xticks([x + 0.5 for x in range(len(names))], names, fontsize=10)
    ax.get_xticklabels()[0].set(ha="right")
    ax.set_yticks([y + 0.5 for y in range(len(rows))], list(rows), fontsize=10)
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.invert_yaxis()
    ax.set_xlabel("broken trainer, from the largest loss of reward to the largest gain")
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


def plot_costs(
    costs: dict[int, tuple[float, float]], seen: Sequence[int]
) -> list[Axes]:
    """What each defect costs: on the left all of them, on the right near zero.

    Rows of `seen` are coloured, the others grey.
    """
    left, right = axes_row(2, width=11.0, height=1.0 + 0.22 * len(costs))
    for ax, title in (
        (left, "bars: three standard errors"),
        (right, "the grey strip, magnified"),
    ):
        draw_costs(ax, costs, "reward with the bug minus without", title, seen)
    near = (-0.1, 0.07)
    left.axvspan(*near, color="grey", alpha=0.2, lw=0)
    right.set(xlim=near, yticklabels=[])
    left.set_ylabel("trainer")
    plt.tight_layout()
    return [left, right]
