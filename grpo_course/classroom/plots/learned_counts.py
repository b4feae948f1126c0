"""Bars of shares: how many of its prompts each seed has learned, which of them push."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import finish
from grpo_course.classroom.plots.alt_text import describe

# From none to all: light to dark, so that the order is seen without the colours.
SHADES = ("#f0f0f0", "#b3cde3", "#4f94c4", "#0b3c68")


def learned(shares: Tensor, num_prompts: int = 3) -> Tensor:
    """How many seeds learned 0, 1, ... of their prompts. [seed] -> int [prompts + 1]

    A seed's mean P(sorted) over its prompts, times their number, is rounded: at the end
    of a run nearly every prompt is sorted always or never.
    """
    counts = (shares * num_prompts).round().long().flatten()
    return torch.bincount(counts, minlength=num_prompts + 1)


def plot_learned(
    groups: dict[str, dict[str, Tensor]], num_prompts: int = 3
) -> list[Axes]:
    """One table of bars for each group, a bar for each setting; P(sorted) is [seed].

    A bar is divided by how many seeds learned 0, 1, 2, ... prompts; its mean stands
    at its end. All groups have the same settings.
    """
    rows = list(next(iter(groups.values())))
    size = (9.0 if len(groups) > 1 else 7.3, 1.5 + 0.36 * len(rows))
    figure, grid = plt.subplots(
        1, len(groups), figsize=size, squeeze=False, layout="constrained"
    )
    axes, xlabel = list(grid[0]), "share of the seeds"
    xlabel += "; at the right the mean P(sorted)" if len(groups) == 1 else ""
    for ax, (title, settings) in zip(axes, groups.items(), strict=True):
        for row, shares in enumerate(settings.values()):
            draw_bar(ax, row, shares, num_prompts)
        ax.set_yticks(range(len(rows)), rows if ax is axes[0] else [""] * len(rows))
        ax.set(xlim=(0, 1.18), ylim=(len(rows) - 0.5, -0.5), xticks=(0, 0.5, 1))
        finish(ax, xlabel, "", title).grid(visible=False)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    handles = [axes[0].patches[k] for k in range(num_prompts + 1)]
    names = [f"{k} of {num_prompts}" for k in range(num_prompts + 1)]
    place: Any = {"loc": "outside upper center", "ncols": num_prompts + 1}
    figure.legend(handles, names, title="prompts learned", **place)
    describe(figure, f"Prompts learned, as bars of shares. {told(groups)}")
    return axes


def draw_bar(ax: Axes, row: int, shares: Tensor, num_prompts: int) -> None:
    """One setting: the shares of the seeds from left to right, then the mean."""
    counts = learned(shares, num_prompts)
    divide_bar(ax, row, counts, SHADES)
    ax.text(1.02, row, f"{shares.mean():.2f}", va="center")


def divide_bar(ax: Axes, row: int, sizes: Tensor, shades: Sequence[str]) -> None:
    """One bar of length one, divided in proportion to the sizes."""
    start = 0.0
    for share, shade in zip((sizes / sizes.sum()).tolist(), shades, strict=True):
        ax.barh(row, share, 0.74, start, color=shade, edgecolor="#4d4d4d", lw=0.8)
        start += share


def plot_divided(
    sizes: dict[str, Tensor], names: Sequence[str], xlabel: str, title: str = ""
) -> Axes:
    """A bar for each setting, divided into the shares of three parts. [part] each

    `names` are those of the parts, and `title` stands over them.
    """
    height = 0.8 + 0.36 * len(sizes) + (0.4 if title else 0.2)
    figure, ax = plt.subplots(figsize=(7.5, height), layout="constrained")
    for row, size in enumerate(sizes.values()):
        divide_bar(ax, row, size, SHADES[1:])
    ax.set_yticks(range(len(sizes)), list(sizes))
    ax.set(xlim=(0, 1), ylim=(len(sizes) - 0.5, -0.5), xticks=(0, 0.5, 1))
    finish(ax, xlabel, "").grid(visible=False)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    place: Any = {"loc": "outside upper center", "ncols": len(names)}
    figure.legend(ax.patches[: len(names)], names, title=title, **place)
    told = [f"{setting} {share_words(size)}" for setting, size in sizes.items()]
    text = f"Bars divided by {xlabel}, {', '.join(names)}"
    describe(figure, f"{text}: {'; '.join(told)}.")
    return ax


def share_words(sizes: Tensor) -> str:
    """The shares of one bar, in words."""
    return ", ".join(f"{share:.2f}" for share in (sizes / sizes.sum()).tolist())


def told(groups: dict[str, dict[str, Tensor]]) -> str:
    """The mean of each bar, in words."""
    parts = [
        f"{title} {name} {shares.mean():.2f}".strip()
        for title, settings in groups.items()
        for name, shares in settings.items()
    ]
    return f"Mean P(sorted): {'; '.join(parts)}."
