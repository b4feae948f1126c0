"""What several notebooks draw of their subject."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    FLAT,
    GONE,
    GROUND,
    LEVEL,
    PI,
    cells,
    finish,
)

# Three answers: every policy is a point of a triangle.
CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def name_corners(ax: Axes, names: Sequence[str]) -> None:
    """A name at each corner, which is to be sure of one answer."""
    for (x, y), name in zip(CORNERS.tolist(), names, strict=True):
        gap, side = (0.03, "bottom") if y else (-0.03, "top")
        ax.text(x, y + gap, name, ha="center", va=side)


def draw_cube(
    axes: Sequence[Axes], values: Tensor, text_at: Callable[[tuple], str], **look
) -> None:
    """A table for each first number; second ones down, third across. [5 5 5]

    text_at gives what is written in the cell (first, second, third).
    """
    for first, (ax, table) in enumerate(zip(axes, values, strict=True)):
        rows, columns = map(range, table.shape)
        texts = [[text_at((first, row, column)) for column in columns] for row in rows]
        cells(ax, table, texts, aspect="equal", **look)
        ax.set(title=f"first number {first}", xlabel="third")
        ax.set(xticks=columns, yticks=rows)
    axes[0].set_ylabel("second")


def draw_costs(
    ax: Axes,
    costs: dict[int, tuple[float, float]],
    xlabel: str,
    title: str,
    seen: Sequence[int],
) -> Axes:
    """Mean and three standard errors of each difference, one row each, in the order
    given; those of `seen` are orange below zero and blue above it."""
    for row, (number, (mean, error)) in enumerate(costs.items()):
        colour = COLOURS[mean < 0] if number in seen else LEVEL
        ax.errorbar(mean, row, xerr=3 * error, color=colour, fmt="o", ms=4, capsize=2)
    told = "; ".join(f"{number}: {mean:+.3f}" for number, (mean, _) in costs.items())
    describe(ax.figure, f"A dot for each trainer, {xlabel}: {told}.")
    ax.axvline(0, color="grey", lw=1)
    ax.set_yticks(range(len(costs)), [*map(str, costs)], fontsize=11)
    ax.invert_yaxis()
    ax.margins(y=0.02)
    return finish(ax, xlabel, "", title)


def draw_clip_plane(
    ax: Axes,
    ratio: Tensor,
    deltas: Tensor,
    epsilon: float,
    before: Tensor | None = None,
) -> Tensor:
    """Each token as a dot at its ratio and delta; hollow and grey without gradient.

    ratio, deltas, before [token]; a thin tail comes from the ratio before. -> which
    tokens have lost their gradient: they lie in one of the two hatched corners, where
    the clipped objective is flat.
    """
    low, high, (least, largest), most = 1 - epsilon, 1 + epsilon, (0.03, 30.0), 3.0
    gone = ((ratio > high) & (deltas > 0)) | ((ratio < low) & (deltas < 0))
    ax.set(xscale="log", xlim=(least, largest), ylim=(-most, most))
    ax.axvspan(low, high, **CLIP)
    ax.fill_between([high, largest], 0, most, **FLAT)
    ax.fill_between([least, low], -most, 0, **FLAT)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    finish(ax, r"ratio $r$", r"delta $\delta$").grid(visible=False)
    # Equal deltas share a height: spread them a little, the same way each time.
    jitter = 0.12 * (torch.arange(len(deltas)) * 0.618 % 1 - 0.5)
    x, y = ratio.clamp(least, largest), (deltas + jitter).clamp(-most, most)
    if before is not None:
        tails = torch.stack([before.clamp(least, largest), x])
        ax.plot(tails, y.expand_as(tails), color=GONE, lw=0.8, alpha=0.6, zorder=1)
    dots: dict[str, Any] = {"ls": "", "marker": "o", "label": "tokens"}
    ax.plot(x[~gone], y[~gone], ms=6, color=PI, mec=GROUND, alpha=0.7, **dots)
    dots["label"] = "without gradient"
    ax.plot(x[gone], y[gone], ms=5, mfc=GROUND, mec=GONE, **dots)
    return gone
