"""Three answers: every policy is a point of a triangle, every delta mode a field."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Generator, Tensor

from grpo_course.classroom.plots import COLOURS, axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import PI
from grpo_course.formulas import compute_deltas
from grpo_course.sort import push_of

CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
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


def corner_names(rewards: Tensor, ends: Sequence[int], count: int) -> list[str]:
    """The reward of each corner's answer, and how many runs end nearest to it."""
    each = zip("ABC", rewards.tolist(), strict=True)
    names = [f"answer {answer}, $R$ = {reward:g}" for answer, reward in each]
    if not ends:  # none has left the middle
        return names
    told = [f"{ends.count(k)} of {count} runs end nearest" for k in range(len(names))]
    return [f"{name}\n{ending}" for name, ending in zip(names, told, strict=True)]


def name_corners(ax: Axes, names: Sequence[str]) -> None:
    """A name at each corner, which is to be sure of one answer."""
    sides = ("top", "top", "bottom")  # of the text: below the base, above the tip
    for corner, name, side in zip(CORNERS, names, sides, strict=True):
        across, height = corner.tolist()
        place: dict[str, Any] = {"ha": "center", "va": side}
        gap = -0.03 if side == "top" else 0.03
        ax.text(across, height + gap, name, **place)


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
