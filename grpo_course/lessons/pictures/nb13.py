"""What notebook 13 alone draws."""

from collections.abc import Mapping
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    FAINT,
    LINES,
    PI,
    axes_row,
    finish,
    legend_above,
    legend_below,
)
from grpo_course.loop import mean_and_error


def plot_ratios(ratio: Tensor, is_one: Tensor) -> Axes:
    """How far the tokens of good responses have moved, ones and others; log axes.

    `ratio` and `is_one` are [response pos]; the clip range is a grey band.
    """
    ax = axes_row(height=2.9)[0]
    edges = torch.logspace(-1, 1, 41, base=4.0)  # ratios of 1/4 to 4
    kinds = {"other tokens": (~is_one, FAINT), "ones": (is_one, PI)}
    for name, (kind, colour) in kinds.items():
        part = ratio[kind].clamp(0.26, 3.9).numpy()
        ax.hist(part, bins=edges.tolist(), color=colour, alpha=0.75, label=name)
    ax.axvspan(0.8, 1.2, **CLIP, label="the clip's range")
    ax.set_xscale("log", base=2)
    ax.set_xticks([0.25, 0.5, 0.8, 1.2, 2, 4], ["0.25", "0.5", "0.8", "1.2", "2", "4"])
    top: dict[str, Any] = {
        "ha": "center",
        "va": "top",
        "transform": ax.get_xaxis_transform(),
    }
    ax.text(0.45, 0.97, "the clip still pushes\nthese up", **top)
    ax.text(2.3, 0.97, "the clip has\ndropped these", **top)
    finish(ax, "ratio after three steps", "tokens of good responses")
    return legend_above(ax)


def plot_rising(shares: Mapping[float, Mapping[str, Tensor]]) -> list[Axes]:
    """The mean share of a token by rollout, a panel a rate.

    shares[rate][loss] is [rollout seed].
    """
    axes = axes_row(len(shares), width=9.0, height=3.2)
    for ax, (rate, arms) in zip(axes, shares.items(), strict=True):
        for row, (name, share) in enumerate(arms.items()):
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(share.mean(dim=-1), label=name, **look)
        ylabel = "share of the rare token" if ax is axes[0] else ""
        finish(ax, "rollout", ylabel, f"rate {rate:g}")
    legend_below(axes)
    return axes


def plot_arms(
    results: Mapping[str, Mapping[str, Mapping[float, Tensor]]], xlabel: str = ""
) -> list[Axes]:
    """The reward of each arm, a panel a key of `results`; bars hold one error.

    results[panel][arm][x] is [seed]; values of x are evenly spaced, as they come.
    """
    axes = axes_row(len(results), width=9.0, height=3.4)
    for ax, (panel, arms) in zip(axes, results.items(), strict=True):
        for row, (name, rewards) in enumerate(arms.items()):
            means, errors = zip(*map(mean_and_error, rewards.values()), strict=True)
            spots = [place + 0.05 * (row - 2) for place in range(len(rewards))]
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(spots, means, marker="o", ms=4, label=name, **look)
            ax.errorbar(spots, means, errors, ls="", ecolor=COLOURS[row])
        ax.set_xticks(range(len(rewards)), [f"{x:g}" for x in rewards])
        finish(ax, xlabel, "reward" if ax is axes[0] else "", panel)
    legend_below(axes)
    return axes
