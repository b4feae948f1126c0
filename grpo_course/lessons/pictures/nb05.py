"""What notebook 05 alone draws: the KL as an area, k3 as a gap, ends of training."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    PI,
    axes_row,
    finish,
    legend_above,
    legend_below,
    write,
)


def plot_kl_area(log_probs: Tensor, ref_log_probs: Tensor) -> Axes:
    """The KL of two distributions as areas, one for each token. [vocab]

    A token's rectangle is as wide as its probability and as high as its log-ratio, so
    its area is its term of the sum.
    """
    (ax,) = axes_row(1, width=9.0, height=3.4)
    probs, heights = log_probs.exp(), log_probs - ref_log_probs
    starts, areas = probs.cumsum(-1) - probs, probs * heights
    fills = [(PI, "") if high > 0 else (DOWN, "//") for high in heights]
    colours, hatches = zip(*fills, strict=True)
    look: Any = {"align": "edge", "color": colours, "hatch": hatches, "ec": "white"}
    ax.bar(starts, heights, probs, alpha=0.8, **look)
    for token, (x, wide, high, area) in enumerate(
        zip(starts, probs, heights, areas, strict=True)
    ):
        name = f"token {token}" if wide > 0.15 else str(token)
        size, right = (12, 0) if wide > 0.1 else (10, 5)  # narrow ones stand close
        away, side = ((right, 4), "bottom") if high > 0 else ((right, -4), "top")
        text = f"{name}\n{area:+.2f}".replace("-", "\u2212")
        write(ax, text, x + wide / 2, high, away, va=side, size=size)
    ax.axhline(0, color="black", lw=1)
    kl, above = areas.sum(), areas.clamp(min=0).sum()
    title = f"above {above:.3f} \u2212 below {above - kl:.3f} = KL {kl:.3f}"
    finish(ax, r"width $\pi$", r"height $\log\,(\pi/\pi_{ref})$", title)
    ax.set(xlim=(-0.02, 1.02))
    ax.margins(y=0.36)
    plt.tight_layout()
    return ax


def plot_gap(log_probs: Tensor, ref_log_probs: Tensor) -> Axes:
    """k3 of each token as the gap between x - 1 and log x, at x = ref/pi. [vocab]"""
    (ax,) = axes_row(1, width=7.0, height=3.2)
    ratios = [round(x, 6) for x in (ref_log_probs - log_probs).exp().tolist()]
    x = torch.linspace(0.7 * min(ratios), 1.1 * max(ratios), 200)
    bar: Any = {"color": COLOURS[2], "lw": 6, "alpha": 0.6, "solid_capstyle": "butt"}
    ax.plot(x, x - 1, color="black", label="$x - 1$")
    ax.plot(x, x.log(), color=COLOURS[0], ls="--", label=r"$\log x = -k_1$")
    for ratio in sorted(set(ratios)):
        name = ", ".join(str(k) for k, each in enumerate(ratios) if each == ratio)
        low, high = math.log(ratio), ratio - 1
        ax.plot([ratio, ratio], [low, high], **bar)
        text = f"token{'s' * (',' in name)} {name}: {high - low:.2f}"
        below: Any = {"y": low, "away": (6, -6), "ha": "left", "va": "top"}
        above: Any = {"y": high, "away": (-6, 4), "ha": "right", "va": "bottom"}
        write(ax, text, ratio, **(below if high < 0 else above))
    ax.plot([], [], label="the gap: $k_3$", **bar)
    ax.axhline(0, color="grey", lw=1)
    return legend_above(finish(ax, r"$x = \pi_{ref}\,/\,\pi$", r"$x - 1$ and $\log x$"))


def plot_ends(
    trained: Mapping[str, Sequence[Mapping[str, Tensor]]],
    betas: Sequence[float],
    starts: Mapping[str, float],
) -> list[Axes]:
    """Where training at each beta ends, with its standard error, and where it started.

    trained[name][beta] holds what was seen of a run, [look seed] each.
    """
    axes = axes_row(len(starts), width=4.0 + 2.5 * len(starts), height=3.4)
    for ax, (seen, start) in zip(axes, starts.items(), strict=True):
        for k, (name, runs) in enumerate(trained.items()):
            p = torch.stack([run[seen][-1] for run in runs])  # [beta seed]
            mean, error = p.mean(dim=-1), p.std(dim=-1) / p.shape[-1] ** 0.5
            x = [beta * 1.1 ** (k - 1) for beta in betas]  # side by side
            ax.plot(x, mean, "os^"[k], color=COLOURS[k], label=name)
            ax.vlines(x, mean - error, mean + error, color=COLOURS[k])
        ax.axhline(start, color="black", ls="--")
        write(ax, "start", math.sqrt(betas[0] * betas[1]), start, (0, 4), va="bottom")
        ax.set(xscale="log", xticks=betas, xticklabels=betas)
        ax.minorticks_off()
        finish(ax, "\u03b2", seen)
    legend_below(axes)
    return axes
