"""The gradient of each token of a batch, and how a token mean counts responses."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.gae_light import SIGNS
from grpo_course.classroom.plots.mechanism import draw_group
from grpo_course.classroom.plots.palette import sign_colour

NO_TOKEN: dict[str, Any] = {"facecolor": "none", "edgecolor": "#c8c8c8"}


def plot_gradients(gradient: Tensor, deltas: Tensor, mask: Tensor) -> Axes:
    """A cell for each token: green where a step down the loss makes it likelier.

    [batch trial pos], [batch trial], bool [batch trial pos]
    """
    ax, cells = axes_row(width=7.5, height=4.0)[0], gradient.flatten(0, 1)
    most = 1.3 * cells.abs().max().item()  # full colours would drown the numbers
    ax.imshow(-cells, cmap=SIGNS, vmin=-most, vmax=most, aspect="auto")
    for row, counts in enumerate(mask.flatten(0, 1).tolist()):
        for pos, is_token in enumerate(counts):
            if is_token:
                text = f"{cells[row, pos]:+.3f}"
                ax.text(pos, row, text, ha="center", va="center")
            else:
                corner = (pos - 0.5, row - 0.5)
                ax.add_patch(Rectangle(corner, 1, 1, hatch="///", lw=0, **NO_TOKEN))
    ax.set_yticks(range(len(cells)), [f"δ {d:+.2f}" for d in deltas.flatten().tolist()])
    ax.axhline(deltas.shape[1] - 0.5, color="black", lw=2)  # between two groups
    total, norm = deltas.sum().item(), cells.norm().item()
    title = f"the deltas add up to {total:g}; norm of the gradient {norm:.3f}"
    finish(ax, "token", "", title).grid(visible=False)
    told = [
        f"{d:+.2f} {c[0]:+.3f}" for d, c in zip(deltas.flatten(), cells, strict=True)
    ]
    text = "A row of cells for each response, a cell for each token, padding hatched"
    describe(ax.figure, f"{text}. Delta and gradient of a token: {'; '.join(told)}.")
    return ax


def draw_lengths(lengths: Tensor, deltas: Tensor) -> list[Axes]:
    """Tokens of each response, in the colour of its delta; tokens x delta. [trial]"""
    axes = axes_row(2, width=9.0, height=3.6)
    rows, product = range(len(lengths)), lengths * deltas
    axes[0].barh(rows, lengths, 0.6, color=[sign_colour(d) for d in deltas.tolist()])
    axes[0].set_yticks(rows, [f"δ {delta:+.2f}" for delta in deltas.tolist()])
    axes[0].set_ylim(len(lengths) - 0.5, -0.5)
    finish(axes[0], r"tokens $\ell$", "").grid(visible=False)
    axes[1].set_xlim(-14, 14)  # the same in each picture of a slider
    draw_group(axes[1], product, [""] * len(rows), r"$\ell \cdot \delta$", signed=True)
    axes[1].set_title(f"their sum: {product.sum() + 0.0:+.2f}")
    plt.tight_layout()
    told = ", ".join(
        f"{n} times {d:+.2f}" for n, d in zip(lengths, deltas, strict=True)
    )
    text = f"Bars of tokens beside arrows of tokens times delta: {told}"
    describe(axes[0].figure, f"{text}; the sum {product.sum() + 0.0:+.2f}.")
    return axes
