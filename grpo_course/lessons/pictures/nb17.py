"""What notebook 17 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    GONE,
    LEVEL,
    PI,
    axes_row,
    draw_arrow,
    finish,
    sign_colour,
    write,
)


def plot_overrated(
    true: Tensor,
    scores: Tensor,
    policies: Mapping[str, Tensor],
    ylabel: str = "the model's reward (std)",
    ylim: tuple[float, float] = (-3.6, 3.6),
) -> list[Axes]:
    """A panel for each policy: a disc for each response, as large as its probability.

    A ring marks the model's favourite. true and scores [all], each policy [all].
    """
    axes = axes_row(len(policies), width=4.6 * len(policies), height=3.6)
    best = scores.argmax()
    # Many responses are worth the same: spread them a little, the same way each time.
    across = true + 0.25 * (torch.arange(len(true)) * 0.618 % 1 - 0.5)
    ring: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": COLOURS[1], "mew": 2.5}
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        ax.plot(across, scores, ".", color=GONE, ms=4)
        ax.scatter(across, scores, s=900 * probs, color=PI, alpha=0.55, lw=0, zorder=3)
        ax.plot(across[best], scores[best], "o", zorder=4, **ring)
        finish(ax, "true reward", "", f"{name}: worth {(probs * true).sum():.2f}")
        ax.set(xticks=range(4), xlim=(-0.5, 3.5), ylim=ylim)
    axes[0].set_ylabel(ylabel)
    return axes


def plot_climbs_by_beta(
    starts: Mapping[str, Tensor], ends: Mapping[str, Tensor], betas: Sequence[float]
) -> list[Axes]:
    """For each beta an arrow from what a start is worth to where its climb ended.

    A panel for each name. starts are [seed], ends [beta seed]: each seed is a dot, and
    the mean change stands above.
    """
    axes = axes_row(len(ends), width=10.0, height=3.4)
    for ax, (name, rows) in zip(axes, ends.items(), strict=True):
        start = starts[name].mean().item()
        ax.axhline(start, color=LEVEL, ls=":", lw=2)
        for x, values in enumerate(rows):
            ax.plot(
                [x + 0.22] * len(values), values, "o", ms=4, color=PI, alpha=0.4, lw=0
            )
            gap = values.mean().item() - start
            if abs(gap) > 0.005:  # the head of a short, thick one would be too long
                draw_arrow(
                    ax, (x, start), (x, start + gap), gap, min(4.0, 1 + 8 * abs(gap))
                )
            write(ax, f"{gap:+.2f}", x, 3.2, size=10, color=sign_colour(gap))
        ax.set_xticks(range(len(betas)), [f"{beta:g}" for beta in betas])
        ax.set(xlim=(-0.6, len(betas) - 0.4), ylim=(0.8, 3.4))
        finish(ax, "β", "true reward (3 is best)" if ax is axes[0] else "", name)
    return axes
