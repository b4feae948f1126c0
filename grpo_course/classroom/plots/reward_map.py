"""What a reward pays: to every response there is, and to whole groups."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.plots import finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN

SHADES = "Blues"


def plot_reward_map(
    rewards: dict[str, Tensor], dead_ends: dict[str, Tensor]
) -> list[list[Axes]]:
    """The reward of each response as the colour of a cell, its dead ends framed.

    A row of tables for each reward, and in it a table for each first number; the
    second number is the row of the table, the third its column. rewards[name] is
    [first second third], dead_ends[name] lists the responses in question, [end pos].
    """
    first = next(iter(rewards.values())).shape[0]
    size = (1.75 * first, 0.5 + 1.75 * len(rewards))
    figure, grid = plt.subplots(
        len(rewards), first, figsize=size, squeeze=False, layout="constrained"
    )
    for axes, (name, cube) in zip(grid, rewards.items(), strict=True):
        for number, (ax, table) in enumerate(zip(axes, cube, strict=True)):
            ends = [end for end in dead_ends[name].tolist() if end[0] == number]
            draw_table(ax, table, cube, ends)
            finish(ax, "", "").grid(visible=False)
        axes[0].set_ylabel(f"{name}\nsecond")
    for number, (top, bottom) in enumerate(zip(grid[0], grid[-1], strict=True)):
        top.set_title(f"first number {number}", fontsize=11)
        bottom.set_xlabel("third")
    told = [f"{name} {len(ends)}" for name, ends in dead_ends.items()]
    text = "The reward of each response as the colour of a cell, the best with a star"
    describe(figure, f"{text}, dead ends framed. Dead ends: {', '.join(told)}.")
    return [list(axes) for axes in grid]


def draw_table(ax: Axes, table: Tensor, cube: Tensor, ends: list[list[int]]) -> None:
    """One first number: colours, a star at the best response, frames at dead ends."""
    low, high = cube.min().item(), cube.max().item()
    ax.imshow(table, cmap=SHADES, vmin=low, vmax=high)
    for row, column in (table == high).nonzero().tolist():
        ax.text(column, row, "★", ha="center", va="center", color="white", size=12)
    style: dict[str, Any] = {"fill": False, "ec": DOWN, "lw": 2}
    for _, row, column in ends:
        ax.add_patch(Rectangle((column - 0.42, row - 0.42), 0.84, 0.84, **style))
    ax.set(xticks=range(table.shape[1]), yticks=range(table.shape[0]))


def plot_ties(rewards: Tensor, most: float) -> Axes:
    """Groups as columns of cells, coloured by reward; tied ones crossed. [group trial]

    `most` is the largest reward there is.
    """
    figure, ax = plt.subplots(figsize=(7.5, 3.0), layout="constrained")
    # No response is as light as the paper: a reward of 0 is a response too.
    style: dict[str, Any] = {"cmap": SHADES, "vmin": -0.15 * most, "vmax": most}
    ax.imshow(rewards.T, aspect="auto", interpolation="nearest", **style)
    for edge in range(1, len(rewards)):
        ax.axvline(edge - 0.5, color="white", lw=2)
    tied = (rewards == rewards[:, :1]).all(dim=1)
    above = ["×" if each else "✓" for each in tied.tolist()]
    ax.set_xticks(range(len(rewards)), above, fontsize=12)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for label, each in zip(ax.get_xticklabels(), tied.tolist(), strict=True):
        label.set_color(DOWN if each else "black")
    finish(
        ax, "groups: × is tied, ✓ has a signal; darker earns more", "responses"
    ).grid(visible=False)
    ax.set_yticks([])
    count = f"{int(tied.sum())} of {len(tied)} groups are tied"
    text = f"Groups of {rewards.shape[1]} as columns of cells coloured by reward"
    describe(figure, f"{text}; {count}.")
    return ax


def draw_groups(rewards: Tensor, count: int, size: int, seed: int = 0) -> Tensor:
    """Groups of rewards at uniform guessing. [all] -> [group trial]"""
    generator = torch.Generator().manual_seed(seed)
    return rewards[torch.randint(len(rewards), (count, size), generator=generator)]
