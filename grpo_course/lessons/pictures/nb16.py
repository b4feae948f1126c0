"""What notebook 16 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    PI,
    axes_row,
    finish,
    legend_above,
    legend_below,
    write,
)


def plot_tools(runs: Mapping[str, Sequence[Tensor]]) -> list[Axes]:
    """Reward and logged entropy in each rollout; runs[name] has both, [rollout seed]."""
    axes = axes_row(2, width=10.0)
    for row, (name, run) in enumerate(runs.items()):
        for ax, values in zip(axes, run, strict=True):
            colour, line = COLOURS[row], LINES[row]
            ax.plot(values.mean(dim=-1), color=colour, ls=line, label=name)
    finish(axes[0], "rollout", "mean reward")
    finish(axes[1], "rollout", "logged entropy, nats")
    legend_below(axes)
    return axes


def plot_kinds(curves: Mapping[str, Tensor], stops: Sequence[int]) -> Axes:
    """The share right of each kind of problem: a thin line a seed. [stop seed]"""
    ax = axes_row()[0]
    for (kind, curve), colour, line in zip(
        curves.items(), COLOURS, LINES, strict=False
    ):
        ax.plot(stops, curve, color=colour, ls=line, lw=1, alpha=0.5)
        ax.plot(stops, curve.mean(dim=-1), color=colour, ls=line, lw=3, label=kind)
    finish(ax, "update", "share right")
    return legend_above(ax)


def plot_needed(counts: Mapping[str, Tensor]) -> Axes:
    """Conversations needed for each turn, [turn] for each name, on a log axis.

    The last turn is the answer. Names that share a beginning share a colour, and the
    second of them is dashed.
    """
    ax = axes_row(width=8.0, height=3.6)[0]
    colours: dict[str, str] = {}
    for name, numbers in counts.items():
        kind, _, rest = name.partition(", ")
        known = colours.setdefault(kind, COLOURS[len(colours)])
        look: dict[str, Any] = {"color": known, "ls": LINES[1 if rest else 0]}
        ax.plot(range(1, len(numbers) + 1), numbers, marker="o", label=name, **look)
    longest = max(map(len, counts.values()))
    ax.set(yscale="log", xlim=(0.8, longest + 0.2))
    ax.set_xticks(range(1, longest + 1), [f"turn {n}" for n in range(1, longest + 1)])
    finish(ax, "the last turn of each line is the answer", "conversations needed")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


def plot_learned_turns(needed: Mapping[int, float]) -> Axes:
    """Conversations needed for a bad turn, by how many turns are learned already."""
    ax = axes_row()[0]
    ax.plot([*needed], [*needed.values()], marker="o", color=PI)
    ax.set(yscale="log", ylim=(3, 1e6))
    ax.set_xticks([*needed])
    for learned, number in needed.items():
        write(ax, f"{number:,.0f}", learned, number, (8, 6), fontsize=11, ha="left")
    ax.set_xlim(-0.2, max(needed) + 0.5)
    finish(ax, "turns of the four that copy 98 times in 100", "conversations needed")
    return ax
