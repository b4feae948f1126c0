"""What notebook 16 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    axes_row,
    finish,
    legend_below,
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


def plot_kinds(curves: Mapping[str, Tensor], stops: Sequence[int]) -> list[Axes]:
    """The share right of each kind of problem, a panel for a seed. [stop seed]"""
    num_seeds = next(iter(curves.values())).shape[-1]
    axes = axes_row(num_seeds, width=2.2 * num_seeds)
    for seed, ax in enumerate(axes):
        for row, (kind, curve) in enumerate(curves.items()):
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(stops, curve[:, seed], label=kind, **look)
        ax.set(ylim=(-0.03, 1.03))
        finish(ax, "update", "" if seed else "share right", f"seed {seed}")
    legend_below(axes)
    return axes


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
