"""Ways to do one thing beside each other: gaps, means, before and after."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    axes_row,
    finish,
    legend_above,
    plot_bands,
)
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import CLIP, NO_POLICY
from grpo_course.classroom.plots.word_problems import legend_below
from grpo_course.loop import ENOUGH


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
        style: dict[str, Any] = {
            "color": COLOURS[row],
            "ls": LINES[row],
            "marker": "o",
            "ms": 4,
        }
        ax.plot(spots, means, label=name, **style)
        bars = [ENOUGH * error for error in errors]
        ax.errorbar(spots, means, bars, fmt="", ls="", ecolor=COLOURS[row])
    ax.axhline(0, color="black", lw=1)
    ax.set_xticks(range(len(settings)), [f"{value:g}" for value in settings])
    places = ", ".join(f"{value:g}" for value in settings)
    text = f"Lines of {ylabel} against {xlabel}, at {places}: {gaps_words(gaps)}."
    describe(ax.figure, f"{text} Bars: two standard errors.")
    return legend_above(finish(ax, xlabel, f"{ylabel}\n(bars: two standard errors)"))


def gaps_words(gaps: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The means of each line, at one setting after the other."""
    told = {n: [f"{mean:+.3f}" for mean, _ in pairs] for n, pairs in gaps.items()}
    return "; ".join(f"{name} {', '.join(means)}" for name, means in told.items())


def plot_means_and_gap(
    curves: Mapping[str, Tensor], pair: tuple[str, str], ylabel: str, marked: range
) -> list[Axes]:
    """Means over the seeds; below, by how much the first of a pair is above the second.

    Curves are [epoch seed]. The gap is taken seed by seed, and its band holds 80 % of
    the seeds. The marked epochs are shaded.
    """
    figure, axes = plt.subplots(
        2, 1, sharex=True, figsize=(7.0, 4.6), height_ratios=(3, 2)
    )
    means = {name: curve.mean(dim=-1, keepdim=True) for name, curve in curves.items()}
    plot_bands(means, ylabel, "", ax=axes[0])
    upper, lower = pair
    gap = curves[upper] - curves[lower]
    plot_bands({"gap": gap}, f"{upper}\n− {lower}", ax=axes[1])
    axes[1].axhline(0, color="black", lw=1)
    for ax in axes:
        ax.axvspan(marked[0], marked[-1], **CLIP)
    figure.align_ylabels()
    return list(axes)


def plot_before_after(
    pairs: Mapping[str, tuple[Tensor, Tensor]], what: str, least: float = 1e-3
) -> list[Axes]:
    """A dot a case: a share before, on a logarithmic axis, and after. [case] each.

    A share after below `least` is a cross: given up. Dots stand a little higher or
    lower than their share, so that equal ones are seen; on the dotted line both shares
    are the same.
    """
    axes, told = axes_row(len(pairs), width=9.0, height=3.7), []
    same = torch.logspace(-4, 0, 200)
    for ax, (title, (before, after)) in zip(axes, pairs.items(), strict=True):
        gone, shift = after < least, torch.arange(len(after)) * 0.618 % 1
        y = after + 0.1 * (shift - 0.5)
        look: dict[str, Any] = {"ls": "", "alpha": 0.5, "color": COLOURS[0]}
        ax.plot(same, same, "k:", zorder=3, label="unchanged")
        ax.plot(before[~gone], y[~gone], "o", ms=4, label=f"above {least:g}", **look)
        look |= {"marker": "x", "ms": 5, "color": COLOURS[1]}
        ax.plot(before[gone], y[gone], label="given up", **look)
        ax.set(xscale="log", xlim=(0.8 * before.min(), 1.4), ylim=(-0.1, 1.1))
        finish(ax, f"{what} before", f"{what} after" if ax is axes[0] else "", title)
        counts = f"{gone.sum()} of {len(gone)} are given up"
        sunk = f"{(after < before).sum()} lie below the line of no change"
        told.append(f"{title}: {counts}, {(after > 0.9).sum()} end above 0.9, {sunk}")
    legend_below(axes)
    describe(axes[0].figure, f"Dots by {what} before and after. {'; '.join(told)}.")
    return axes


def plot_agreement(one: Tensor, other: Tensor, xlabel: str, ylabel: str) -> Axes:
    """Two ways to one number, a dot a case: on the diagonal they agree. [case] each"""
    ax = axes_row(width=5.5, height=3.6)[0]
    ax.axhline(0, color="black", lw=0.8)
    ax.axline((0, 0), slope=1, color=NO_POLICY, lw=1)
    ax.plot(one, other, "o", ms=5, color=COLOURS[0], alpha=0.5)
    above, count = int((other > 0).sum()), len(other)
    title = f"{above} of {count} above zero; between {other.min():.3f} and "
    finish(ax, xlabel, ylabel, f"{title}{other.max():+.3f}")
    describe(
        ax.figure,
        f"{count} dots by {xlabel} and {ylabel}, at most "
        f"{(one - other).abs().max():.5f} away from the diagonal. {ax.get_title()}.",
    )
    return ax
