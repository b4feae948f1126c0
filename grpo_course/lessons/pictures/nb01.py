"""What notebook 01 alone draws."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    DOWN,
    LEVEL,
    REWARD_MAP_SHADES,
    UP,
    empty_tables,
    frame,
)

# What a reward pays every response and whole groups, and where it leads training.


def plot_reward_map(
    rewards: dict[str, Tensor], dead_ends: dict[str, Tensor]
) -> list[list[Axes]]:
    """The reward of each response, as a colour and a number, its dead ends framed.

    A row of tables for each reward, and in it a table for each first number; the
    second number is the row of the table, the third its column. rewards[name] is
    [first second third], dead_ends[name] lists the responses in question, [end pos].
    """
    grid = empty_tables(len(rewards), len(next(iter(rewards.values()))))
    for axes, (name, cube) in zip(grid, rewards.items(), strict=True):
        for ax, table in zip(axes, cube, strict=True):
            draw_table(ax, table, cube, [[f"{r:g}" for r in row] for row in table])
        for end in dead_ends[name].tolist():
            frame(axes, end, DOWN)
        axes[0].set_ylabel(f"{name}\nsecond")
    told = [f"{name} {len(ends)}" for name, ends in dead_ends.items()]
    text = "The reward of each response as a cell with its number, the best with a star"
    describe(grid[0][0].figure, f"{text}, dead ends framed: {', '.join(told)}.")
    return grid


def plot_climbs(rewards: Tensor, dead_ends: Tensor, ends: Tensor) -> list[Axes]:
    """Where training led from each response, written in its cell unless to the best.

    Dead ends are framed: green if training left them for the best, orange if it stayed,
    grey if it ended elsewhere. The tables are those of `plot_reward_map`; ends is
    [first second third pos].
    """
    (axes,) = empty_tables(1, len(rewards))
    best = (rewards == rewards.max()).nonzero()[0]
    for ax, table, rows in zip(axes, rewards, ends, strict=True):
        words = [[digits(end, best) for end in row] for row in rows]
        draw_table(ax, table, rewards, words)
    colours = [colour_of(start, ends, best) for start in dead_ends]
    for start, colour in zip(dead_ends.tolist(), colours, strict=True):
        frame(axes, start, colour)
    axes[0].set_ylabel("second")
    add_key(axes[0].figure)
    left, held, moved = (colours.count(colour) for colour in (UP, DOWN, LEVEL))
    others = int((ends == best).all(dim=-1).sum()) - left - 1
    text = "Each response as a cell, which holds the end of training from there if it "
    text += f"is not the best. Dead ends are framed: {left} led to the best, {held} "
    text += f"held the policy, {moved} led elsewhere. {others} of the other wrong "
    text += "responses led to the best."
    describe(axes[0].figure, text)
    return axes


def add_key(figure: Any) -> None:
    """One line above the tables: what a dead end's frame says, and what a number."""
    meanings = {UP: "led to the star", DOWN: "held", LEVEL: "led elsewhere"}
    frames = [Rectangle((0, 0), 1, 1, fill=False, ec=c, lw=2) for c in meanings]
    nothing = Rectangle((0, 0), 1, 1, alpha=0)
    words = ["frame:", *meanings.values(), "number: the end, empty: the star"]
    style: dict[str, Any] = {"ncols": 5, "frameon": False, "handlelength": 1.0}
    handles = [nothing, *frames, nothing]
    figure.set_figheight(figure.get_figheight() + 0.35)
    figure.legend(handles, words, loc="outside upper center", **style)


def colour_of(start: Tensor, ends: Tensor, best: Tensor) -> str:
    """Whether training went from a dead end to the best, stayed or ended elsewhere."""
    end = ends[tuple(start)]
    return UP if torch.equal(end, best) else DOWN if torch.equal(end, start) else LEVEL


def digits(end: Tensor, best: Tensor) -> str:
    """A response as one writes it, such as 201; nothing for the best."""
    return "" if torch.equal(end, best) else "".join(map(str, end.tolist()))


def draw_table(ax: Axes, table: Tensor, cube: Tensor, words: list[list[str]]) -> None:
    """One first number: a word in each cell, but a star at the best response."""
    low, high = cube.min().item(), cube.max().item()
    ax.imshow(table, cmap=REWARD_MAP_SHADES, vmin=low, vmax=high)
    for row, values in enumerate(table.tolist()):
        for column, value in enumerate(values):
            word = "★" if value == high else words[row][column]
            ink = "white" if value > low + 0.6 * (high - low) else "black"
            size = 12 if len(word) < 3 else 10
            ax.text(column, row, word, ha="center", va="center", color=ink, size=size)
    ax.set(xticks=range(table.shape[1]), yticks=range(table.shape[0]))
    ax.grid(visible=False)


def draw_groups(rewards: Tensor, count: int, size: int, seed: int = 0) -> Tensor:
    """Groups of rewards at uniform guessing. [all] -> [group trial]"""
    generator = torch.Generator().manual_seed(seed)
    return rewards[torch.randint(len(rewards), (count, size), generator=generator)]
