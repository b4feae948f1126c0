"""Samples of an old policy, counted as often as the new one would draw them."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, PI, PI_OLD


def plot_means(
    plain: Tensor, weighted: Tensor, earned_old: float, earned: float
) -> Axes:
    """Means of old samples as dots, without a ratio and with it. [repeat] each

    A line stands at what each of the two policies earns, exactly.
    """
    ax = axes_row(width=8.0, height=2.4)[0]
    rows = ((1.0, plain, PI_OLD, "v"), (0.0, weighted, PI, "o"))
    for row, means, colour, mark in rows:
        jitter = torch.linspace(-0.2, 0.2, len(means))
        look: dict[str, Any] = {"ls": "", "ms": 7, "alpha": 0.65, "mec": "none"}
        ax.plot(means, row + jitter, mark, color=colour, **look)
    old, new = r"$\pi_\mathrm{old}$ earns", r"$\pi$ earns"
    ax.axvline(earned_old, color=PI_OLD, ls="--", lw=2, label=f"{old} {earned_old:.3f}")
    ax.axvline(earned, color=PI, lw=2, label=f"{new} {earned:.3f}")
    ax.set_yticks([1, 0], ["plain", "weighted by $r$"])
    ax.set_ylim(-0.5, 1.5)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    finish(ax, "mean reward of the samples", "")
    told = [
        f"{name} from {means.min():.2f} to {means.max():.2f}"
        for name, means in (("plain", plain), ("weighted", weighted))
    ]
    text = "Means of samples of the old policy as dots"
    lines = f"lines at what the policies earn, {earned_old:.3f} and {earned:.3f}"
    describe(ax.figure, f"{text}: {', '.join(told)}; {lines}.")
    return ax


def plot_directions(
    exact: Tensor, gradients: dict[str, Tensor], colours: Sequence[str] = COLOURS
) -> Axes:
    """Gradients as arrows of one length, each at its angle to the exact one. [weight]

    Such an angle lies in a plane of its own: the arrows are turned into one.
    """
    ax, told = axes_row(width=6.5)[0], []
    same: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    for (name, gradient), colour in zip(gradients.items(), colours, strict=False):
        cosine = torch.cosine_similarity(gradient, exact, dim=0).clamp(-1, 1)
        along, across = cosine.item(), cosine.arccos().sin().item()
        told.append(f"{name}: {cosine.arccos().rad2deg():.0f}°")
        ax.quiver(0, 0, along, across, color=colour, width=0.012, **same)
        ax.text(1.04 * along, 1.04 * across, f" {told[-1]}", va="center")
    ax.set(xlim=(-0.1, 1.9), ylim=(-0.08, 1.12), aspect="equal")
    ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    finish(ax, "along the exact gradient", "across it")
    text = "Gradients as arrows of one length, by their angle to the exact one"
    describe(ax.figure, f"{text}: {', '.join(told)}.")
    return ax


def plot_shares(weights: Tensor, ax: Axes) -> Tensor:
    """How the weight of a group is shared, mean over groups. [... trial] -> [trial]

    The responses of each group stand in the order of their weights.
    """
    shares = (weights / weights.sum(-1, keepdim=True)).sort(-1, descending=True).values
    mean = shares.flatten(0, -2).mean(0)
    ax.bar(range(1, len(mean) + 1), mean, color=PI)
    ax.axhline(1 / len(mean), color="grey", ls=":", lw=1.5)
    ax.text(len(mean) + 0.4, 1.6 / len(mean), "an equal share", ha="right")
    finish(ax, "responses of a group, heaviest first", "share of the weight")
    return mean
