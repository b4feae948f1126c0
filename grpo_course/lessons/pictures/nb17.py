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
from grpo_course.lessons.preferences import Climb
from grpo_course.loop import mean_and_error


def name_end(
    ax: Axes,
    end: tuple[float, float],
    name: str,
    colour: str,
    rise: int = 0,
    before: bool = False,
) -> None:
    """A name behind the end of a line, or so many points higher; or before it."""
    look: dict[str, Any] = {"va": "center", "fontsize": 10}
    look |= {"ha": "right", "xytext": (-7, rise)} if before else {"xytext": (7, rise)}
    ax.annotate(name, end, color=colour, textcoords="offset points", **look)


def plot_climbs(climbs: Mapping[str, Climb]) -> list[Axes]:
    """The score that each climb saw, and the true reward: the mean over the policies.

    Both begin at zero; each panel has a unit of its own.
    """
    axes = axes_row(2, width=10.0, height=3.4)
    scores = {name: climb.score for name, climb in climbs.items()}
    truths = {name: climb.true for name, climb in climbs.items()}
    units = ("model's score", "standard deviations"), ("true reward", "points")
    for ax, curves, (what, unit) in zip(axes, (scores, truths), units, strict=True):
        ax.axhline(0, color="grey", lw=1)
        for (name, curve), colour, line in zip(
            curves.items(), COLOURS, LINES, strict=False
        ):
            change = (curve - curve[0]).mean(-1)
            ax.plot(change, color=colour, ls=line, label=name)
            name_end(ax, (len(change) - 1, change[-1].item()), name, colour)
        finish(ax, "rollout", f"change, in {unit}", f"the {what}").margins(x=0.02)
    axes[0].figure.subplots_adjust(wspace=0.95)
    return axes


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
    ax, told = axes_row(width=7.0, height=3.6)[0], []
    ax.axhline(0, color="grey", lw=1)
    rows = sorted(errors.items(), key=lambda row: row[1].std().item())
    for (name, error), colour, marker in zip(rows, COLOURS, "os^DvP", strict=False):
        size = error.std().item()
        gain, spread = (float(value) for value in mean_and_error(climbs[name].gain))
        look: dict[str, Any] = {"color": colour, "fmt": marker, "ms": 7, "capsize": 2}
        ax.errorbar(size, gain, spread, **look)
        close = any(0 < other.std().item() - size < 0.1 for _, other in rows)
        name_end(ax, (size, gain), name, colour, before=close)
        told.append(f"{name}: error {size:.2f}, gain {gain:+.2f}")
    ax.axhline(level, color=LEVEL, ls="--", lw=1)
    ax.text(
        0.97, level, "nobody asked", color=LEVEL, va="bottom", ha="right", fontsize=10
    )
    told.append(f"nobody asked: gain {level:+.2f}")
    describe(ax.figure, f"Gain against error. {'; '.join(told)}.")
    ax.set_xlim(-0.03, 0.97)
    xlabel = "error of the mean mark, in points, over all responses"
    return finish(ax, xlabel, "change of the true reward, in points")


def plot_paths(paths: Mapping[str, Sequence[Tensor]]) -> Axes:
    """What policies gain on their way: KL and gain [step seed], mean over the seeds."""
    ax, told = axes_row(height=4.0)[0], []
    ax.axhline(0, color="grey", lw=1)
    for (name, path), colour, line in zip(paths.items(), COLOURS, LINES, strict=False):
        kl, gain = (side.mean(-1) for side in path)
        end = kl[-1].sqrt().item(), gain[-1].item()
        ax.plot(kl.sqrt(), gain, color=colour, ls=line)
        ax.plot(*end, "o", color=colour)
        name_end(ax, end, name, colour, 9 if end[0] < 0.7 else 0)
        told.append(f"{name}: at most {gain.max():+.2f}, then {gain[-1]:+.2f}")
    describe(ax.figure, f"Gain against the KL to the start. {'; '.join(told)}.")
    ticks = 0, 0.1, 0.5, 1, 2, 3, 4, 5
    ax.set_xticks([tick**0.5 for tick in ticks], [*map(str, ticks)])
    ax.set_xlim(right=2.9)
    xlabel = "KL to the start, in nats (drawn: its square root)"
    return finish(ax, xlabel, "change of the true reward, in points")


def plot_beside_teacher(
    teachers: Tensor, start: float, ends: Mapping[str, Tensor]
) -> list[Axes]:
    """Where students end, against the true reward of their teachers: [dot] each.

    The first half have the better teachers; `start` is where students begin on average.
    """
    axes = axes_row(len(ends), width=4.2 * len(ends), height=3.9)
    every = torch.cat([teachers, *ends.values()])
    low, high = every.min().item() - 0.05, every.max().item() + 0.05
    level: dict[str, Any] = {"color": LEVEL, "lw": 1}
    for ax, (name, own) in zip(axes, ends.items(), strict=True):
        ax.plot([low, high], [low, high], ls="--", label="as its teacher", **level)
        ax.axhline(start, ls=":", label="mean start", **level)
        halves = zip(("better", "worse"), teachers.chunk(2), own.chunk(2), strict=True)
        for (kind, x, y), colour, mark in zip(halves, COLOURS, "o^", strict=False):
            look: dict[str, Any] = {"color": colour, "ms": 5, "alpha": 0.8}
            ax.plot(x, y, mark, label=f"a {kind} teacher", **look)
        ylabel = "student's true reward, in points" if ax is axes[0] else ""
        finish(ax, "teacher's true reward, in points", ylabel, name)
        ax.set_ylim(low, high)
    legend_below(axes)
    return axes
