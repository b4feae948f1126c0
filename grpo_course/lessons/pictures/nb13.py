"""What notebook 13 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    PI,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    write,
)
from grpo_course.loop import ENOUGH


def plot_lengths(tokens: Mapping[str, Tensor]) -> Axes:
    """Tokens of a response in each rollout, [rollout seed] for each name."""
    ax = plot_bands(dict(tokens), "tokens of a response", "rollout")
    ax.set_xticks(range(0, 20, 5))
    ax.axhline(4, color="black", lw=0.8)
    write(ax, "three numbers and the end", 19, 4, (0, 8), ha="right", fontsize=11)
    return ax


def plot_rising(chances: Mapping[str, Tensor]) -> Axes:
    """The mean probability of a rare token in each rollout, [rollout seed]; log axis."""
    ax = axes_row()[0]
    for row, (name, chance) in enumerate(chances.items()):
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(chance.mean(dim=-1), label=name, **look)
    ax.set(yscale="log", ylim=(0.008, 1.2))
    ax.set_xticks(range(0, 20, 5))
    finish(ax, "rollout", "chance of the rare token")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


def plot_gaps(
    gaps: Mapping[str, Sequence[tuple[float, float]]],
    settings: Sequence[float],
    xlabel: str,
    ylabel: str,
) -> Axes:
    """Mean and standard error at each setting, a line a name; its bars hold two errors.

    The settings are evenly spaced; a line on zero is the baseline.
    """
    ax = axes_row()[0]
    for row, (name, pairs) in enumerate(gaps.items()):
        means, errors = zip(*pairs, strict=True)
        spots = [place + 0.04 * (row - len(gaps) / 2) for place in range(len(pairs))]
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(spots, means, marker="o", ms=4, label=name, **look)
        bars = [ENOUGH * error for error in errors]
        ax.errorbar(spots, means, bars, ls="", ecolor=COLOURS[row])
    ax.axhline(0, color="black", lw=1)
    ax.set_xticks(range(len(settings)), [f"{value:g}" for value in settings])
    return legend_above(finish(ax, xlabel, f"{ylabel}\n(bars: two standard errors)"))


def plot_engine(
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    tokens: Sequence[str],
    limits: Sequence[tuple[float, float]],
) -> list[Axes]:
    """What an engine's samples give as bars, what is right as outlines around them.

    pairs[title] holds both, [token] each; limits are those of the panels' axes.
    """
    axes = axes_row(len(pairs), width=9.0, height=2.8)
    hollow: dict[str, Any] = {"fill": False, "ec": "black", "lw": 1.8}
    for ax, (title, (got, want)), ends in zip(axes, pairs.items(), limits, strict=True):
        ax.bar(tokens, got, 0.6, color=PI, alpha=0.7, label="engine's samples")
        ax.bar(tokens, want, 0.8, label="right", **hollow)
        ax.axhline(0, color="black", lw=0.8)
        ax.set_ylim(*ends)
        finish(ax, "token (★ is rewarded)", "", title).grid(visible=False, axis="x")
    axes[0].legend(loc="upper right", frameon=False)
    plt.tight_layout()
    return axes
