"""What a policy writes to every prompt there is."""

import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from torch import Tensor

from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, GROUND
from grpo_course.classroom.plots.reward_map import empty_tables, frame

SHADES = (COLOURS[5], COLOURS[4], COLOURS[3])  # black can be read on each


def plot_prompt_map(answers: Tensor, known: Tensor, trained: Tensor) -> list[Axes]:
    """Each prompt as a cell with the answer to it, framed where that is right.

    The tables are those of `plot_reward_map`. answers is [first second third pos];
    each of the three in `known`, [answer pos], has a colour, all others have none.
    A dot marks each prompt in `trained`, [prompt pos].
    """
    (axes,) = empty_tables(1, len(answers))
    same = (answers[..., None, :] == known).all(dim=-1)  # [first second third answer]
    colour = torch.where(same.any(dim=-1), same.int().argmax(dim=-1), len(SHADES))
    for ax, cells in zip(axes, colour, strict=True):
        ax.imshow(cells, cmap=ListedColormap([*SHADES, GROUND]), vmin=0, vmax=3)
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
