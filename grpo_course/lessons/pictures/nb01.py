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
    LINED,
    UP,
    axes_grid,
    draw_cube,
    frame,
)


def plot_reward_map(
    rewards: dict[str, Tensor], dead_ends: dict[str, Tensor]
) -> list[list[Axes]]:
    """The reward of each response, as a colour and a number, its dead ends framed.

    A row of tables for each reward, and in it a table for each first number; the
    second number is the row of the table, the third its column. rewards[name] is
    [first second third], dead_ends[name] lists the responses in question, [end pos].
    """
    grid = axes_grid(len(rewards), 5, 10.0, 0.6 + 1.8 * len(rewards))
    for axes, (name, cube) in zip(grid, rewards.items(), strict=True):
        best, lists = cube.max(), cube.tolist()
        texts = [
            [["★" if r == best else f"{r:g}" for r in row] for row in t] for t in lists
        ]
        draw_cube(axes, cube, texts, limits=(cube.min(), best))
        for first, second, third in dead_ends[name].tolist():
            frame(axes[first], second, third, 0.9, ec=DOWN, lw=2, path_effects=LINED)
        axes[0].set_ylabel(f"{name}\nsecond")
    for above, below in zip(grid[0], grid[-1], strict=True):
        above.set_xlabel("")
        below.set_title("")
    told = ", ".join(f"{name} {len(ends)}" for name, ends in dead_ends.items())
    describe(
        grid[0][0].figure,
        f"Each response as a cell with its reward, dead ends framed: {told}.",
    )
    return grid


def plot_climbs(rewards: Tensor, dead_ends: Tensor, ends: Tensor) -> list[Axes]:
    """Where training led from each response, written in its cell unless to the best.

    Dead ends are framed: green if training left them for the best, orange if it stayed,
    grey if it ended elsewhere. The tables are those of `plot_reward_map`; ends is
    [first second third pos].
    """
    (axes,) = axes_grid(1, 5, 10.0, 2.75)
    best = (rewards == rewards.max()).nonzero()[0].tolist()
    texts = [
        [
            ["" if end == best else "".join(map(str, end)) for end in row]
            for row in table
        ]
        for table in ends.tolist()
    ]
    texts[best[0]][best[1]][best[2]] = "★"
    draw_cube(axes, rewards, texts, limits=(rewards.min(), rewards.max()), size=10)
    for start in dead_ends.tolist():
        end = ends[tuple(start)].tolist()
        colour = UP if end == best else DOWN if end == start else LEVEL
        frame(
            axes[start[0]], start[1], start[2], 0.9, ec=colour, lw=2, path_effects=LINED
        )
    meanings = {UP: "led to the star", DOWN: "held", LEVEL: "led elsewhere"}
    frames = [
        Rectangle((0, 0), 1, 1, fill=False, ec=colour, lw=2) for colour in meanings
    ]
    nothing = Rectangle((0, 0), 1, 1, alpha=0)
    words = ["frame:", *meanings.values(), "number: the end, empty: the star"]
    place: Any = {"loc": "outside upper center", "ncols": 5, "handlelength": 1.0}
    axes[0].figure.legend([nothing, *frames, nothing], words, frameon=False, **place)
    stuck = sum(torch.equal(ends[tuple(start)], start) for start in dead_ends)
    text = f"Where training led from each response; {stuck} of {len(dead_ends)} dead ends held it."
    describe(axes[0].figure, text)
    return axes


def draw_groups(rewards: Tensor, count: int, size: int, seed: int = 0) -> Tensor:
    """Groups of rewards at uniform guessing. [all] -> [group trial]"""
    generator = torch.Generator().manual_seed(seed)
    return rewards[torch.randint(len(rewards), (count, size), generator=generator)]
