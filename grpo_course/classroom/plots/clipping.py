"""The pictures of 04_losses: what the clip does to one token and to many."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.alt_words import plain
from grpo_course.classroom.plots.palette import (
    CLIP,
    COLOURS,
    GONE,
    GROUND,
    LOSS_COLOURS,
    PI,
    sign_colour,
)
from grpo_course.formulas import token_loss

STAIRS = (PI, COLOURS[1], COLOURS[2])
ENDS, MOST = (0.03, 30.0), 3.0  # ratios and deltas of the plane
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
    flat = (1 + epsilon_high, 2.3) if delta > 0 else (-0.1, 1 - epsilon)
    ax.axvspan(*flat, **FLAT)
    ax.set(xlim=(-0.1, 2.3), ylim=(-2.5, 2.5))
    finish(ax, "ratio $r$", "objective", rf"$\delta = {delta:+g}$")


def plot_reach(ratios: Tensor, objectives: dict[float, Tensor], floor: float) -> Axes:
    """Objectives of tokens by ratio on log axes, one curve a delta. [ratio] each

    The dotted line is where a dual clip would stop them.
    """
    ax = axes_row()[0]
    for (delta, objective), line in zip(objectives.items(), ("-", "--"), strict=True):
        look: dict[str, Any] = {"color": sign_colour(delta), "ls": line, "lw": 2.5}
        ax.plot(ratios, objective, label=rf"$\delta$ = {delta:+g}", **look)
    ax.axhline(floor, color="grey", ls=":", lw=1.5)
    ax.set_xscale("log")
    # The linear part holds no curve, so that it adds no bend.
    ax.set_yscale("symlog", linthresh=0.1, linscale=0.2)
    for axis, marks in ((ax.xaxis, (0.1, 1, 10, 50)), (ax.yaxis, (-50, -3, -0.8, 1.2))):
        axis.set_ticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    return legend_above(finish(ax, "ratio $r$", "clipped objective"))


def pull_of(mode: str, ratio: Tensor, delta: float) -> Tensor:
    """How hard a loss pulls on the log-probability of a token. [point] -> same"""
    old = torch.full((1, 1, len(ratio)), -3.0)
    new = (old + ratio.log()).requires_grad_()
    loss = token_loss(new, torch.tensor([[delta]]), mode, old)
    (grad,) = torch.autograd.grad(loss.sum(), new)
    return -grad[0, 0]


def plot_pulls(ratios: Tensor) -> list[Axes]:
    """The pull of three losses on a good and on a bad token, with dots at `ratios`."""
    axes, dense = axes_row(2, width=9.0), torch.linspace(0.4, 2.1, 681)
    for ax, delta in zip(axes, (1.0, -1.0), strict=True):
        for mode, line in (("naive", ":"), ("unclipped", "--"), ("clipped", "-")):
            look: dict[str, Any] = {"color": LOSS_COLOURS[mode], "lw": 2}
            pull = pull_of(mode, dense, delta)
            ax.plot(dense, pull, ls=line, label=mode, **look)
            ax.plot(ratios, pull_of(mode, ratios, delta), "o", ms=5, **look)
        ax.axhline(0, color="black", lw=0.8)
        finish(ax, "ratio $r$", r"pull on log $\pi$", rf"$\delta = {delta:+g}$")
    keys: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.97)}
    names = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*names, ncols=3, frameon=False, **keys)
    return axes


def plot_stairs(stairs: Mapping[str, Sequence[float]], unit: str = "rollouts") -> Axes:
    """How a good token rises if each rollout stops at the end of the range.

    stairs[label] holds its probability after 0, 1, 2, ... rollouts, or another unit.
    """
    ax = axes_row(height=2.8)[0]
    sides = (-1, *[1] * (len(stairs) - 1))  # of the number: left, then right
    looks = zip(STAIRS, ("-", "--", ":"), sides, strict=False)
    for (name, levels), (colour, line, side) in zip(
        stairs.items(), looks, strict=False
    ):
        look: dict[str, Any] = {"color": colour, "ls": line, "lw": 2.5}
        ax.step(range(len(levels)), levels, where="post", label=name, **look)
        end = len(levels) - 1, levels[-1]
        ax.plot(*end, "o", ms=8, color=colour)
        note: dict[str, Any] = {"ha": "center", "textcoords": "offset points"}
        ax.annotate(f"{end[0]}", end, (16 * side, -4), color=colour, **note)
    ax.margins(x=0.08)
    low = min(levels[0] for levels in stairs.values())
    high = max(levels[-1] for levels in stairs.values())
    ax.set(yscale="log", ylim=(0.8 * low, 1.7 * high))
    ticks = (low, 0.1, 0.5)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    legend_above(finish(ax, unit, "probability"))
    told = [f"{plain(name)}: {len(levels) - 1}" for name, levels in stairs.items()]
    text = f"Staircases on a log axis; {unit} that each takes"
    describe(ax.figure, f"{text}: {', '.join(told)}.")
    return ax


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
    low, high = 1 - epsilon, 1 + epsilon
    gone = ((ratio > high) & (deltas > 0)) | ((ratio < low) & (deltas < 0))
    draw_plane(ax, low, high)
    # Equal deltas share a height: spread them a little, the same way each time.
    jitter = 0.12 * (torch.arange(len(deltas)) * 0.618 % 1 - 0.5)
    x, y = ratio.clamp(*ENDS), (deltas + jitter).clamp(-MOST, MOST)
    if before is not None:
        tails = torch.stack([before.clamp(*ENDS), x])
        ax.plot(tails, y.expand_as(tails), color=GONE, lw=0.8, alpha=0.6, zorder=1)
    ax.plot(x[~gone], y[~gone], "o", ms=6, color=PI, mec=GROUND, alpha=0.7)
    ax.plot(x[gone], y[gone], "o", ms=5, mfc=GROUND, mec=GONE)
    inside = int(((ratio > low) & (ratio < high)).sum())
    text = "Tokens as dots at their ratio and delta, the clip range a grey band"
    counts = f"{inside} of {len(ratio)} in it, {int(gone.sum())} without gradient"
    describe(ax.figure, f"{text}: {counts}.")
    return gone


def draw_plane(ax: Axes, low: float, high: float) -> None:
    """Axes for ratio and delta, the clip range as a band, two corners hatched."""
    ax.set(xscale="log", xlim=ENDS, ylim=(-MOST, MOST))
    ax.axvspan(low, high, **CLIP)
    ax.fill_between([high, ENDS[1]], 0, MOST, **FLAT)
    ax.fill_between([ENDS[0], low], -MOST, 0, **FLAT)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    finish(ax, r"ratio $r$", r"delta $\delta$").grid(visible=False)
