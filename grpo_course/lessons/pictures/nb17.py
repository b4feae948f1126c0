"""What notebook 17 alone draws."""

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    LINES,
    axes_row,
    finish,
)


def plot_terms(ends: Mapping[tuple[str, str, bool], Tensor]) -> list[Axes]:
    """P(right) without and with a term: a panel for who gets a mark.

    ends[source, receiver, with the term] is [seed]. A thin line is a seed, a thick one
    the mean of a source.
    """
    sources = list(dict.fromkeys(source for source, _, _ in ends))
    receivers = list(dict.fromkeys(receiver for _, receiver, _ in ends))
    axes = axes_row(len(receivers), width=4.4 * len(receivers), height=3.4)
    for ax, receiver in zip(axes, receivers, strict=True):
        for source, colour, line in zip(sources, COLOURS, LINES, strict=False):
            pair = [ends[source, receiver, term] for term in (False, True)]
            sides = torch.stack(pair)  # [side seed]
            ax.plot(sides, color=colour, lw=0.8, alpha=0.5)
            ax.plot(sides.mean(-1), color=colour, ls=line, lw=3, label=source)
        ax.set_xticks([0, 1], ["without −log π", "with −log π"])
        ax.set(xlim=(-0.2, 1.2), ylim=(0, 1))
        finish(ax, "", "", f"a mark for {receiver}")
    axes[0].set_ylabel("P(right) after 40 rollouts")
    axes[0].legend(loc="lower right", frameon=False)
    return axes
