"""What notebook 03 alone draws: a field of updates, runs in it, curves side by side."""

from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.axes import Axes
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    PI,
    axes_grid,
    axes_row,
    legend_below,
    plot_bands,
)
from grpo_course.lessons.pictures.shared import CORNERS, name_corners


def points_inside(side: int = 9) -> Tensor:
    """Policies spread evenly inside the triangle. -> [point answer]"""
    pairs = torch.cartesian_prod(torch.arange(1, side), torch.arange(1, side))
    pairs = pairs[pairs.sum(dim=-1) < side]
    return torch.cat([pairs, side - pairs.sum(dim=-1, keepdim=True)], dim=-1) / side


def push(probs: Tensor, chosen: Tensor, deltas: Tensor) -> Tensor:
    """What groups do to the logits: the mean of delta * grad log pi. [group answer]

    chosen and deltas [group trial]; probs is one policy, [answer], or each group's own.
    """
    scores = one_hot(chosen, probs.shape[-1]) - probs[..., None, :]
    return (deltas[..., None] * scores).mean(dim=-2)


def average_push(
    policies: Tensor, earned: Tensor, deltas_of: Callable[[Tensor], Tensor]
) -> Tensor:
    """The exact average of `push` over all groups, [point answer] -> [point answer]."""
    groups = torch.cartesian_prod(*[torch.arange(len(earned))] * 4)  # of four
    deltas = deltas_of(earned[groups])  # [group trial]
    averages = [
        probs[groups].prod(dim=-1) @ push(probs, groups, deltas) for probs in policies
    ]
    return torch.stack(averages)


def runs_of_three(
    earned: Tensor, deltas_of: Callable[[Tensor], Tensor], size: int = 4
) -> Tensor:
    """A hundred runs in groups of a size, from equal chances. -> [run step answer]"""
    dice, logits = Generator().manual_seed(0), torch.zeros(100, len(earned))
    path = []
    for _ in range(60):
        path.append(logits.softmax(dim=-1))
        groups = torch.multinomial(path[-1], size, replacement=True, generator=dice)
        logits = logits + push(path[-1], groups, deltas_of(earned[groups]))
    return torch.stack(path, dim=1)


def plot_triangles(
    ways: Mapping[str, Callable[[Tensor], Tensor]],
    earn: Tensor,
    size: int,
    more: Mapping[str, float],
) -> None:
    """Triangles: a row for the rewards of each line of `earn`, [row answer], and a
    column for each way to make deltas. `more` holds the points that a way adds to R.

    Over each stands how many of a hundred runs become sure, and how many of answer A;
    three of them are drawn.
    """
    grid, told = axes_grid(len(earn), len(ways), width=10.5, height=6.4), []
    for row, earned in zip(grid, earn, strict=True):
        for ax, (name, deltas_of) in zip(row, ways.items(), strict=True):
            runs = runs_of_three(earned, deltas_of, size)
            ends = runs[:, -1]
            sure, right = (ends.amax(dim=-1) > 0.8).sum(), (ends[:, 0] > 0.8).sum()
            draw_triangle(ax, earned, deltas_of, [*runs[:3]], more.get(name, 0.0))
            ax.set_title(f"{name}\n{sure} of 100 become sure, {right} of A", pad=20)
            rewards = ", ".join(f"{r:g}" for r in earned)
            told.append(f"{name}, R = {rewards}: {sure} sure, {right} of A")
    describe(grid[0][0].figure, f"Of 100 runs: {'; '.join(told)}.")


def draw_triangle(
    ax: Axes,
    earned: Tensor,
    deltas_of: Callable[[Tensor], Tensor],
    paths: Sequence[Tensor],
    more: float = 0.0,
) -> None:
    """Policies over three answers as points of a triangle: average updates, and runs.

    A corner tells what its answer earns, with `more` points on top. A path is [step
    answer]. A grey arrow shows which way an average update moves, a grey dot that there
    is none; a black dot marks the start of the paths.
    """
    points, grey = points_inside(), "#777777"
    pushes = average_push(points, earned, deltas_of)
    moves = points * (pushes - (points * pushes).sum(dim=-1, keepdim=True))
    (x, y), arrows = (points @ CORNERS).T, moves @ CORNERS
    longest = arrows.norm(dim=-1).max()
    if longest > 1e-4:
        look = {"angles": "xy", "scale_units": "xy", "scale": longest.item() / 0.11}
        ax.quiver(x, y, *arrows.T, color=grey, width=0.008, **look)
    else:  # arrows would show how the last digits were rounded
        ax.plot(x, y, ".", color=grey, ms=4)
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="black", lw=1)
    for path, colour in zip(paths, (PI, COLOURS[3], COLOURS[4]), strict=True):
        ax.plot(*(path @ CORNERS).T, color=colour, lw=1.5)
        ax.plot(*(path[-1] @ CORNERS), "o", color=colour, ms=9, mec="white")
    ax.plot(*(paths[0][0] @ CORNERS), "o", color="black", ms=5, mec="white", zorder=3)
    what = f"$R$ + {more:g}" if more else "$R$"
    names = [f"{k}, {what} = {r + more:g}" for k, r in zip("ABC", earned, strict=True)]
    name_corners(ax, names)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.12, 0.95), aspect="equal")
    ax.axis("off")


def plot_beside(
    panels: Mapping[str, dict[str, Tensor]], ylabel: str, xlabel: str
) -> list[Axes]:
    """Bands [step seed] in each panel, of one scale and with one legend."""
    axes = axes_row(len(panels), width=10.0)
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        first = ax is axes[0]
        if not first:
            ax.sharey(axes[0])
        plot_bands(curves, ylabel if first else "", xlabel, ax=ax).legend().remove()
        ax.set_title(title)
    legend_below(axes)
    return axes
