"""What notebook 12 alone draws."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    FAINT,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    sign_colour,
)


def plot_forks(
    names: Sequence[str],
    answers: Sequence[Sequence[str]],
    then: Sequence[Sequence[float]],
    now: Sequence[Sequence[float]],
) -> Axes:
    """Each answer as a row of tokens, coloured by how one step moved them.

    `then` and `now` hold the chance of each token, a list an answer. Where it moved by
    over a fifth of its size, both stand below, unless two digits would hide them; four
    times that is a full colour. A name gets the factor of the whole answer.
    """
    moves, left, height, long, told = 0.2, 11.0, 2.1, 0.0, []  # nats; cells
    middle: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    ax = axes_row()[0]
    rows = zip(names, answers, then, now, strict=True)
    for row, (name, tokens, before, after) in enumerate(rows):
        each = [
            math.log(b / max(a, 1e-5)) for a, b in zip(before, after, strict=True) if b
        ]
        y, x, free = height * row, 0.0, 0.0  # from `free` on, numbers fit
        told.append(f"{name}  × {math.exp(sum(each)):.2g}")
        ax.text(-0.3, y + 0.5, told[-1], ha="right", va="center")
        for token, was, new in zip(tokens, before, after, strict=True):
            shown = "□" if token.startswith("<|") else token.strip() or "_"
            wide = max(1.0, 0.62 * len(shown) + 0.3)
            moved = math.log(max(new, 1e-5) / max(was, 1e-5))
            look: dict[str, Any] = {"fc": sign_colour(moved), "lw": 0}
            look["alpha"] = min(1.0, abs(moved) / (4 * moves))
            ax.add_patch(Rectangle((x, y), wide, 1, **look))
            ax.add_patch(Rectangle((x, y), wide, 1, fill=False, ec=FAINT, lw=0.4))
            ax.text(x + wide / 2, y + 0.5, shown, **middle)
            if abs(moved) > moves and max(was, new) >= 0.005 and x >= free:
                free, pair = x + 3, f"{was:.2f}→{new:.2f}".replace("0.", ".")
                ax.text(x + wide / 2, y + 1.4, pair, **middle)
                told[-1] += f", {shown} {was:.2f}→{new:.2f}"
            x += wide
        long = max(long, x)
    plt.gcf().set_size_inches(0.215 * (left + long + 1), 0.62 * len(names) + 0.1)
    ax.set(xlim=(-left, long + 1), ylim=(height * len(names), -0.1))
    ax.axis("off")
    text = "Answers as rows of tokens, coloured where one step moved their chance"
    describe(ax.figure, f"{text}. {'; '.join(told)}.")
    return ax


def plot_held_out(
    training: Tensor, held: Mapping[str, Tensor], stops: Sequence[int]
) -> list[Axes]:
    """Samples beside samples, on the left; greedy answers by themselves.

    `training` is the share right in samples, the mean of four updates each [update
    seed]; `held` the shares of held-out problems, `sampled` and `greedy` [stop seed].
    """
    row = axes_row(2, width=9)
    updates = [first + 1.5 for first in range(len(training))]  # of four the middle
    measured = "share right, sampled"
    plot_bands(
        {"training": training}, measured, "after so many updates", x=updates, ax=row[0]
    )
    for ax, way in zip(row, ("sampled", "greedy"), strict=True):
        curve, measured = {"held out": held[way]}, f"share right, {way}"
        plot_bands(
            curve,
            measured,
            "after so many updates",
            x=stops,
            ax=ax,
            colours=COLOURS[1:],
        )
        legend_above(ax).set_ylim(0, 1)
    return row


def plot_kinds(
    kinds: Mapping[str, Sequence[Mapping[str, Any]]], stops: Sequence[int]
) -> list[Axes]:
    """How each kind of held-out problem fares: a thin line a run, a thick one the mean.

    The problems are as `finale.held_out` gives them.
    """
    row = axes_row(len(kinds), width=11, height=3.0)
    words = []
    for ax, (name, asked) in zip(row, kinds.items(), strict=True):
        seeds = sorted({one["seed"] for one in asked})
        each = [
            torch.tensor([one["came_out"] for one in asked if one["seed"] == seed])
            .double()
            .mean(0)
            for seed in seeds
        ]
        mean = torch.tensor([one["came_out"] for one in asked]).double().mean(0)
        ax.plot(stops, torch.stack(each, -1), color=COLOURS[0], lw=1, alpha=0.55)
        ax.plot(stops, mean, color=COLOURS[0], lw=3)
        label = "held out, share right" if ax is row[0] else ""
        finish(ax, "after so many updates", label, name).set_ylim(0, 1.03)
        words.append(f"{name}: {mean[0]:.2f} at first, {mean[-1]:.2f} at the end")
    describe(plt.gcf(), f"The share right of each kind. {'; '.join(words)}.")
    return row


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
    row = axes_row(len(stops), width=11, height=3.6)
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
        ax.scatter(*practice, s=4, color="grey")
        for total in (20, 21):  # a line through all sums that make it
            ax.plot([total - size, size], [size, total - size], color="#D55E00", lw=0.8)
        finish(ax, "second number", "first number" if ax is row[0] else "", title)
        ax.set(xlim=(0.5, size + 0.5), ylim=(0.5, size + 0.5))
        words.append(f"{title}: {shares.nanmean():.2f} in the mean")
    figure = plt.gcf()
    figure.colorbar(image, ax=row, label="share right", shrink=0.8)
    text = "Tables of additions, yellow where held-out sums come out right, dots where"
    describe(
        figure,
        f"{text} training asks; lines join sums of 20 and 21. {'; '.join(words)}.",
    )
    return row
