"""What notebook 01 alone draws."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    LINED,
    LINES,
    PARTS,
    axes_grid,
    finish,
    frame,
    legend_above,
    plot_counts,
    plot_learned,
    write,
)
from grpo_course.lessons.pictures.shared import draw_cube
from grpo_course.loop import mean_and_error


def plot_reward_counts(rewards: dict[str, Tensor]) -> list[Axes]:
    """Responses that earn each reward, a star above the best. rewards[name] [all]"""
    counts = {name: earned.long().bincount() for name, earned in rewards.items()}
    axes = plot_counts(counts, "reward", "responses")
    top = max(count.max().item() for count in counts.values())
    for ax, count in zip(axes, counts.values(), strict=True):
        ax.set_ylim(0, 1.15 * top)  # one scale for all
        write(ax, "★", len(count) - 1, count[-1].item(), (0, 18), size=14)
    return axes


def plot_reward_map(cube: Tensor, dead_ends: Tensor) -> list[Axes]:
    """The reward of each response, as a colour and a number, its dead ends framed.

    A table for each first number; the second number is its row, the third its column.
    cube is [first second third], dead_ends lists the responses in question, [end pos].
    """
    (axes,) = axes_grid(1, 5, 10.0, 2.4)
    low, best = cube.min().item(), cube.max().item()

    def text_at(at: tuple) -> str:
        return "★" if cube[at] == best else f"{cube[at]:g}"

    draw_cube(axes, cube, text_at, limits=(low, best))
    for first, second, third in dead_ends.tolist():
        look = {"ec": DOWN, "lw": 2, "path_effects": LINED}
        frame(axes[first], second, third, 0.9, **look)
    text = "Each response as a cell with its reward, dead ends framed"
    describe(axes[0].figure, f"{text}: {len(dead_ends)}.")
    return axes


def plot_ends(title: str, ends: dict[str, Tensor]) -> Axes:
    """How many prompts the policies of each setting learned. ends[name] [seed]

    At the end of a bar stands the mean P(sorted), and its standard error.
    """
    (ax,) = plot_learned({title: ends})
    told = {
        name: "{:.2f} ± {:.2f}".format(*mean_and_error(p)) for name, p in ends.items()
    }
    for text, value in zip(ax.texts, told.values(), strict=True):
        text.set_text(value)
    ax.set(xlim=(0, 1.34), xlabel="share of the policies; right: mean P(sorted)")
    listed = "; ".join(f"{name} {value}" for name, value in told.items())
    said = "Bars divided by prompts learned; mean P(sorted), standard error"
    describe(ax.figure, f"{title}. {said}: {listed}.")
    return ax


def plot_means(
    curves: dict[str, Tensor], ylabel: str = "P(sorted)", ax: Axes | None = None
) -> Axes:
    """The mean over the seeds, and a standard error to each side. [step seed]"""
    ax = ax or axes_grid(1, 1, 7.0, 3.2)[0][0]
    for (name, curve), colour, line in zip(
        curves.items(), COLOURS, LINES, strict=False
    ):
        mean, error = mean_and_error(curve)  # over the seeds, [step]
        ax.plot(mean, color=colour, ls=line, label=name)
        ax.fill_between(
            range(len(mean)), mean - error, mean + error, color=colour, alpha=0.3, lw=0
        )
    ax.set(xlim=(0, len(mean)))
    if ylabel == "P(sorted)":
        ax.set_ylim(0, 1)
    return legend_above(finish(ax, "step", ylabel))


def plot_hacking(
    paid: dict[str, Tensor],
    sorts: dict[str, Tensor],
    prompt: Tensor,
    answers: Tensor,
) -> list[Axes]:
    """What each reward pays, how often its policies sort, and what one lot answers.

    The curves are [step seed]. answers [seed pos] are those to `prompt` [pos] of the
    policies that the first reward paid, hatched where they are wrong.
    """
    ((left, middle, right),) = axes_grid(1, 3, 11.0, 3.4)
    plot_means(paid, "points earned (of 5)", left)
    plot_means(sorts, ax=middle)
    same: Any = middle.get_legend()
    same.remove()
    kinds, counts = answers.unique(dim=0, return_counts=True)
    wrong = (kinds != prompt.sort().values).any(dim=-1).tolist()
    for row, (count, is_wrong) in enumerate(zip(counts.tolist(), wrong, strict=True)):
        right.barh(row, count, 0.7, **PARTS[1 if is_wrong else 0])
        write(right, str(count), count, row, (5, 0), ha="left")
    right.set_yticks(range(len(kinds)), [str(kind) for kind in kinds.tolist()])
    right.invert_yaxis()
    right.set_xlim(0, 1.15 * counts.max().item())
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    missed = counts[torch.tensor(wrong)].sum()
    title = (
        f"{next(iter(paid))}, on {prompt.tolist()}:\n{missed} of {counts.sum()} wrong"
    )
    finish(right, "policies", "", title).grid(visible=False)
    return [left, middle, right]
