"""The pictures of 04_losses: what the clip does to tokens, and where ratios end up."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.losses import token_loss
from grpo_course.algorithm.ratio import Clip
from grpo_course.classroom.plots import COLOURS, LINES, axes_row, finish
from grpo_course.classroom.plots.palette import CLIP, GONE, GROUND, PI


def plot_surrogate(
    delta: float,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Minus the loss of one token by its ratio, with and without clipping."""
    ax = ax or axes_row(width=4.5)[0]
    clip = Clip(epsilon=epsilon, epsilon_high=epsilon_high)
    low, high = clip.epsilon, clip.high
    ratio = torch.linspace(0.01, 2.2, 220)[None, None]  # [batch trial pos]
    deltas, old = torch.full((1, 1), float(delta)), torch.full_like(ratio, -1.0)
    new = old + ratio.log()
    for mode, colour, line in zip(
        ("unclipped", "clipped"), COLOURS, LINES[1::-1], strict=False
    ):
        objective = -token_loss(new, deltas, mode, old, epsilon=low, epsilon_high=high)
        ax.plot(ratio[0, 0], objective[0, 0], color=colour, ls=line, label=mode)
    ax.axvspan(1 - low, 1 + high, color="grey", alpha=0.15)
    ax.set_ylim(-2.5, 2.5)
    ax.legend(loc="best")
    return finish(ax, "ratio", "objective", f"delta = {delta:+g}")


def plot_ratios(ratios: dict[str, Tensor], epsilon: float = 0.2) -> list[Axes]:
    """A histogram for each entry on a logarithmic axis; the clip range is grey."""
    axes = axes_row(len(ratios), width=3.2 * len(ratios), height=2.8)
    bins = torch.logspace(-4, 2, 49).tolist()
    for ax, (name, ratio), colour in zip(axes, ratios.items(), COLOURS, strict=False):
        weights = torch.full((ratio.numel(),), 1 / ratio.numel())
        inside = ratio.flatten().clamp(1.1e-4, 90.0)  # the ends collect the rest
        ax.hist(inside, bins=bins, weights=weights, color=colour)
        ax.axvspan(1 - epsilon, 1 + epsilon, color="grey", alpha=0.3)
        ax.set_xscale("log")
        ax.set_xticks([1e-4, 1e-2, 1])
        finish(ax, "ratio", "share of tokens" if ax is axes[0] else "", name)
    for ax in axes[1:]:
        ax.sharey(axes[0])
    axes[0].autoscale(axis="y")
    plt.tight_layout()
    return axes


def draw_clip_plane(
    ax: Axes, ratio: Tensor, deltas: Tensor, epsilon: float, most: float = 2.0
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
    flat: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": "#c8c8c8",
        "hatch": "///",
        "lw": 0,
    }
    ax.fill_between([high, ends[1]], 0, most, **flat)
    ax.fill_between([ends[0], low], -most, 0, **flat)
    # Equal deltas share a height: spread them a little, the same way each time.
    jitter = 0.12 * (torch.arange(len(deltas)) * 0.618 % 1 - 0.5)
    x, y = ratio.clamp(*ends), (deltas + jitter).clamp(-most, most)
    ax.plot(x[~gone], y[~gone], "o", ms=6, color=PI, mec=GROUND)
    ax.plot(x[gone], y[gone], "o", ms=5, mfc=GROUND, mec=GONE)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    finish(ax, r"ratio $r$", r"delta $\delta$").grid(visible=False)
    return gone
