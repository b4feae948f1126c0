"""What notebook 13 alone draws."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    axes_row,
    cells,
    finish,
    legend_above,
    write,
)
from grpo_course.loop import mean_and_error

CHOICES = ("let go", "pushed")


def plot_pushes(tasks: dict[str, dict[str, Tensor]]) -> list[Axes]:
    """A table for each task: four losses, by what they do with tokens out of the range.

    The upper two let go of those ahead, the left two push those behind. A result
    [seed] is a mean and its standard error; in each table the darkest is the largest.
    """
    row = axes_row(len(tasks), width=1.2 + 3 * len(tasks), height=2.6)
    for ax, (task, arms) in zip(row, tasks.items(), strict=True):
        mean, error = mean_and_error(torch.stack([*arms.values()]))
        told = zip(arms, mean.tolist(), error.tolist(), strict=True)
        texts = [f"{name}\n{value:.2f} ± {about:.2f}" for name, value, about in told]
        table, low, high = mean.reshape(2, 2), mean.min().item(), mean.max().item()
        limits = (2 * low - high, 3 * high - 2 * low)  # all are light behind black
        cells(finish(ax, "", "", task), table, [texts[:2], texts[2:]], limits=limits)
        ax.set_xticks((0, 1), [f"behind:\n{choice}" for choice in reversed(CHOICES)])
        ax.set_yticks((0, 1), [f"ahead:\n{choice}" for choice in CHOICES])
    for ax in row[1:]:
        ax.set_yticklabels(())
    return row


WAYS = {"fresh": "o", "old, from today": "s", "old, from writer": "D"}


def plot_ages(fresh: dict[str, Tensor], old: dict[str, Tensor], ylabel: str) -> Axes:
    """Each loss [seed] on fresh responses and, in two ways, on old ones.

    `old` has two entries for each of `fresh`, in its order. A bar is one standard error
    to each side.
    """
    pairs = torch.stack([*old.values()]).view(len(fresh), 2, -1)
    arms = torch.cat([torch.stack([*fresh.values()])[:, None], pairs], dim=1)
    means, errors = mean_and_error(arms)  # [loss way]
    ax, told = axes_row(height=3.4)[0], []
    for way, (name, marker) in enumerate(WAYS.items()):
        places = torch.arange(len(fresh)) + 0.29 * (way - 1)
        look: Any = {"color": COLOURS[way], "marker": marker, "ls": "", "capsize": 3}
        ax.errorbar(places, means[:, way], errors[:, way], label=name, **look)
        for x, y in zip(places.tolist(), means[:, way].tolist(), strict=True):
            write(ax, f"{y:.2f}", x, y, (6, 0), ha="left", fontsize=10)
    for loss, row, spread in zip(fresh, means.tolist(), errors.tolist(), strict=True):
        each = zip(WAYS, row, spread, strict=True)
        told += [f"{loss}, {way} {y:.2f} ± {about:.2f}" for way, y, about in each]
    ax.set_xticks(range(len(fresh)), [*fresh])
    ax.set_xlim(-0.5, len(fresh) - 0.5)
    describe(ax.figure, f"{ylabel}: {'; '.join(told)}.")
    return legend_above(finish(ax, "", f"{ylabel}\n(± one standard error)"))
