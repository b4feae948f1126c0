"""What notebook 01 alone draws."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import DOWN, LEVEL, LINED, UP, axes_grid, frame
from grpo_course.lessons.pictures.shared import draw_cube


def draw_rewards(axes: Sequence[Axes], cube: Tensor, words: Any = None, **look) -> None:
    """Rewards as colours with their numbers or words; a star at the best. [5 5 5]"""
    limits = cube.min().item(), cube.max().item()

    def text_at(at: tuple) -> str:
        star = cube[at] == limits[1]
        return "★" if star else words(at) if words else f"{cube[at]:g}"

    draw_cube(axes, cube, text_at, limits=limits, **look)


def frame_one(axes: Sequence[Axes], response: Sequence[int], colour: str) -> None:
    """A frame around the cell of one response."""
    first, second, third = response
    frame(axes[first], second, third, 0.9, ec=colour, lw=2, path_effects=LINED)


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
        draw_rewards(axes, cube)
        for start in dead_ends[name].tolist():
            frame_one(axes, start, DOWN)
        axes[0].set_ylabel(f"{name}\nsecond")
    for above, below in zip(grid[0], grid[-1], strict=True):
        above.set_xlabel("")
        below.set_title("")
    told = ", ".join(f"{name} {len(ends)}" for name, ends in dead_ends.items())
    text = "Each response as a cell with its reward, dead ends framed"
    describe(grid[0][0].figure, f"{text}: {told}.")
    return grid


def plot_climbs(rewards: Tensor, dead_ends: Tensor, ends: Tensor) -> list[Axes]:
    """Where training led from each response, written in its cell unless to the best.

    Dead ends are framed: green if training left them for the best, orange if it stayed,
    grey if it ended elsewhere. The tables are those of `plot_reward_map`; ends is
    [first second third pos].
    """
    (axes,) = axes_grid(1, 5, 10.0, 2.75)
    best = (rewards == rewards.max()).nonzero()[0]

    def digits(at: tuple) -> str:
        return "" if ends[at].equal(best) else "".join(map(str, ends[at].tolist()))

    draw_rewards(axes, rewards, digits, size=10)
    for start in dead_ends:
        end = ends[tuple(start)]
        colour = UP if end.equal(best) else DOWN if end.equal(start) else LEVEL
        frame_one(axes, start.tolist(), colour)
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
