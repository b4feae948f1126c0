"""What notebook 13 alone draws."""

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, cells, finish
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
