"""Pictures of 02_policy alone: how often unseen prompts are sorted."""

from collections.abc import Mapping

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import legend_above, plot_bands


def plot_unseen(
    ends: Mapping[tuple[int, int], tuple[Tensor, Tensor]],
    size: int,
    more: tuple[int, int],
) -> Axes:
    """P(sorted) of prompts trained on and held out, by how many were trained on.

    `ends` holds both [seed] for each (prompts, responses); `size` is the number of
    responses of the curves, and the pair `more` is drawn as circles.
    """
    counts = sorted({count for count, each in ends if each == size})
    seen, unseen = (
        torch.stack([ends[count, size][side] for count in counts]) for side in (0, 1)
    )
    curves = {"the prompts trained on": seen, "25 held out": unseen}
    ax = plot_bands(curves, "P(sorted)", "prompts trained on", x=counts)
    circles = [each.mean() for each in ends[more]]
    label = f"{more[1]} responses each"
    ax.plot([more[0]] * 2, circles, "o", c="black", mfc="none", ms=10, label=label)
    ax.set_xscale("log")
    ax.set_xticks(counts, list(map(str, counts)))
    ax.minorticks_off()
    return legend_above(ax)
