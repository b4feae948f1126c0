"""What a reward is made of: a group as stacked bars, and its deltas as arrows."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.transforms import ScaledTranslation
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_group
from grpo_course.classroom.plots.palette import COLOURS, PI
from grpo_course.formulas import compute_deltas

# Of the parts, in their order. Hatching tells them apart without any colour.
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": PI},
    {"facecolor": COLOURS[4], "edgecolor": "white", "hatch": "///"},
    {"facecolor": COLOURS[3], "edgecolor": "white", "hatch": "..."},
    {"facecolor": COLOURS[2], "edgecolor": "white", "hatch": "\\\\\\"},
    {"facecolor": COLOURS[5], "edgecolor": "white", "hatch": "xxx"},
)


def plot_parts(
    parts: Mapping[str, Tensor], names: Sequence[str], title: str = ""
) -> list[Axes]:
    """A group's rewards, part by part, and beside them what GRPO makes of the sum.

    Each part is [trial] and holds its weight already. A part below zero goes left.
    """
    left, right = axes_row(2, width=10.0, height=1.5 + 0.42 * len(names))
    total = draw_parts(left, parts, names)
    left.set_title(
        title, pad=left.title.get_position()[1] + 24, loc="left", weight="bold"
    )
    deltas = compute_deltas(total[None], "centered_rewards")[0]
    draw_group(right, deltas, [""] * len(names), r"delta $\delta$", signed=True)
    most = max(0.1, deltas.abs().max().item())
    right.set_xlim(-1.7 * most, 1.7 * most)
    right.locator_params(axis="x", nbins=5)
    plt.tight_layout()
    describe(left.figure, f"{parts_words(parts, names)} Deltas: {listed(deltas)}.")
    return [left, right]


def plot_earned(parts: Mapping[str, Tensor], names: Sequence[str]) -> Axes:
    """What several responses or policies earn, part by part, without any delta."""
    ax = axes_row(width=8.0, height=1.4 + 0.4 * len(names))[0]
    draw_parts(ax, parts, names)
    describe(ax.figure, parts_words(parts, names))
    return ax


def draw_parts(ax: Axes, parts: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """Stacked bars with their sums behind them, one a response; -> the sums [trial]."""
    rows, up, down = range(len(names)), torch.zeros(len(names)), torch.zeros(len(names))
    for (name, values), look in zip(parts.items(), LOOKS, strict=False):
        gain, loss = values.clamp(min=0), values.clamp(max=0)
        ax.barh(rows, gain.tolist(), 0.62, left=up.tolist(), label=name, **look)
        ax.barh(rows, loss.tolist(), 0.62, left=down.tolist(), **look)
        up, down = up + gain, down + loss
    total = torch.stack(list(parts.values())).sum(0)
    away = ax.transData + ScaledTranslation(5 / 72, 0, ax.figure.dpi_scale_trans)
    for row, (end, value) in enumerate(zip(up.tolist(), total.tolist(), strict=True)):
        ax.text(end, row, f"{value:.2f}", va="center", transform=away)
    ax.axvline(0, color="black", lw=1)
    ax.set_yticks(rows, names)
    ax.set(ylim=(len(names) - 0.5, -0.5))
    ax.margins(x=0.16)
    legend_above(finish(ax, "reward, part by part, and its sum", ""))
    ax.grid(visible=False)
    return total


def parts_words(parts: Mapping[str, Tensor], names: Sequence[str]) -> str:
    """What each response earns by each part."""
    told = [f"{name} {listed(values)}" for name, values in parts.items()]
    return f"Stacked bars of {', '.join(names)}. {'; '.join(told)}."


def listed(values: Tensor) -> str:
    """Numbers with two decimals."""
    return ", ".join(f"{value + 0.0:.2f}" for value in values.tolist())
