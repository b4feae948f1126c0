"""The pictures of 04_losses: what the clip does to one token and to many."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.losses import token_loss
from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import CLIP, GONE, GROUND, LOSS_COLOURS, PI

# Where the clipped objective is flat.
FLAT: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": "#c8c8c8",
    "hatch": "///",
    "lw": 0,
}


def plot_clip_range(epsilon: float, epsilon_high: float) -> str:
    """The objective of a good token and of a bad one, and in words where it is flat."""
    axes = axes_row(2, width=9.0)
    for ax, delta in zip(axes, (1.0, -1.0), strict=True):
        draw_objective(ax, delta, epsilon, epsilon_high)
    axes[0].legend(loc="lower right")
    good, bad = f"above {1 + epsilon_high:g}", f"below {1 - epsilon:g}"
    return f"No gradient: {good} for the good token, {bad} for the bad one."


def draw_objective(ax: Axes, delta: float, epsilon: float, epsilon_high: float) -> None:
    """Minus the loss of one token by its ratio, with and without clipping."""
    ratio = torch.linspace(0.01, 2.2, 220)[None, None]  # [batch trial pos]
    deltas, old = torch.full((1, 1), delta), torch.full_like(ratio, -1.0)
    new = old + ratio.log()
    for mode, line in (("unclipped", "--"), ("clipped", "-")):
        objective = -token_loss(
            new, deltas, mode, old, epsilon=epsilon, epsilon_high=epsilon_high
        )
        ax.plot(
            ratio[0, 0], objective[0, 0], color=LOSS_COLOURS[mode], ls=line, label=mode
        )
    ax.axvspan(1 - epsilon, 1 + epsilon_high, **CLIP)
    ax.set_ylim(-2.5, 2.5)
    finish(ax, "ratio $r$", "objective", rf"$\delta = {delta:+g}$")


def draw_clip_plane(
    ax: Axes, ratio: Tensor, deltas: Tensor, epsilon: float, most: float = 3.0
) -> Tensor:
    """Each token as a dot at its ratio and delta; hollow and grey without gradient.

    ratio and deltas [token]. Returns which tokens have lost their gradient: they lie
    in one of the two hatched corners, where the clipped objective is flat.
    """
    low, high = 1 - epsilon, 1 + epsilon
    gone = ((ratio > high) & (deltas > 0)) | ((ratio < low) & (deltas < 0))
    ends = (0.03, 30.0)
    ax.set(xscale="log", xlim=ends, ylim=(-most, most))
    ax.axvspan(low, high, **CLIP)
    ax.fill_between([high, ends[1]], 0, most, **FLAT)
    ax.fill_between([ends[0], low], -most, 0, **FLAT)
    # Equal deltas share a height: spread them a little, the same way each time.
    jitter = 0.12 * (torch.arange(len(deltas)) * 0.618 % 1 - 0.5)
    x, y = ratio.clamp(*ends), (deltas + jitter).clamp(-most, most)
    ax.plot(x[~gone], y[~gone], "o", ms=6, color=PI, mec=GROUND, alpha=0.7)
    ax.plot(x[gone], y[gone], "o", ms=5, mfc=GROUND, mec=GONE)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    finish(ax, r"ratio $r$", r"delta $\delta$").grid(visible=False)
    inside = int(((ratio > low) & (ratio < high)).sum())
    text = "Tokens as dots at their ratio and delta, the clip range a grey band"
    counts = f"{inside} of {len(ratio)} in it, {int(gone.sum())} without gradient"
    describe(ax.figure, f"{text}: {counts}.")
    return gone
