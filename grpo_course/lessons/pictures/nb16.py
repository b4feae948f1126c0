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
