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
    LINED,
    axes_grid,
    axes_row,
    draw_group,
    draw_policy,
    frame,
    sign_colour,
)
from grpo_course.lessons.pictures.shared import draw_cube


def plot_moment(moment: Any, answer: Sequence[int], most: float) -> list[Axes]:
    """A policy, and the group that it samples with the rewards, `most` at best.

    `moment` is one of `lessons.one_prompt.learn_one`. Colour and sign of a bar are
    those of its delta: above or below the mean of the group.
    """
    left, right = axes_row(2, width=8.6, height=2.9)
    draw_policy(left, moment.probs, answer, r"the policy $\pi$")
    names = [" ".join(map(str, row)) for row in moment.responses.tolist()]
    draw_group(right, moment.rewards, names, "points")
    right.set(
        xlim=(0, most), xticks=range(int(most) + 1), title="the answers it writes"
    )
    place: Any = {"xycoords": right.get_yaxis_transform(), "annotation_clip": False}
    for row, delta in enumerate(moment.deltas.tolist()):
        sign, colour = (
            "+" if delta > 0 else "−" if delta < 0 else "0",
            sign_colour(delta),
        )
        right.patches[row].set_color(colour)
        right.annotate(
            sign, (1.03, row), va="center", color=colour, weight="bold", **place
        )
    plt.tight_layout()
    return [left, right]


def plot_prompt_map(answers: Tensor, known: Tensor, trained: Tensor) -> list[Axes]:
    """Each prompt as a cell with the answer to it, framed where that is right.

    answers is [first second third pos]; each of the three in `known`, [answer pos], has
    a colour, all others have none. A dot marks each prompt in `trained`, [prompt pos].
    """
    ((*axes,),) = axes_grid(1, len(answers), 2.0 * len(answers), 2.4)
    same = (answers[..., None, :] == known).all(dim=-1)  # [first second third answer]
    kind = same.int().argmax(dim=-1).where(same.any(dim=-1), len(known))
    shades = ListedColormap([COLOURS[5], COLOURS[4], COLOURS[3], GROUND])
    draw_cube(
        axes,
        kind,
        lambda at: "".join(map(str, answers[at].tolist())),
        cmap=shades,
        limits=(0, 3),
        size=10,
    )
    prompts = torch.cartesian_prod(*[torch.arange(len(answers))] * 3)
    right = (answers.flatten(0, 2) == prompts.sort(dim=-1).values).all(dim=-1)
    for first, second, third in prompts[right].tolist():
        frame(axes[first], second, third, 0.9, lw=2, path_effects=LINED)
    for first, second, third in trained.tolist():
        axes[first].plot(third, second + 0.29, "o", color="black", ms=4)
    counts = ", ".join(
        f"{answer} to {count}"
        for answer, count in zip(
            known.tolist(), same.sum(dim=(0, 1, 2)).tolist(), strict=True
        )
    )
    describe(
        axes[0].figure,
        f"Each prompt as a cell with its answer, framed if right: {counts}.",
    )
    return axes
