"""The stages of the trainer of the bug hunt as boxes, and where a defect was."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS

# A method of the script, what it makes; a rollout, then the optimizer steps on it.
COLLECT = (
    ("draw_problems", "8 lists of\nnumbers"),
    ("encode", "prompts,\npadded left"),
    ("sample", "8 responses\nto each"),
    ("pay", "reward of\neach text"),
    ("compute_deltas", "compared in\nits group"),
    ("response_mask", "tokens\nthat count"),
    ("score", "old and ref.\nlog-probs"),
)
STEP = (
    ("score", "log-probs\nby now"),
    ("token_losses", "ratio, clip,\nKL"),
    ("update", "gradient,\nin parts"),
)
MADE = (("__init__", "optimizer,\nschedule"),)
WIDE, HIGH, APART = 1.86, 0.95, 2.0  # of a box, and from one to the next
GUILTY = COLOURS[1]
SMALLER = 0.75


def draw_flow(guilty: Sequence[str] = ()) -> Axes:
    """The stages as boxes, a thick frame around the guilty ones, by their methods.

    "score in collect" is the box of that name in that row alone, "arrow into pay" what
    is handed to that box.
    """
    guilty = ["pay" if method == "reward" else method for method in guilty]
    ax = plt.subplots(figsize=(10.9, 3.6), layout="constrained")[1]
    ax.set(xlim=(-0.3, 14.2), ylim=(-0.1, 3.8))
    ax.axis("off")
    draw_row(ax, 2.2, "collect", "once a rollout", COLLECT, guilty)
    draw_row(ax, 0.15, "step", "4 times on the same rollout", STEP, guilty)
    draw_row(ax, 0.15, "made", "once a run", MADE, guilty, left=6.6)
    down: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 14, "color": "grey"}
    ends = (3.0, 2.05), (3.0, 1.55)
    ax.add_patch(FancyArrowPatch(*ends, shrinkA=0, shrinkB=0, **down))
    found = f" Guilty: {' and '.join(guilty)}." if guilty else ""
    describe(ax.figure, in_words() + found)
    return ax


def draw_row(
    ax: Axes,
    y: float,
    name: str,
    often: str,
    boxes: Sequence[tuple[str, str]],
    guilty: Sequence[str],
    left: float = 0.0,
) -> None:
    """A row of boxes, in the frame of the method that calls them."""
    wide = APART * (len(boxes) - 1) + WIDE + 0.3
    frame(ax, (left - 0.15, y - 0.15), (wide, HIGH + 0.6), name in guilty, "#f3f3f3")
    ink = GUILTY if name in guilty else "#555555"
    at_top: dict[str, Any] = {"color": ink, "va": "center"}
    ax.text(left, y + HIGH + 0.2, f"{name}: {often}", **at_top)
    for place, (method, makes) in enumerate(boxes):
        x = left + place * APART
        is_guilty = method in guilty or f"{method} in {name}" in guilty
        frame(ax, (x, y), (WIDE, HIGH), is_guilty, "white")
        at: dict[str, Any] = {"ha": "center", "va": "center"}
        middle = x + WIDE / 2
        ax.text(middle, y + 0.74, method, **at)
        ax.text(middle, y + 0.32, makes, color="#444444", **at)
        if place:
            ends = (x - APART + WIDE, y + HIGH / 2), (x, y + HIGH / 2)
            draw_arrow(ax, ends, f"arrow into {method}" in guilty)


def draw_arrow(ax: Axes, ends: tuple, is_guilty: bool) -> None:
    """From one box to the next; thick where the defect was in what is handed over."""
    look: dict[str, Any] = {"color": "grey", "mutation_scale": 10}
    if is_guilty:
        look = {"color": GUILTY, "mutation_scale": 22, "lw": 3.0, "zorder": 3}
    ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", shrinkA=0, shrinkB=0, **look))


def frame(
    ax: Axes,
    corner: tuple[float, float],
    size: tuple[float, float],
    is_guilty: bool,
    fill: str,
) -> None:
    """A box; thick and in another colour where the defect was."""
    look: dict[str, Any] = {"facecolor": fill, "edgecolor": "grey", "lw": 1.0}
    if is_guilty:
        look |= {"edgecolor": GUILTY, "lw": 3.0}
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch(corner, *size, boxstyle=style, **look))


def draw_small_flow(guilty: Sequence[str]) -> Axes:
    """The stages once more, smaller, with the guilty places marked."""
    ax = draw_flow(guilty)
    ax.figure.set_dpi(SMALLER * ax.figure.dpi)
    return ax


def in_words() -> str:
    """The picture for readers who cannot see it."""
    first, then = (", ".join(method for method, _ in row) for row in (COLLECT, STEP))
    return (
        f"The stages of the trainer as boxes. In collect, once a rollout: {first}. "
        f"Then in step, four times: {then}. Once a run: {MADE[0][0]}."
    )
