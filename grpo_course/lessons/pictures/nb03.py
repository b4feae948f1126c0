"""What notebook 03 alone draws: a field of updates, and runs in it."""

from collections.abc import Callable, Sequence

import torch
from matplotlib.axes import Axes
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import COLOURS, PI, axes_row
from grpo_course.lessons.pictures.shared import CORNERS, name_corners


def grid(side: int = 9) -> Tensor:
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


def runs_of_three(earned: Tensor, deltas_of: Callable[[Tensor], Tensor]) -> Tensor:
    """A hundred runs in groups of 4, from equal chances. -> [run step answer]"""
    dice, logits = Generator().manual_seed(0), torch.zeros(100, len(earned))
    path = []
    for _ in range(60):
        path.append(logits.softmax(dim=-1))
        groups = torch.multinomial(path[-1], 4, replacement=True, generator=dice)
        logits = logits + push(path[-1], groups, deltas_of(earned[groups]))
    return torch.stack(path, dim=1)


def plot_simplex(
    rewards: Tensor, deltas_of: Callable[[Tensor], Tensor], paths: Sequence[Tensor]
) -> Axes:
    """Policies over three answers as points of a triangle: average updates, and runs.

    A path is [step answer]. An arrow shows which way an average update moves, a dot
    that there is none.
    """
    ax, grey = axes_row(width=5.4, height=4.0)[0], "#777777"
    points = grid()
    pushes = average_push(points, rewards, deltas_of)
    moves = points * (pushes - (points * pushes).sum(dim=-1, keepdim=True))
    (x, y), arrows = (points @ CORNERS).T, moves @ CORNERS
    longest = arrows.norm(dim=-1).max()
    if longest > 1e-4:
        look = {"angles": "xy", "scale_units": "xy", "scale": longest.item() / 0.09}
        ax.quiver(x, y, *arrows.T, color=grey, **look)
    else:  # arrows would show how the last digits were rounded
        ax.plot(x, y, ".", color=grey, ms=4)
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="black", lw=1)
    for path, colour in zip(paths, (PI, *COLOURS[3:]), strict=False):
        ax.plot(*(path @ CORNERS).T, color=colour, lw=1.8)
        ax.plot(*(path[-1] @ CORNERS), "o", color=colour, ms=9, mec="white")
    ends = [
        int(path[-1].argmax())
        for path in paths
        if not path[-1].allclose(path[0], atol=1e-4)
    ]
    names = [
        f"answer {name}, $R$ = {r:g}" for name, r in zip("ABC", rewards, strict=True)
    ]
    told = [f"\n{ends.count(k)} of {len(paths)} runs end nearest" for k in range(3)]
    names = [
        name + (end if ends else "\n ")  # as tall where no run moves
        for name, end in zip(names, told, strict=True)
    ]
    name_corners(ax, names)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.1, 0.98), aspect="equal")
    ax.axis("off")
    describe(
        ax.figure,
        f"Policies as points of a triangle; at its corners {'; '.join(names)}.",
    )
    return ax
