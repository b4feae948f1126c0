"""How far updates are turned away from a gradient; what is won against what is kept."""

from collections.abc import Mapping, Sequence
from math import cos, radians, sin
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.seeds import mean_and_error
from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    axes_row,
    finish,
    legend_above,
)
from grpo_course.classroom.plots.alt_text import describe

LABELS = ((10, -15), (9, 5), (0, 8))  # where a beta stands, in each run
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}
WAY: dict[str, Any] = ARROW | {"lw": 2.5, "mutation_scale": 18}
TIPS = ((10, 4), (10, -12), (-6, 10))  # where the name of an end stands, by its tip
TRUE: dict[str, Any] = ARROW | {"color": "black", "lw": 2.5, "mutation_scale": 18}
THIN: dict[str, Any] = ARROW | {"color": COLOURS[0], "lw": 1.5, "alpha": 0.7}


def plot_turned(angles: Mapping[str, Tensor]) -> list[Axes]:
    """The true gradient as a black arrow, each update as one turned away from it.

    angles [case] are in degrees. All arrows have one length, and all turn one way:
    the angle alone is drawn.
    """
    axes, told = axes_row(len(angles), width=10.0, height=2.2), []
    for ax, (name, each) in zip(axes, angles.items(), strict=True):
        for turn in map(radians, each.tolist()):
            ax.annotate("", (cos(turn), sin(turn)), (0, 0), arrowprops=THIN)
        ax.annotate("", (1, 0), (0, 0), arrowprops=TRUE)
        words = f"{each.mean():.0f}°, at worst {each.max():.0f}°"
        ax.set(xlim=(0, 1.05), ylim=(-0.06, 0.4), aspect="equal")
        ax.set_title(f"{name}: {words}")
        ax.axis("off")
        told.append(f"{name} by {words}")
    text = "Updates as arrows turned away from the true gradient"
    describe(axes[0].figure, f"{text}: {'; '.join(told)}.")
    return axes


def plot_trade(
    runs: Mapping[str, tuple[Tensor, Tensor]],
    betas: Sequence[float],
    xlabel: str,
    ylabel: str,
) -> Axes:
    """What runs win across and what they keep upwards, a line each, a dot each beta.

    runs hold won and kept, [beta seed] each. Bars are one standard error; the first
    and the last beta stand beside their dots.
    """
    ax, told = axes_row(width=7.5, height=4.0)[0], []
    looks = zip(COLOURS, LINES, LABELS, strict=False)
    for (name, pair), (colour, line, shift) in zip(runs.items(), looks, strict=False):
        (won, lost), (kept, unsure) = map(mean_and_error, pair)
        look: dict[str, Any] = {"color": colour, "ls": line, "elinewidth": 0.8}
        ax.errorbar(won, kept, unsure, lost, marker="o", ms=6, label=name, **look)
        ends = [(won[i].item(), kept[i].item()) for i in (0, -1)]
        for beta, end in zip((betas[0], betas[-1]), ends, strict=True):
            ink: dict[str, Any] = {"color": colour, "textcoords": "offset points"}
            ax.annotate(f"β = {beta:g}", end, shift, **ink)
        told.append(f"{name} from {words_of(*ends[0])} to {words_of(*ends[1])}")
    ax.set(xlim=(-0.05, 1.2), ylim=(0, 1.08))
    legend_above(finish(ax, xlabel, ylabel))
    plt.tight_layout()
    span = f"β from {betas[0]:g} to {betas[-1]:g}"
    describe(ax.figure, f"{ylabel} against {xlabel}, {span}: {'; '.join(told)}.")
    return ax


def plot_ways_from(
    starts: Mapping[str, tuple[Tensor, Tensor]],
    ends: Mapping[str, Mapping[str, tuple[Tensor, Tensor]]],
    xlabel: str,
    ylabel: str,
) -> Axes:
    """An arrow from each start to each of its ends, whose names stand at the tips.

    What is won goes across and what is kept upwards, [seed] each: an arrow joins two
    means.
    """
    ax, told = axes_row(width=7.5, height=4.2)[0], []
    for (name, start), colour in zip(starts.items(), COLOURS, strict=False):
        x, y = (each.mean().item() for each in start)
        ax.plot(x, y, "o", ms=10, color=colour)
        for (end, pair), shift in zip(ends[name].items(), TIPS, strict=False):
            tip = pair[0].mean().item(), pair[1].mean().item()
            ax.annotate("", tip, (x, y), arrowprops=WAY | {"color": colour})
            ax.annotate(end, tip, shift, textcoords="offset points", color=colour)
            told.append(f"{name}, {end}: from {words_of(x, y)} to {words_of(*tip)}")
        ax.annotate(name, (x, y), (-4, 12), textcoords="offset points", ha="center")
    ax.set(xlim=(-0.1, 1.2), ylim=(-0.05, 1))
    describe(ax.figure, f"Arrows by {xlabel} and {ylabel}. {'; '.join(told)}.")
    return finish(ax, xlabel, ylabel)


def mark_remedy(
    ax: Axes, runs: Mapping[str, tuple[Tensor, Tensor]], kept: float, share: float
) -> None:
    """A dotted line at what must be kept, and on it a tick in the colour of each run.

    Right of its tick a run wins at least this share of what it won at the first beta.
    """
    ax.axhline(kept, color="black", ls=":", lw=1)
    told = []
    for (name, (won, _)), colour in zip(runs.items(), COLOURS, strict=False):
        least = share * won[0].mean().item()
        ax.plot(least, kept, "|", ms=18, mew=3, color=colour)
        told.append(f"{name} {least:.2f}")
    text = f"{ax.figure.get_label()} A dotted line at {kept:g}, a tick on it for each"
    describe(ax.figure, f"{text}: {', '.join(told)}.")


def words_of(x: float, y: float) -> str:
    """A place, as one says it."""
    return f"{x:.2f}, {y:.2f}"
