"""What notebook 00 alone draws."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    GROUND,
    axes_row,
    draw_group,
    draw_policy,
    empty_tables,
    frame,
    right_words,
    sign_colour,
)

# A moment of learning: a policy, and the group that it samples with its deltas.


def plot_moment(moment: Any, answer: Sequence[int], most: float) -> list[Axes]:
    """A policy, and the group that it samples with the rewards, `most` at best.

    `moment` is one of `lessons.one_prompt.learn_one`. Colour and sign of a bar are
    those of its delta: above or below the mean of the group.
    """
    left, right = axes_row(2, width=8.6, height=2.9)
    draw_policy(left, moment.probs, answer, r"the policy $\pi$")
    names = [" ".join(map(str, row)) for row in moment.responses.tolist()]
    draw_group(right, moment.rewards, names, "points")
    right.set_title("the answers it writes")
    right.set(xlim=(0, most), xticks=range(int(most) + 1))
    for row, delta in enumerate(moment.deltas.tolist()):
        mark_delta(right, row, delta)
    plt.tight_layout()
    points = ", ".join(f"{reward:g}" for reward in moment.rewards.tolist())
    text = f"A policy as a table of colours, {right_words(moment.probs, answer)}"
    text += f". Its answers as bars of {points} points"
    above = int((moment.deltas > 0).sum())
    describe(left.figure, f"{text}; {above} of them above the mean of the group.")
    return [left, right]


def mark_delta(ax: Axes, row: int, delta: float) -> None:
    """The bar of a row in the colour of its delta, and the sign at its right."""
    sign = "+" if delta > 0 else "\N{MINUS SIGN}" if delta < 0 else "0"
    ax.patches[row].set_color(sign_colour(delta))
    place: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "va": "center"}
    style: dict[str, Any] = {"color": sign_colour(delta), "weight": "bold"}
    ax.annotate(sign, (1.03, row), annotation_clip=False, **place, **style)


# What a policy writes to every prompt there is.


PROMPT_MAP_SHADES = (COLOURS[5], COLOURS[4], COLOURS[3])  # black can be read on each


def plot_prompt_map(answers: Tensor, known: Tensor, trained: Tensor) -> list[Axes]:
    """Each prompt as a cell with the answer to it, framed where that is right.

    The tables are those of `plot_reward_map`. answers is [first second third pos];
    each of the three in `known`, [answer pos], has a colour, all others have none.
    A dot marks each prompt in `trained`, [prompt pos].
    """
    (axes,) = empty_tables(1, len(answers))
    same = (answers[..., None, :] == known).all(dim=-1)  # [first second third answer]
    colour = torch.where(
        same.any(dim=-1), same.int().argmax(dim=-1), len(PROMPT_MAP_SHADES)
    )
    for ax, cells in zip(axes, colour, strict=True):
        ax.imshow(
            cells, cmap=ListedColormap([*PROMPT_MAP_SHADES, GROUND]), vmin=0, vmax=3
        )
        ax.set(xticks=range(len(cells)), yticks=range(len(cells)))
        ax.grid(visible=False)
    right = 0
    for prompt in torch.ones(answers.shape[:-1]).nonzero().tolist():
        first, second, third = prompt
        answer = answers[first, second, third].tolist()
        word = "".join(map(str, answer))
        axes[first].text(third, second, word, ha="center", va="center", size=10)
        if prompt in trained.tolist():
            axes[first].plot(third, second + 0.29, "o", color="black", ms=4)
        if answer == sorted(prompt):
            right += 1
            frame(axes, prompt, "black")
    axes[0].set_ylabel("second")
    counts = zip(known.tolist(), same.sum(dim=(0, 1, 2)).tolist(), strict=True)
    told = ", ".join(f"{answer} to {count}" for answer, count in counts)
    dots = f"A dot marks the {len(trained)} that were trained on."
    text = f"Each of {colour.numel()} prompts as a cell with its answer, {right} framed"
    describe(axes[0].figure, f"{text} as right. The answer {told}. {dots}")
    return axes
