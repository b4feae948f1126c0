"""How three means over a batch weigh the tokens of a short and of a long response."""

from collections.abc import Mapping
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, GROUND
from grpo_course.formulas import aggregate

MEANS = ("sequence_mean", "token_mean", "constant")
SHORT, LONGEST = 2, 12  # tokens of the short response; tokens that a row has room for
TALLEST = 1 / (2 * SHORT)  # no token weighs more than this
ROW = 1.75  # from one row of blocks to the next


def token_weights(tokens: int, mean: str) -> Tensor:
    """The weight of each token: of SHORT tokens, then of `tokens`. -> [trial pos]"""
    mask = torch.arange(LONGEST) < torch.tensor([[[SHORT], [tokens]]])
    per_token = torch.zeros(1, 2, LONGEST, requires_grad=True)
    total = aggregate(per_token, mask, mean)
    (weights,) = torch.autograd.grad(total, per_token)
    return weights[0]


def draw_blocks(
    ax: Axes, weights: Tensor, bottom: float, tallest: float = TALLEST
) -> None:
    """A row of blocks for one response; the area of each is its weight. [pos]"""
    heights = weights[weights > 0] / tallest
    for x, height in enumerate(heights.tolist()):
        look: dict[str, Any] = {"facecolor": COLOURS[0], "edgecolor": GROUND, "lw": 1.5}
        ax.add_patch(Rectangle((x, bottom), 1, height, **look))
    text = f"{weights[0]:.3f} each, {weights.sum():.2f} together"
    ax.text(0, bottom + heights[0].item() + 0.08, text, fontsize=11)
    ax.hlines(bottom, 0, LONGEST, color="black", lw=0.8)


def draw_mean_weights(tokens: int) -> str:
    """One panel a mean, one row of blocks a response; -> what the long one weighs."""
    axes, parts = axes_row(len(MEANS), width=10.0, height=3.3), []
    for ax, mean in zip(axes, MEANS, strict=True):
        short, long = token_weights(tokens, mean)
        for weights, bottom in ((short, ROW), (long, 0.0)):
            draw_blocks(ax, weights, bottom)
        ax.set(xlim=(-0.2, LONGEST + 0.2), ylim=(-0.1, 2 * ROW - 0.3), title=mean)
        ax.axis("off")
        parts.append(f"{mean} {short[0]:.3f} and {long[0]:.3f}")
    for bottom, count in ((ROW, SHORT), (0.0, tokens)):
        place: dict[str, Any] = {"ha": "right", "va": "bottom"}
        axes[0].text(-0.6, bottom, f"{count} tokens", **place)
    describe(
        axes[0].figure,
        f"A row of blocks for a response of {SHORT} tokens and one for a response of "
        f"{tokens}, under three means; the area of a block is the weight of its token. "
        f"A token of the short and one of the long: {'; '.join(parts)}.",
    )
    shares = [w[1].sum() / w.sum() for w in (token_weights(tokens, m) for m in MEANS)]
    told = ", ".join(f"{m} {s:.2f}" for m, s in zip(MEANS, shares, strict=True))
    return f"{tokens} tokens: the long response's share of the weight: {told}."


def plot_weights(weights: Mapping[str, Tensor]) -> list[Axes]:
    """A panel for each mean: a short response above, a long one below. [trial pos] each

    A weight is 0 at the padding; the tallest block is equally high in all panels.
    """
    axes, told = axes_row(len(weights), width=11.0, height=2.8), []
    for ax, (name, rows) in zip(axes, weights.items(), strict=True):
        for row, bottom in zip(rows, (ROW, 0.0), strict=True):
            draw_blocks(ax, row, bottom, rows.max().item())
        ax.set(xlim=(-0.2, rows.shape[1] + 0.2), ylim=(-0.1, 2 * ROW - 0.3), title=name)
        ax.axis("off")
        told.append(f"{name} {rows[0, 0]:.3f} and {rows[1, 0]:.3f}")
    for row, bottom in zip(rows, (ROW, 0.0), strict=True):
        place: dict[str, Any] = {"ha": "right", "va": "bottom"}
        axes[0].text(-0.6, bottom, f"{(row > 0).sum()} tokens", **place)
    words = "Blocks as high as tokens of a short and of a long response weigh"
    describe(axes[0].figure, f"{words}, under each mean: {'; '.join(told)}.")
    return axes
