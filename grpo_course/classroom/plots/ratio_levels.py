"""Ratios of tokens and of whole responses, and how hard each token pulls."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import CLIP, COLOURS, GONE, PI

ENDS = (0.22, 4.6)  # of the axis, in ratios
TICKS = (0.25, 0.5, 0.8, 1, 1.2, 2, 4)
CROSS: dict[str, Any] = {"ls": "", "marker": "x", "ms": 10, "mew": 3, "zorder": 3}
CROSS |= {"color": "black"}
SHIFTS = (-0.19, 0.19)  # of two bars beside each other
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": PI},
    {"facecolor": COLOURS[4], "edgecolor": "white", "hatch": "///"},
)


def plot_levels(
    ratio: Tensor, mask: Tensor, of_response: Tensor, epsilon: float = 0.2
) -> Axes:
    """A row for each response: its tokens' ratios as dots, its own as a diamond.

    ratio, bool mask [trial pos], of_response [trial]; the grey band is the clip range.
    """
    ax = axes_row(width=8.0, height=1.7 + 0.3 * len(ratio))[0]
    dots: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6, "color": GONE, "mew": 0}
    diamond: dict[str, Any] = {"marker": "D", "ms": 10, "color": PI, "mec": "white"}
    for row, (values, keep) in enumerate(zip(ratio, mask, strict=True)):
        many = int(keep.sum())
        ax.plot(
            values[keep], [row - 0.18] * many, alpha=max(0.1, 1 - many / 70), **dots
        )
        ax.plot(of_response[row], row + 0.14, zorder=3, **diamond)
    ax.plot([], [], label="a token", **dots)
    ax.plot([], [], ls="", label="the response", **diamond)
    ax.axvspan(1 - epsilon, 1 + epsilon, label="clip range", **CLIP)
    ax.axvline(1, color="black", lw=0.8)
    ax.set(xscale="log", xlim=ENDS, ylim=(len(ratio) - 0.5, -0.5))
    ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    ax.set_yticks(range(len(ratio)), [f"response {row}" for row in range(len(ratio))])
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    finish(ax, "ratio $r$", "").grid(visible=False)
    plt.tight_layout()
    describe(ax.figure, levels_words(ratio[mask], of_response, epsilon))
    return ax


def outside(ratio: Tensor, epsilon: float) -> int:
    """How many ratios are outside the clip range."""
    return int(((ratio - 1).abs() > epsilon).sum())


def levels_words(tokens: Tensor, of_response: Tensor, epsilon: float) -> str:
    """The spread of both kinds of ratio, as one says it."""
    told = [
        f"{name} from {values.min():.2f} to {values.max():.2f}, "
        f"{outside(values, epsilon)} of {len(values)} outside the clip range"
        for name, values in (("tokens", tokens), ("responses", of_response))
    ]
    return f"Ratios: {'; '.join(told)}."


def wide_as(counts: Sequence[int]) -> list[Axes]:
    """Panels beside each other, as wide as they have tokens: all bars are alike."""
    look: dict[str, Any] = {"figsize": (10.0, 3.4), "layout": "constrained"}
    _, axes = plt.subplots(1, len(counts), width_ratios=counts, squeeze=False, **look)
    return list(axes[0])


def plot_pulls(
    ratio: Tensor, mask: Tensor, deltas: Tensor, pulls: Mapping[str, Tensor]
) -> list[Axes]:
    """How hard each token pulls under each loss, as bars; a cross where not at all.

    ratio, bool mask and each of the pulls [trial pos], deltas [trial].
    """
    axes = wide_as(mask.sum(-1).tolist())
    most = max(pull[mask].max().item() for pull in pulls.values())
    least = min(pull[mask].min().item() for pull in pulls.values())
    for trial, ax in enumerate(axes):
        keep = mask[trial]
        for shift, (name, pull), look in zip(SHIFTS, pulls.items(), LOOKS, strict=True):
            places, values = torch.arange(int(keep.sum())) + shift, pull[trial, keep]
            ax.bar(places, values, 0.36, label=name, **look)
            gone = places[values.abs() < 1e-6]
            ax.plot(gone, torch.zeros_like(gone), **CROSS)
        names = [f"{value:.1f}" for value in ratio[trial, keep].tolist()]
        ax.set_xticks(range(len(names)), names)
        ax.axhline(0, color="black", lw=1)
        ax.set_xlim(-0.5, len(names) - 0.5)
        ax.set_ylim(min(0.0, least) - 0.3, max(0.0, most) + 0.3)
        title = rf"$\delta = {deltas[trial]:+g}$"
        finish(ax, "ratio of the token", "pull", title).grid(visible=False, axis="x")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside upper center", ncols=2)
    told = [f"{k} {', '.join(f'{x:.1f}' for x in v[mask])}" for k, v in pulls.items()]
    shown = ", ".join(f"{value:.1f}" for value in ratio[mask])
    describe(ax.figure, f"Tokens of ratio {shown}. Bars, pulls: {'; '.join(told)}.")
    return axes
