"""What notebook 12 alone draws."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    FAINT,
    GROUND,
    INK,
    UP,
    axes_row,
    finish,
    sign_colour,
)
from grpo_course.tasks import CLOSE_THINK, THINK

# Pictures of word problems: splits, orders, what is paid, how a run's groups tie.


LAYERS: tuple[dict[str, Any], ...] = (
    {"facecolor": UP, "lw": 0},
    {"facecolor": COLOURS[5], "lw": 0},
    {"facecolor": DOWN, "edgecolor": GROUND, "hatch": "//", "lw": 0},
)


def plot_layers(
    layers: Mapping[str, Tensor], x: Sequence[float], xlabel: str, ylabel: str
) -> Axes:
    """Three shares that add up to 1, as bands on each other, the first below; [step].

    Each bears its name where it is widest.
    """
    ax = axes_row(width=8.0)[0]
    bottom = torch.zeros(len(x))
    for (name, share), look in zip(layers.items(), LAYERS, strict=True):
        ax.fill_between(x, bottom, bottom + share, **look)
        edge = max(1, len(x) // 8)  # no name sticks out at an end
        at = int(share[edge:-edge].argmax()) + edge
        paper: dict[str, Any] = {"facecolor": GROUND, "lw": 0, "pad": 2.5}
        middle = (bottom + share / 2)[at].item()
        ax.text(x[at], middle, name, ha="center", va="center", bbox=paper)
        bottom = bottom + share
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1))
    told = [f"{name} from {s[0]:.2f} to {s[-1]:.2f}" for name, s in layers.items()]
    describe(ax.figure, f"Bands on each other, together 1: {'; '.join(told)}.")
    return finish(ax, xlabel, ylabel)


# What one step did to each token of some answers: it moves where they part.


SHOWN = {"Ċ": ",", CLOSE_THINK: "□"}  # for a new line, and for the end of the thinking


MOVED = 0.2  # nats from which a token has its numbers; 6 times that is a full colour


LEAST = 1e-30  # a smaller chance counts as this one


FORKS_MOST = 60  # tokens of a row; what comes later is left out


FORKS_NAMES, WIDE, FORKS_ROW = (
    9.5,
    3,
    2.1,
)  # room for names, for numbers, for a row; in cells


def plot_forks(
    names: Sequence[str], answers: Sequence[Sequence[str]], then: Tensor, now: Tensor
) -> Axes:
    """Each answer's thinking as a row of tokens, coloured by how one step moved them.

    `then` and `now` hold the chance of each token, [answer pos]. Where it moved by over
    a fifth of its size, both stand below. A name gets the factor of the whole answer.
    """
    thoughts = [thinking(tokens) for tokens in answers]
    long = max(map(len, thoughts))
    width = 0.215 * (FORKS_NAMES + long + 1)
    ax = axes_row(width=width, height=0.62 * len(names) + 0.1)[0]
    ax.set(xlim=(-FORKS_NAMES, long + 1), ylim=(FORKS_ROW * len(names), -0.1))
    ax.axis("off")
    told = []
    rows = zip(names, answers, thoughts, then, now, strict=True)
    for row, (name, tokens, thought, was, new) in enumerate(rows):
        whole = (new / was)[: len(tokens)].double().prod()
        label = f"{name}  × {whole:.2g}"
        look: dict[str, Any] = {"ha": "right", "va": "center", "color": INK}
        ax.text(-0.3, FORKS_ROW * row + 0.5, label, **look)
        skipped = tokens[:1] == [THINK]
        moved = draw_row(ax, FORKS_ROW * row, thought, was[skipped:], new[skipped:])
        told.append(f"{label}: {', '.join(moved) or 'no token'}")
    text = "Answers as rows of tokens, coloured where one step moved their chance"
    describe(ax.figure, f"{text}. {'; '.join(told)}.")
    return ax


def thinking(tokens: Sequence[str]) -> list[str]:
    """The tokens between the tags, and the end; all there are where no tag closes.

    Of a long thought, its beginning.
    """
    inner = list(tokens[tokens[:1] == [THINK] :])
    stop = inner.index(CLOSE_THINK) + 1 if CLOSE_THINK in inner else len(inner)
    return [SHOWN.get(token, token) for token in inner[: min(stop, FORKS_MOST)]]


def draw_row(
    ax: Axes, y: float, tokens: Sequence[str], then: Tensor, now: Tensor
) -> list[str]:
    """The tokens of one answer; -> what moved, in words."""
    told, free = [], 0  # from here on, numbers fit
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
    for x, (token, was, new) in enumerate(
        zip(tokens, then.tolist(), now.tolist(), strict=False)
    ):
        moved = math.log(max(new, LEAST) / max(was, LEAST))
        shade = min(1.0, abs(moved) / (6 * MOVED))
        ax.add_patch(Rectangle((x, y), 1, 1, fc=sign_colour(moved), alpha=shade, lw=0))
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=FAINT, lw=0.4))
        ax.text(x + 0.5, y + 0.5, token, parse_math=False, **look)
        if abs(moved) > MOVED and x >= free:
            free = x + WIDE
            pair = f"{was:.2f}→{new:.2f}"
            below = pair.replace("0.", ".")
            ax.text(x + 0.5, y + 1.4, below, **look)
            told.append(f"{token} at {x + 1} {pair}")
    return told
