"""What notebook 03 alone draws: a field of updates, a fan of estimates, two lengths."""

from collections.abc import Callable, Mapping, Sequence

import torch
from matplotlib.axes import Axes
from torch import Generator, Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    GROUND,
    LINED,
    PI,
    axes_row,
    draw_fan,
    finish,
    write,
)
from grpo_course.lessons.pictures.shared import CORNERS, name_corners


def grid(side: int = 9) -> Tensor:
    """Policies spread evenly inside the triangle. -> [point answer]"""
    pairs = torch.cartesian_prod(torch.arange(1, side), torch.arange(1, side))
    pairs = pairs[pairs.sum(dim=-1) < side]
    return torch.cat([pairs, side - pairs.sum(dim=-1, keepdim=True)], dim=-1) / side


def plot_simplex(
    rewards: Tensor, push: Callable[[Tensor], Tensor], paths: Sequence[Tensor]
) -> Axes:
    """Policies over three answers as points of a triangle: average updates, and runs.

    push gives the average update of the logits at policies, [point answer] -> same; a
    path is [step answer]. An arrow shows which way an update moves, a dot that there is
    none.
    """
    ax, grey = axes_row(width=5.4, height=4.0)[0], "#777777"
    points = grid()
    pushes = push(points)
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
    names = [name + end * bool(ends) for name, end in zip(names, told, strict=True)]
    name_corners(ax, names)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.1, 0.98), aspect="equal")
    ax.axis("off")
    describe(
        ax.figure,
        f"Policies as points of a triangle; at its corners {'; '.join(names)}.",
    )
    return ax


def plot_fan(exact: Tensor, estimates: Tensor, many: Tensor) -> Axes:
    """Estimates of a gradient as thin arrows around the exact one, [estimate ...].

    Across is the part along the exact gradient, up and down the part along one other
    direction, both in lengths of the exact one. The limits are always the same. The
    ring is the mean of `many` more estimates.
    """
    ax = axes_row(width=5.4, height=4.2)[0]
    along = exact.flatten() / exact.norm()
    beside = torch.randn(len(along), generator=Generator().manual_seed(0))
    beside -= beside @ along * along
    plane = torch.stack([along, beside / beside.norm()], dim=1) / exact.norm()
    draw_fan(ax, estimates.flatten(1) @ plane, COLOURS[5], 0.005)
    draw_fan(ax, torch.tensor([1.0, 0.0]), "black", 0.007, zorder=3)
    x, y = (many.flatten(1).mean(dim=0) @ plane).tolist()
    ax.plot(x, y, "o", ms=12, mfc="none", mec=COLOURS[1], mew=2, zorder=4)
    ax.set(xlim=(-4.5, 9.5), ylim=(-6, 6), aspect="equal")
    ax.set(xlabel="along the exact gradient (black)", ylabel="in one other direction")
    text = f"{len(estimates)} estimates of a gradient as arrows around the exact one"
    describe(
        ax.figure,
        f"{text}; a mean of {len(many)} is at {x:.2f} along it, {y:.2f} beside.",
    )
    return ax


def plot_stretch(
    points: Mapping[str, tuple[float, float, float]], xlabel: str, ylabel: str
) -> Axes:
    """How much longer each way makes two gradients, around the line of equals.

    A point is (across, up, cosine of both together with the exact ones). Where that
    direction is bent the dot is hollow, and the cosine stands beside it. A cross marks
    the exact gradients, whose lengths are the unit.
    """
    ax = axes_row(width=6.4, height=4.6)[0]
    ax.axline((0, 0), slope=1, color="grey", ls="--", lw=1.2, zorder=1)
    ax.plot(1, 1, "+", ms=22, mew=1.5, color="black", zorder=1)
    write(ax, "exact", 1, 1, (-12, 12), ha="right", va="baseline")
    shared: dict[tuple[float, float, float], list[str]] = {}  # dots that look the same
    for name, point in points.items():
        near = (
            p
            for p in shared
            if all(abs(a - b) < 0.045 for a, b in zip(p, point, strict=True))
        )
        shared.setdefault(next(near, point), []).append(name)
    for (x, y, cosine), names in shared.items():
        bent = cosine < 0.999
        ax.plot(x, y, "o", ms=10, mec=PI, mew=2, mfc=GROUND if bent else PI)
        told = ", ".join(names) + (f" (cosine {cosine:.2f})" if bent else "")
        look = {"ha": "left", "va": "baseline", "path_effects": LINED}
        write(ax, told, x, y, (10, -4), **look)  # the line does not cross the name
    most = 1.1 * max(y for _, y, _ in points.values())
    ax.set(xlim=(0, 1.25 * most), ylim=(-0.04 * most, most), aspect="equal")
    told = "; ".join(f"{name} {x:.2f}, {y:.2f}" for name, (x, y, _) in points.items())
    describe(ax.figure, f"Dots by {xlabel} and {ylabel}, around the diagonal: {told}.")
    return finish(ax, xlabel, ylabel)
