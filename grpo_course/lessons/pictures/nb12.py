"""What notebook 12 alone draws."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import axes_row, finish


def plot_sums(
    asked: Sequence[Mapping[str, Any]],
    practised: Collection[tuple[str, int, int]],
    stops: Mapping[str, int],
    size: int = 12,
) -> list[Axes]:
    """Tables of additions up to `size`, a title each: which held-out sums are right.

    `asked` as `finale.held_out` gives it; `stops` names the place of each stop in its
    `came_out`. `practised` holds the problems of training, which are marked with a dot.
    """
    row = axes_row(len(stops), width=9, height=4.0)
    sums = [(left, right) for operation, left, right in practised if operation == "+"]
    practice = [right for _, right in sums], [left for left, _ in sums]
    words = []
    for ax, (title, stop) in zip(row, stops.items(), strict=True):
        came_out: dict[tuple[int, int], list[bool]] = {}
        for one in asked:
            if one["operation"] == "+":
                place = one["left"] - 1, one["right"] - 1
                came_out.setdefault(place, []).append(one["came_out"][stop])
        shares = torch.full((size, size), torch.nan)
        for place, right in came_out.items():
            shares[place] = sum(right) / len(right)
        image = ax.imshow(
            shares.numpy(),
            cmap="cividis",
            vmin=0,
            vmax=1,
            origin="lower",
            extent=(0.5, size + 0.5, 0.5, size + 0.5),
        )
        ax.set_yticks(range(2, size + 1, 2))
        ax.scatter(*practice, s=12, color="grey")
        for total in (20, 21):  # a line through all sums that make it
            ax.plot([total - size, size], [size, total - size], color="#D55E00", lw=1.2)
            ax.text(size + 0.7, total - size, str(total), color="#D55E00", va="center")
        finish(ax, "second number", "first number" if ax is row[0] else "", title)
        ax.set(xlim=(0.5, size + 0.5), ylim=(0.5, size + 0.5), xticks=ax.get_yticks())
        words.append(f"{title}: {shares.nanmean():.2f} in the mean")
    figure = plt.gcf()
    figure.colorbar(image, ax=row, label="share right", shrink=0.8)
    text = "Tables of additions, yellow where held-out sums come out right, dots where"
    describe(
        figure,
        f"{text} training asks; lines join sums of 20 and 21. {'; '.join(words)}.",
    )
    return row
