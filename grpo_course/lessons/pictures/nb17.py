"""What notebook 17 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    LEVEL,
    LINES,
    PARTS,
    axes_row,
    cells,
    finish,
    frame,
    legend_above,
    legend_below,
)
from grpo_course.lessons.judges import FAMILIES, NAMES
from grpo_course.lessons.pictures.shared import plot_beside
from grpo_course.lessons.preferences import Climb
from grpo_course.loop import mean_and_error


def plot_climbs(climbs: Mapping[str, Climb]) -> list[Axes]:
    """The score that each climb saw, and the true reward; both from their start."""
    panels = {
        name: {
            "the model's score, in standard deviations": climb.score - climb.score[0],
            "the true reward, in points": climb.true - climb.true[0],
        }
        for name, climb in climbs.items()
    }
    return plot_beside(panels, "change since the start")


def plot_shares(parts: Mapping[str, Tensor], ylabel: str, xlabel: str) -> Axes:
    """Parts of a whole on top of each other, mean over the seeds. [step seed] each"""
    ax = axes_row()[0]
    below, told = torch.zeros(len(next(iter(parts.values())))), []
    for (name, part), look in zip(parts.items(), PARTS, strict=False):
        share = part.mean(-1)
        ax.fill_between(range(len(share)), below, below + share, label=name, **look)
        below = below + share
        told.append(f"{name} from {share[0]:.2f} to {share[-1]:.2f}")
    finish(ax, xlabel, ylabel).margins(0)
    describe(ax.figure, f"{ylabel} against {xlabel}: {'; '.join(told)}.")
    return legend_above(ax)


def plot_together(correlations: Tensor, panel: Sequence[str]) -> Axes:
    """Who errs with whom: a panel, framed, then family by family. [judge judge]"""
    order = [NAMES.index(name) for name in dict.fromkeys([*panel, *"".join(FAMILIES)])]
    names = [NAMES[judge] for judge in order]
    ax = axes_row(width=6.4, height=4.6)[0]
    of_pairs = correlations[order][:, order]
    finish(ax, "framed: your panel", "", "Correlation of the errors of two judges")
    cells(ax, of_pairs.round(decimals=1) + 0.0, "{:.1f}", size=8, aspect="equal")
    middle = (len(panel) - 1) / 2
    frame(ax, middle, middle, size=len(panel))
    ax.set(xticks=range(len(names)), yticks=range(len(names)))
    ax.set(xticklabels=names, yticklabels=names)
    return ax


def plot_gains(
    errors: Mapping[str, Tensor], climbs: Mapping[str, Climb], level: float
) -> Axes:
    """What policies gained, by the error of the mark; and a level without marks."""
    ax, told = axes_row(width=8.6, height=3.6)[0], []
    ax.axhline(0, color="grey", lw=1)
    rows = sorted(errors.items(), key=lambda row: row[1].std().item())
    for (name, error), colour, marker in zip(rows, COLOURS, "os^DvPX", strict=False):
        size = error.std().item()
        gain, spread = (float(value) for value in mean_and_error(climbs[name].gain))
        look: dict[str, Any] = {
            "color": colour,
            "fmt": marker,
            "ms": 7,
            "capsize": 2,
            "label": name,
        }
        ax.errorbar(size, gain, spread, **look)
        told.append(f"{name}: error {size:.2f}, gain {gain:+.2f}")
    ax.axhline(level, color=LEVEL, ls="--", lw=1, label="nobody asked")
    describe(ax.figure, f"Gain against error. {'; '.join(told)}.")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=10)
    xlabel = "error of the mean mark, in points, over all responses"
    return finish(ax, xlabel, "change of the true reward, in points")


def plot_paths(paths: Mapping[str, Sequence[Tensor]]) -> Axes:
    """What policies gain on their way: KL and gain [step seed], mean over the seeds."""
    ax, told = axes_row(height=4.2)[0], []
    ax.axhline(0, color="grey", lw=1)
    for (name, path), colour, line in zip(paths.items(), COLOURS, LINES, strict=False):
        kl, gain = (side.mean(-1) for side in path)
        ax.plot(kl.sqrt(), gain, color=colour, ls=line, label=name)
        ax.plot(kl[-1].sqrt(), gain[-1], "o", color=colour)
        told.append(f"{name}: at most {gain.max():+.2f}, then {gain[-1]:+.2f}")
    describe(ax.figure, f"Gain against the KL to the start. {'; '.join(told)}.")
    ticks = 0, 0.1, 0.5, 1, 2, 3, 4, 5
    ax.set_xticks([tick**0.5 for tick in ticks], [*map(str, ticks)])
    ax.legend(loc="lower left", fontsize=10)
    xlabel = "KL to the start, in nats (drawn: its square root)"
    return finish(ax, xlabel, "change of the true reward, in points")


def plot_beside_teacher(
    teachers: Tensor, starts: Tensor, ends: Mapping[str, Tensor]
) -> list[Axes]:
    """Where students go, against the true reward of their teachers: [dot] each.

    The first half have the better teachers.
    """
    axes = axes_row(len(ends), width=2.6 * len(ends), height=3.6)
    every = torch.cat([teachers, starts, *ends.values()])
    low, high = every.min().item() - 0.05, every.max().item() + 0.05
    for ax, (name, own) in zip(axes, ends.items(), strict=True):
        as_good: dict[str, Any] = {"color": LEVEL, "ls": "--", "lw": 1}
        ax.plot([low, high], [low, high], label="as good as its teacher", **as_good)
        ax.vlines(
            teachers, starts, own, color=LEVEL, lw=0.7, label="way from its start"
        )
        halves = zip(("better", "worse"), teachers.chunk(2), own.chunk(2), strict=True)
        for (kind, x, y), colour, mark in zip(halves, COLOURS, "o^", strict=False):
            look: dict[str, Any] = {"color": colour, "ms": 5, "alpha": 0.8}
            ax.plot(x, y, mark, label=f"a {kind} teacher", **look)
        ylabel = "its student's, in points" if ax is axes[0] else ""
        finish(ax, "teacher's true reward", ylabel, name).set_ylim(low, high)
    legend_below(axes)
    return axes
