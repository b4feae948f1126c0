"""Samples of an old policy, counted as often as the new one would draw them."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import PI, PI_OLD

WIDTH = 0.38  # of a bar


def plot_reweighed(rewards: Tensor, ratio: Tensor, exact: Tensor) -> Axes:
    """How often each reward occurs in old samples, as they are and weighted.

    rewards and ratio [...] of the samples; exact [reward] is how often the new policy
    earns 0, 1, 2, ... points, drawn as a line over each pair of bars.
    """
    ax = axes_row(width=7.0, height=2.9)[0]
    earned = rewards.flatten().long()
    size = len(exact)
    plain = torch.bincount(earned, minlength=size) / earned.numel()
    weighted = torch.bincount(earned, ratio.flatten(), minlength=size) / earned.numel()
    places = torch.arange(size)
    ghost: dict[str, Any] = {"fill": False, "ec": PI_OLD, "lw": 1.8, "ls": "--"}
    old, new = r"samples of $\pi_\mathrm{old}$", r"the same, each counted $r$ times"
    ax.bar(places - WIDTH / 2, plain, WIDTH, label=old, **ghost)
    ax.bar(places + WIDTH / 2, weighted, WIDTH, color=PI, label=new)
    ends = places - WIDTH, places + WIDTH
    ax.hlines(exact, *ends, color="black", lw=2.5, label=r"$\pi$, exact")
    ax.set_xticks(places.tolist())
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    finish(ax, "reward", "share")
    told = [f"{p:.2f} and {w:.2f}" for p, w in zip(plain, weighted, strict=True)]
    text = "How often old samples earn 0, 1, ... points, as they are and weighted"
    describe(ax.figure, f"{text}: {', '.join(told)}.")
    return ax
