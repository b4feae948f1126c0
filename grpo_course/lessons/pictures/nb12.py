"""What notebook 12 alone draws."""

import math
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    FAINT,
    axes_row,
    sign_colour,
)
from grpo_course.tasks import CLOSE_THINK, THINK


def plot_forks(
    names: Sequence[str], answers: Sequence[Sequence[str]], then: Tensor, now: Tensor
) -> Axes:
    """Each answer's thinking as a row of tokens, coloured by how one step moved them.

    `then` and `now` hold the chance of each token, [answer pos]. Where it moved by over
    a fifth of its size, both stand below; six times that is a full colour. A name gets
    the factor of the whole answer. Of a long thought, its beginning is drawn.
    """
    shown, moves = {"Ċ": ",", CLOSE_THINK: "□"}, 0.2  # a new line; nats
    left, height, long, told = 9.5, 2.1, 0, []  # in cells
    middle: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    ax = axes_row()[0]
    for row, (name, tokens) in enumerate(zip(names, answers, strict=True)):
        y, whole = height * row, (now / then)[row, : len(tokens)].double().prod()
        told.append(f"{name}  × {whole:.2g}")
        ax.text(-0.3, y + 0.5, told[-1], ha="right", va="center")
        start = int(tokens[:1] == [THINK])
        end = tokens.index(CLOSE_THINK) + 1 if CLOSE_THINK in tokens else len(tokens)
        thought = tokens[start : min(end, start + 60)]
        long, free = max(long, len(thought)), 0  # from here on, numbers fit
        chances = (each[row, start:].tolist() for each in (then, now))
        for x, (token, was, new) in enumerate(zip(thought, *chances, strict=False)):
            moved = math.log(max(new, 1e-30) / max(was, 1e-30))
            look: dict[str, Any] = {"fc": sign_colour(moved), "lw": 0}
            look["alpha"] = min(1.0, abs(moved) / (6 * moves))
            ax.add_patch(Rectangle((x, y), 1, 1, **look))
            ax.add_patch(Rectangle((x, y), 1, 1, fill=False, ec=FAINT, lw=0.4))
            ax.text(x + 0.5, y + 0.5, shown.get(token, token), **middle)
            if abs(moved) > moves and x >= free:
                free, pair = x + 3, f"{was:.2f}→{new:.2f}".replace("0.", ".")
                ax.text(x + 0.5, y + 1.4, pair, **middle)
                told[-1] += f", {shown.get(token, token)} {was:.2f}→{new:.2f}"
    plt.gcf().set_size_inches(0.215 * (left + long + 1), 0.62 * len(names) + 0.1)
    ax.set(xlim=(-left, long + 1), ylim=(height * len(names), -0.1))
    ax.axis("off")
    text = "Answers as rows of tokens, coloured where one step moved their chance"
    describe(ax.figure, f"{text}. {'; '.join(told)}.")
    return ax
