"""What notebook 13 alone draws."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    CLIP,
    FAINT,
    PI,
    axes_row,
    finish,
    legend_above,
)


def plot_ratios(ratio: Tensor, is_one: Tensor) -> Axes:
    """How far the tokens of good responses have moved, ones and others; log axes.

    `ratio` and `is_one` are [response pos]; the clip range is a grey band, and no bar
    reaches across its edges.
    """
    ax = axes_row(height=2.9)[0]
    edges = (0.8 * 1.5 ** (torch.arange(-23, 33) / 8)).tolist()  # about 1/4 to 4
    others, ones = (ratio[kind].clamp(0.26, 3.9) for kind in (~is_one, is_one))
    ax.hist(others.numpy(), bins=edges, color=FAINT, alpha=0.75, label="other tokens")
    outline: dict[str, Any] = {"histtype": "step", "color": PI, "lw": 2}
    ax.hist(ones.numpy(), bins=edges, label="ones", **outline)
    ax.axvspan(0.8, 1.2, **CLIP, label="the clip's range")
    ax.set_xscale("log", base=2)
    ax.set_xticks([0.25, 0.5, 0.8, 1.2, 2, 4], ["0.25", "0.5", "0.8", "1.2", "2", "4"])
    top: dict[str, Any] = {
        "ha": "center",
        "va": "top",
        "transform": ax.get_xaxis_transform(),
    }
    ax.text(0.45, 0.97, "kept: the clip\nstill pushes these up", **top)
    ax.text(2.3, 0.97, "dropped by\nthe clip", **top)
    finish(ax, "ratio after three steps", "tokens of good responses")
    return legend_above(ax)
