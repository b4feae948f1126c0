"""What notebook 11 alone draws."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    DOWN,
    FAINT,
    GROUND,
    PI,
    UP,
    axes_row,
    divide_bars,
    finish,
    legend_above,
    legend_below,
    write,
)

UP_LOOK: dict[str, Any] = {"fc": UP, "ec": UP}
DOWN_LOOK: dict[str, Any] = {"fc": GROUND, "ec": DOWN, "hatch": "///"}


def plot_row(
    row: Tensor,
    begins: Tensor,
    masks: Mapping[str, Tensor],
    tokenizer: PreTrainedTokenizerBase,
) -> Axes:
    """The tokens of a row, wrapped. [pos] each

    A triangle stands where a turn begins, and a bar for each mask below what it marks.
    """
    width = 87  # characters of a line
    (ax,), x, y = axes_row(), 0.0, 0.5
    words = [str(tokenizer.decode([token])) for token in row.tolist()]
    bars = dict(zip(masks, ((PI, ""), (GROUND, "////")), strict=False))

    def bar(x: float, y: float, width: float, name: str) -> None:
        fill, hatch = bars[name]
        look: dict[str, Any] = {"fc": fill, "hatch": hatch, "ec": DOWN if hatch else PI}
        ax.add_patch(Rectangle((x, y), width, 0.15, lw=0.8, **look))

    def beginning(x: float, y: float) -> None:
        ax.plot(x, y, "v", color="black", ms=7)

    for place, word in enumerate(words):
        wide = len(word) + 1.0
        if x + wide > width:
            x, y = 0.0, y + 1.35
        ground = GROUND if word not in tokenizer.all_special_tokens else "#d9d9d9"
        box = Rectangle((x, y + 0.06), wide - 0.15, 0.7, fc=ground, ec=FAINT, lw=0.8)
        ax.add_patch(box)
        seen = "␣" if word == " " else word.replace("\n", "↵")
        look: dict[str, Any] = {"family": "DejaVu Sans Mono", "fontsize": 11}
        write(ax, seen, x + wide / 2, y + 0.4, parse_math=False, **look)
        if begins[place]:
            beginning(x + wide / 2, y - 0.1)
        for name, mask in masks.items():
            if mask[place]:
                bar(x, y + 0.82, wide, name)
        x += wide
    x, y = 0.0, y + 1.7
    for name in masks:
        bar(x, y + 0.35, 2.2, name)
        ax.text(x + 2.9, y + 0.4, name, va="center")
        x += len(name) + 5.5
    beginning(x + 1, y + 0.4)
    ax.text(x + 2.5, y + 0.4, "begins", va="center")
    plt.gcf().set_size_inches(0.098 * (width + 1), 0.33 * (y + 1))
    ax.set(xlim=(-1, width), ylim=(y + 1, 0), position=(0, 0, 1, 1))
    ax.axis("off")
    told = ", ".join(f"{name} {mask.sum()}" for name, mask in masks.items())
    text = f"A row of tokens, and how many each mask marks ({told}): {''.join(words)}"
    describe(ax.figure, text.replace("\n", " "))
    return ax


def hide_thin(ax: Axes) -> None:
    """Hide bars of next to no size, of which only the edge would be seen."""
    for bar in ax.patches:
        if isinstance(bar, Rectangle):
            bar.set_visible(abs(bar.get_width() * bar.get_height()) > 0.005)


def plot_paid(paid: Mapping[str, Tensor], right: Tensor) -> Axes:
    """How many texts each reward pays, and left of 0 what it misses. [... each]"""
    table = torch.stack([*paid.values()]).flatten(1)
    good = table @ right.flatten()
    bad, missed = table.sum(dim=1) - good, right.sum() - good
    parts = {
        "right, not paid": -missed,
        "right, and paid": good,
        "paid, not right": bad,
    }
    looks = [{"fc": GROUND, "ec": UP}, UP_LOOK, DOWN_LOOK]
    (ax,) = axes_row(width=8.0, height=2.8)
    divide_bars(ax, parts, [*paid], [look | {"lw": 1.5} for look in looks])
    told, counts = [], torch.stack([*parts.values()], dim=1).long().tolist()
    for row, (name, (no, yes, more)) in enumerate(zip(paid, counts, strict=True)):
        write(ax, str(-no or ""), no / 2, row)
        write(ax, str(yes), yes / 2, row, color="white", weight="bold")
        write(ax, str(more), yes + more, row, (6, 0), ha="left")
        told.append(f"{name} {yes} right and {more} others, not {-no} right ones")
    most = table.sum(dim=1).max().item()
    ax.set(xlabel=f"texts, of {right.numel()}", xlim=(-0.07 * most, 1.1 * most))
    ax.axvline(0, color="black", lw=0.8)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    legend_above(ax)
    hide_thin(ax)
    describe(ax.figure, f"Texts paid: {'; '.join(told)}.")
    return ax


def plot_strays(deltas: Mapping[str, Tensor], strict: Tensor) -> list[Axes]:
    """The positive deltas of each group, by what pays the text. [problem trial] each"""
    axes = axes_row(len(deltas), 9.0, 3.3)
    told = []
    for ax, (name, given) in zip(axes, deltas.items(), strict=True):
        push = given.clamp(min=0)
        good, bad = (push * strict).sum(dim=1), (push * (1 - strict)).sum(dim=1)
        groups = range(len(push))
        ax.bar(groups, good, 0.8, label="paid by strict", **UP_LOOK)
        ax.bar(groups, bad, 0.8, good, label="paid by form alone", **DOWN_LOOK)
        share = bad.sum() / push.sum()
        told.append(f"{name}: {share:.3f}")
        finish(ax, "group", "push", f"{name}:\n{share:.1%} to form alone")
        ax.set_ylim(0, 4)
    legend_below(axes)
    for ax in axes:
        hide_thin(ax)
    text = "The push of each group; share at texts that only form pays"
    describe(axes[0].figure, f"{text}: {', '.join(told)}.")
    return axes
