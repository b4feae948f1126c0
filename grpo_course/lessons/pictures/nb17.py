"""What notebook 17 alone draws."""

from collections.abc import Mapping
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    GONE,
    LINES,
    PI,
    axes_row,
    finish,
)


def plot_overrated(
    true: Tensor,
    scores: Tensor,
    policies: Mapping[str, Tensor],
    ylabel: str = "the model's reward (std)",
    ylim: tuple[float, float] = (-3.6, 3.6),
) -> list[Axes]:
    """A panel for each policy: a disc for each response, as large as its probability.

    A ring marks the model's favourite. true and scores [all], each policy [all].
    """
    axes = axes_row(len(policies), width=4.6 * len(policies), height=3.6)
    best = scores.argmax()
    # Many responses are worth the same: spread them a little, the same way each time.
    across = true + 0.25 * (torch.arange(len(true)) * 0.618 % 1 - 0.5)
    ring: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": COLOURS[1], "mew": 2.5}
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        ax.plot(across, scores, ".", color=GONE, ms=4)
        ax.scatter(across, scores, s=900 * probs, color=PI, alpha=0.55, lw=0, zorder=3)
        ax.plot(across[best], scores[best], "o", zorder=4, **ring)
        finish(ax, "true reward", "", f"{name}: worth {(probs * true).sum():.2f}")
        ax.set(xticks=range(4), xlim=(-0.5, 3.5), ylim=ylim)
    axes[0].set_ylabel(ylabel)
    return axes


def plot_terms(ends: Mapping[tuple[str, str, bool], Tensor]) -> Axes:
    """P(right) without and with a term, a line for each source and receiver of marks.

    ends[source, receiver, with the term] is [seed]: each seed is a dot, or a circle
    where each token is marked.
    """
    ax = axes_row(width=7.6, height=3.6)[0]
    lines = [*dict.fromkeys(key[:2] for key in ends)]
    sources = [*dict.fromkeys(source for source, _ in lines)]
    for row, (source, receiver) in enumerate(lines):
        sides = torch.stack([ends[source, receiver, term] for term in (False, True)])
        colour = COLOURS[sources.index(source)]
        look: dict[str, Any] = {"color": colour, "ls": LINES[row % 2]}
        fill: dict[str, Any] = {"mfc": "none"} if row % 2 else {"alpha": 0.5}
        across = torch.tensor([0.0, 1.0]) + 0.03 * (row - 1.5)
        ax.plot(across, sides.mean(-1), lw=2.5, label=f"{source}, {receiver}", **look)
        for x, values in zip(across, sides, strict=True):
            ax.plot(x.expand_as(values), values, "o", ms=5, color=colour, **fill)
    ax.set_xticks([0, 1], ["without −log π", "with −log π"])
    ax.set(xlim=(-0.3, 1.3), ylim=(0, 1))
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return finish(ax, "", "P(right) after 40 rollouts")
