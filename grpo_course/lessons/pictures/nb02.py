"""Pictures of 02_policy alone: how often unseen prompts are sorted."""

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import legend_above, plot_bands


def plot_unseen(ends: Mapping[int, tuple[Tensor, Tensor]]) -> Axes:
    """P(sorted) of prompts trained on and held out, by how many were trained on.

    `ends` holds both [seed] for each number of prompts.
    """
    seen, unseen = (
        torch.stack([each[side] for each in ends.values()]) for side in (0, 1)
    )
    curves = {"the prompts trained on": seen, "25 held out": unseen}
    ax = plot_bands(curves, "P(sorted)", "prompts trained on", x=list(ends))
    ax.set_xscale("log")
    ax.set_xticks(list(ends), list(map(str, ends)))
    ax.minorticks_off()
    return legend_above(ax)
