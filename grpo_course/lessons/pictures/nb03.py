"""What notebook 03 alone draws."""

from collections.abc import Mapping, Sequence
from operator import sub
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Generator, Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    CORNERS,
    GROUND,
    LINED,
    PI,
    SHADES,
    axes_grid,
    axes_row,
    corner_names,
    draw_shares,
    finish,
    name_corners,
)
from grpo_course.formulas import compute_deltas
from grpo_course.sort import push_of

# Bars of shares: how many of its prompts each seed has learned, which of them push.


def plot_divided(
    sizes: dict[str, Tensor], names: Sequence[str], xlabel: str, title: str = ""
) -> Axes:
    """A bar for each setting, divided into the shares of three parts. [part] each

    `names` are those of the parts, and `title` stands over them.
    """
    height = 0.8 + 0.36 * len(sizes) + (0.4 if title else 0.2)
    ax = axes_grid(1, 1, 7.5, height)[0][0]
    parts = dict(zip(names, torch.stack(list(sizes.values()), dim=1), strict=True))
    draw_shares(ax, parts, list(sizes), SHADES[1:])
    place: Any = {"loc": "outside upper center", "ncols": len(names)}
    ax.figure.legend(*ax.get_legend_handles_labels(), title=title, **place)
    ax.set(xlim=(0, 1), xlabel=xlabel)
    return ax


# Three answers: every policy is a point of a triangle, every delta mode a field.


GRID, LENGTH = 9, 0.09  # arrows a side, and the longest of them


NOTHING = 1e-4  # an update that is shorter is none


GREY = "#777777"


def expected_push(probs: Tensor, rewards: Tensor, mode: str, size: int) -> Tensor:
    """The average push on the logits by all groups of a size. [point answer] -> same

    rewards [answer]. With centered rewards it is (G - 1) / G of the exact gradient.
    """
    count = len(rewards)
    groups = torch.cartesian_prod(*[torch.arange(count)] * size)  # [group trial]
    deltas = compute_deltas(rewards[groups], mode)
    chances = probs[:, groups].prod(dim=-1)  # [point group]
    chosen = torch.eye(count)[groups]  # [group trial answer]
    pulled = (deltas[..., None] * chosen).mean(dim=1)  # [group answer]
    total = deltas.mean(dim=-1)  # [group]
    return chances @ pulled - (chances @ total)[:, None] * probs


def sampled_path(
    rewards: Tensor, mode: str, size: int, rate: float, steps: int, seed: int
) -> Tensor:
    """A run from equal chances: its policy before each step. -> [step answer]"""
    generator = Generator().manual_seed(seed)
    logits, path = torch.zeros(len(rewards)), []
    for _ in range(steps):
        probs = logits.softmax(dim=0)
        path.append(probs)
        drawn = torch.multinomial(probs, size, True, generator=generator)
        deltas = compute_deltas(rewards[drawn][None], mode)[0]
        pushes = push_of(drawn, deltas[:, None], probs)
        logits = logits + rate * pushes.mean(dim=0)
    return torch.stack(path)


def grid() -> Tensor:
    """Policies spread evenly inside the triangle. -> [point answer]"""
    steps = torch.arange(1, GRID)
    pairs = torch.cartesian_prod(steps, steps)
    pairs = pairs[pairs.sum(dim=-1) < GRID]
    return torch.cat([pairs, GRID - pairs.sum(dim=-1, keepdim=True)], dim=-1) / GRID


def plot_simplex(
    rewards: Tensor, mode: str, paths: Sequence[Tensor], size: int = 4
) -> Axes:
    """The field of a delta mode for groups of a size, and the paths of runs."""
    ax = axes_row(width=5.4, height=4.0)[0]
    draw_field(ax, rewards, mode, size)
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color="black", lw=1)
    for path, colour in zip(paths, (PI, *COLOURS[3:]), strict=False):
        ax.plot(*(path @ CORNERS).T, color=colour, lw=1.8)
        ax.plot(*(path[-1] @ CORNERS), "o", color=colour, ms=9, mec="white")
    ends = [int(path[-1].argmax()) for path in paths if moved(path)]
    names = corner_names(rewards, ends, len(paths))
    name_corners(ax, names)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.1, 0.98), aspect="equal")
    ax.axis("off")
    text = f"A triangle of policies over three answers, the field of {mode} as arrows"
    corners = "; ".join(names).replace("$", "").replace("\n", ": ")
    where = f"At its corners: {corners}" if ends else "Runs from its middle stay there"
    describe(ax.figure, f"{text}. {where}.")
    return ax


def draw_field(ax: Axes, rewards: Tensor, mode: str, size: int) -> None:
    """The average update at each point of the grid: an arrow, or a dot for none."""
    points = grid()
    push = expected_push(points, rewards, mode, size)
    moves = points * (push - (points * push).sum(dim=-1, keepdim=True))
    (x, y), (u, v) = (points @ CORNERS).T, (moves @ CORNERS).T
    longest = (u**2 + v**2).max().sqrt().item()
    if longest < NOTHING:  # arrows would show how the last digits were rounded
        ax.plot(x, y, ".", color=GREY, ms=4)
        return
    same: dict[str, Any] = {"angles": "xy", "scale_units": "xy"}
    ax.quiver(x, y, u, v, color=GREY, scale=longest / LENGTH, **same)


def moved(path: Tensor) -> bool:
    """Whether a run ends elsewhere than it began."""
    return bool((path[-1] - path[0]).abs().max() > NOTHING)


def plot_fan(exact: Tensor, estimates: Tensor, many: Tensor) -> Axes:
    """Estimates of a gradient as thin arrows around the exact one, [estimate ...].

    Across is the part along the exact gradient, up and down the part along one other
    direction, both in lengths of the exact one. The limits are always the same. The
    ring is the mean of `many` more estimates.
    """
    ax = axes_row(width=5.4, height=4.2)[0]
    truth, each = exact.flatten(), estimates.flatten(1)
    along, across = parts(each, truth)  # [estimate] both
    zeros = torch.zeros_like(along)
    same: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    ax.quiver(zeros, zeros, along, across, color=COLOURS[5], width=0.005, **same)
    ax.quiver(0, 0, 1, 0, color="black", width=0.007, zorder=3, **same)
    x, y = (part.item() for part in parts(many.flatten(1).mean(dim=0), truth))
    ring: dict[str, Any] = {"ms": 12, "mfc": "none", "mec": COLOURS[1], "mew": 2}
    ax.plot(x, y, "o", zorder=4, **ring)
    ax.set(xlim=(-4.5, 9.5), ylim=(-6, 6), aspect="equal")
    ax.set(xlabel="along the exact gradient (black)", ylabel="in one other direction")
    error = (each - truth).square().sum(dim=-1).mean().sqrt() / truth.norm()
    text = f"{len(each)} estimates of a gradient as arrows around the exact one"
    text += f", with an error of {error:.2f} of its length. A ring, the mean of"
    describe(ax.figure, f"{text} {len(many)}, is at {x:.2f} along it, {y:.2f} beside.")
    return ax


def parts(vectors: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """How far vectors go along the truth and beside it, in lengths of the truth."""
    along = vectors @ truth / truth.square().sum()
    return along, vectors @ beside_it(truth) / truth.norm()


def beside_it(truth: Tensor) -> Tensor:
    """A direction at right angles to a vector, of length one, always the same one."""
    drawn = torch.randn(len(truth), generator=Generator().manual_seed(0))
    drawn -= (drawn @ truth) / truth.square().sum() * truth
    return drawn / drawn.norm()


# What a mode makes of two gradients: two lengths around the line of equals.


KEPT = 0.999  # a cosine from which on a direction counts as kept


SAME = 0.045  # points that are nearer than this share a dot


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
    aside: dict[str, Any] = {"textcoords": "offset points", "ha": "right"}
    ax.annotate("exact", (1, 1), (-12, 12), **aside)
    for (x, y, cosine), names in together(points).items():
        bent = cosine < KEPT
        ax.plot(x, y, "o", ms=10, mec=PI, mew=2, mfc=GROUND if bent else PI)
        told = ", ".join(names) + (f" (cosine {cosine:.2f})" if bent else "")
        note = ax.annotate(told, (x, y), (10, -4), textcoords="offset points")
        note.set_path_effects([*LINED])  # the line of equals does not cross the name
    most = 1.1 * max(y for _, y, _ in points.values())
    ax.set(xlim=(0, 1.25 * most), ylim=(-0.04 * most, most), aspect="equal")
    listed = [f"{k} {x:.2f}, {y:.2f}" for k, (x, y, _) in points.items()]
    text = f"Dots by {xlabel} and {ylabel}, around the diagonal; exact is 1, 1"
    describe(ax.figure, f"{text}: {'; '.join(listed)}.")
    return finish(ax, xlabel, ylabel)


def together(
    points: Mapping[str, tuple[float, float, float]],
) -> dict[tuple[float, float, float], list[str]]:
    """The names at each place; places that look the same are one, the first."""
    found: dict[tuple[float, float, float], list[str]] = {}
    for name, place in points.items():
        same = (p for p in found if max(map(abs, map(sub, p, place))) < SAME)
        found.setdefault(next(same, place), []).append(name)
    return found
