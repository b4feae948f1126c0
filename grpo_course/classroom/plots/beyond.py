"""The pictures of 13: two spreads, an engine's samples, how fast a clip lets rise."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, PI, UP

KINDS = (("right", 1, UP, "o"), ("wrong", 0, DOWN, "v"))  # of a response: its reward
FULL: dict[str, Any] = {"width": 0.6, "color": PI, "alpha": 0.7}
HOLLOW: dict[str, Any] = {"width": 0.8, "fill": False, "ec": "black", "lw": 1.8}


def plot_spreads(rewards: Tensor, deltas: Mapping[str, Tensor]) -> list[Axes]:
    """A panel for each spread that divides; in it the groups of a batch, side by side.

    rewards and each of the deltas [batch trial]; a reward is 1 or 0.
    """
    axes, told = axes_row(len(deltas), width=9.0, height=3.0), []
    groups, trials = rewards.shape
    places = torch.arange(groups)[:, None] + torch.linspace(-0.25, 0.25, trials)
    for ax, (title, made) in zip(axes, deltas.items(), strict=True):
        for name, reward, colour, mark in KINDS:
            mine = rewards == reward
            look: dict[str, Any] = {"color": colour, "ms": 6, "alpha": 0.8, "mew": 0}
            ax.plot(places[mine], made[mine], mark, ls="", label=name, **look)
        ax.axhline(0, color="black", lw=0.8)
        ax.set(ylim=(-3.5, 10.5), xticks=[])
        finish(ax, f"{groups} groups of {trials}", r"$\delta$", f"{title} spread")
        told.append(f"by {title} spread from {made.min():.2f} to {made.max():.2f}")
    axes[0].legend(loc="upper left", frameon=False)
    plt.tight_layout()
    right = f"{int(rewards.sum())} of {rewards.numel()} responses are right"
    describe(axes[0].figure, f"Deltas as dots: {'; '.join(told)}. {right}.")
    return axes


def plot_engine(
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    tokens: Sequence[str],
    limits: Sequence[tuple[float, float]],
) -> list[Axes]:
    """What an engine's samples give as bars, what is right as outlines around them.

    pairs[title] holds both, [token] each; limits are those of the panels' axes.
    """
    axes, told = axes_row(len(pairs), width=9.0, height=2.8), []
    for ax, (title, (got, want)), ends in zip(axes, pairs.items(), limits, strict=True):
        ax.bar(range(len(got)), got, label="engine's samples", **FULL)
        ax.bar(range(len(want)), want, label="right", **HOLLOW)
        ax.axhline(0, color="black", lw=0.8)
        ax.set_xticks(range(len(tokens)), tokens)
        ax.set_ylim(*ends)
        finish(ax, "token (★ is rewarded)", "", title).grid(visible=False, axis="x")
        values = zip(tokens, got.tolist(), want.tolist(), strict=True)
        words = [f"{token} {one:.3f} of {other:.3f}" for token, one, other in values]
        told.append(f"{title}: {', '.join(words)}")
    axes[0].legend(loc="upper right", frameon=False)
    plt.tight_layout()
    describe(axes[0].figure, f"Bars, and what is right as outlines: {'; '.join(told)}.")
    return axes
