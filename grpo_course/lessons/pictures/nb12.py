"""What notebook 12 alone draws."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    FAINT,
    axes_row,
    cells,
    finish,
    frame,
    sign_colour,
)


def plot_forks(answers: Sequence[Mapping[str, Any]]) -> Axes:
    """Each answer as a row of tokens, coloured by how one step moved their chance.

    An answer has its reward, its tokens, and their chances `then` and `now`. A full
    colour is a factor of two.
    """
    left, height, long, told = 5.5, 1.5, 0.0, []  # cells
    middle: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    ax = axes_row()[0]
    for row, one in enumerate(answers):
        y, x, whole, words = height * row, 0.0, 1.0, []
        for token, was, now in zip(one["tokens"], one["then"], one["now"], strict=True):
            shown = "□" if token.startswith("<|") else token.strip() or "_"
            wide, factor = max(1.0, 0.62 * len(shown) + 0.3), now / was
            whole *= factor
            strength = min(1.0, abs(math.log2(factor)))
            colour: dict[str, Any] = {"fc": sign_colour(factor - 1), "alpha": strength}
            ax.add_patch(Rectangle((x, y), wide, 1, lw=0, **colour))
            ax.add_patch(Rectangle((x, y), wide, 1, fill=False, ec=FAINT, lw=0.4))
            ax.text(x + wide / 2, y + 0.5, shown, **middle)
            if strength > 0.3:
                words.append(f"{shown} {was:.2f} to {now:.2f}")
            x += wide
        name = f"R {one['reward']:.1f}   × {whole:.2g}"
        ax.text(-0.3, y + 0.5, name, ha="right", va="center")
        told.append(f"{name}: {', '.join(words)}")
        long = max(long, x)
    plt.gcf().set_size_inches(0.215 * (left + long + 1), 0.5 * len(answers) + 0.4)
    ax.set_title("green: likelier after the step, orange: rarer")
    ax.set(xlim=(-left, long + 1), ylim=(height * len(answers), -0.1))
    ax.axis("off")
    text = "Answers as rows of tokens, coloured where one step moved their chance"
    describe(ax.figure, f"{text}. {'; '.join(told)}.")
    return ax


def plot_sums(
    asked: Sequence[Mapping[str, Any]],
    practised: Collection[tuple[str, int, int]],
    stops: Mapping[str, int],
    size: int = 12,
) -> list[Axes]:
    """Tables of additions up to `size`, a title each: which held-out sums are right.

    `asked` as `finale.held_out` gives it; `stops` names the place of each stop in its
    `came_out`. `practised` holds the problems of training, which are marked with a dot;
    in a square stands how many answers it is the share of.
    """
    row = axes_row(len(stops), width=9, height=4.0)
    sums = [(left, right) for operation, left, right in practised if operation == "+"]
    practice = [right for _, right in sums], [left for left, _ in sums]
    words = []
    for ax, (title, stop) in zip(row, stops.items(), strict=True):
        came_out: dict[tuple[int, int], list[bool]] = {}
        for one in asked:
            if one["operation"] == "+":
                cell = one["left"] - 1, one["right"] - 1
                came_out.setdefault(cell, []).append(one["came_out"][stop])
        shares = torch.full((size, size), torch.nan)
        for (left, right), each in came_out.items():
            shares[left, right] = share = sum(each) / len(each)
            ink = "black" if share > 0.4 else "white"
            look: dict[str, Any] = {"ha": "center", "va": "center", "size": 8}
            ax.text(right + 1, left + 1, str(len(each)), color=ink, **look)
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
        for total in (20, 21):  # a frame around each sum that makes it
            for left in range(total - size, size + 1):
                frame(ax, left, total - left, lw=1.5, ec="#D55E00")
            ax.text(size + 0.7, total - size, str(total), color="#D55E00", va="center")
        finish(ax, "second number", "first number" if ax is row[0] else "", title)
        ax.grid(visible=False)
        ax.set(xlim=(0.5, size + 0.5), ylim=(0.5, size + 0.5), xticks=ax.get_yticks())
        words.append(f"{title}: {shares.nanmean():.2f} in the mean")
    figure = plt.gcf()
    figure.colorbar(image, ax=row, label="share right", shrink=0.8)
    key = "dot: training may ask it; number: how many answers to it"
    figure.suptitle(key, x=0.44, y=0.93, size="medium")
    text = "Tables of additions, yellow where held-out sums come out right, dots where"
    describe(
        figure,
        f"{text} training asks; frames mark sums of 20 and 21. {'; '.join(words)}.",
    )
    return row


def plot_runs(sums: Mapping[str, Sequence[Mapping[str, Any]]]) -> Axes:
    """A row a seed, a column a sum: how many of its problems came out right at the end.

    The problems of a sum are as `finale.held_out` gives them.
    """
    seeds = sorted({one["seed"] for every in sums.values() for one in every})
    shares, texts = torch.full((len(seeds), len(sums)), torch.nan), []
    for row, seed in enumerate(seeds):
        texts.append([""] * len(sums))
        for column, every in enumerate(sums.values()):
            right = [one["came_out"][-1] for one in every if one["seed"] == seed]
            if right:
                shares[row, column] = sum(right) / len(right)
                texts[row][column] = f"{sum(right)} of {len(right)}"
    ax = cells(axes_row(width=8.5, height=2.6)[0], shares, texts, cmap="cividis")
    finish(ax, "sum", "seed").grid(visible=False)
    ax.set(xticks=range(len(sums)), xticklabels=list(sums), yticks=range(len(seeds)))
    rows = [
        f"seed {row}: {', '.join(filter(None, each))}" for row, each in enumerate(texts)
    ]
    names = ", ".join(sums).replace("\n", " ")
    describe(ax.figure, f"Right answers to sums of {names}. {'; '.join(rows)}.")
    return ax
