"""Every response by what it is worth and by a learned reward; what beta saves."""

from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow
from grpo_course.classroom.plots.palette import COLOURS, GONE, LEVEL, PI, sign_colour

RING: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": COLOURS[1], "mew": 2.5}
RING |= {"zorder": 4}  # around what the model likes best
LARGEST = 900.0  # points squared, of a response that is sure
LEAST = 0.005  # a change of the true reward that is drawn


def plot_overrated(
    true: Tensor,
    scores: Tensor,
    policies: dict[str, Tensor],
    ylabel: str = "the model's reward (std)",
    ylim: tuple[float, float] = (-3.6, 3.6),
) -> list[Axes]:
    """A panel for each policy: a disc for each response, as large as its probability.

    A ring marks the model's favourite. true and scores [all], each policy [all].
    """
    axes = axes_row(len(policies), width=4.6 * len(policies), height=3.6)
    favourite = scores.argmax()
    # Many responses are worth the same: spread them a little, the same way each time.
    across = true + 0.25 * (torch.arange(len(true)) * 0.618 % 1 - 0.5)
    look: dict[str, Any] = {"color": PI, "alpha": 0.55, "lw": 0, "zorder": 3}
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        ax.plot(across, scores, ".", color=GONE, ms=4)
        ax.scatter(across, scores, s=LARGEST * probs, **look)
        ax.plot(across[favourite], scores[favourite], "o", **RING)
        finish(ax, "true reward", "", f"{name}: worth {(probs * true).sum():.2f}")
        ax.set(xticks=range(4), xlim=(-0.5, 3.5), ylim=ylim)
    axes[0].set_ylabel(ylabel)
    describe(
        axes[0].figure,
        f"{len(true)} responses as dots, the true reward across and what a model "
        f"gives upwards, with a disc on each as large as its probability. "
        f"{top_words(true, scores)} "
        f"{'; '.join(policy_words(true, p, name) for name, p in policies.items())}.",
    )
    return axes


def top_words(true: Tensor, scores: Tensor) -> str:
    """What the response is worth that the model likes best."""
    return f"The model's favourite is worth {true[scores.argmax()]:g}."


def policy_words(true: Tensor, probs: Tensor, name: str) -> str:
    """Where the largest disc lies."""
    top = probs.argmax()
    return f"{name}, the largest disc has {probs[top]:.2f} and is worth {true[top]:g}"


def draw_overrated(
    true: Tensor, scores: Tensor, policies: dict[str, Tensor], seed: int
) -> str:
    """The picture for a slider over seeds, [seed all]; -> the sentence below it."""
    chosen = {name: probs[seed] for name, probs in policies.items()}
    plot_overrated(true, scores[seed], chosen)
    worth = [f"{name} {(p * true).sum():.2f}" for name, p in chosen.items()]
    favourite = top_words(true, scores[seed])
    return f"Seed {seed}. {favourite} The policy is worth: {', '.join(worth)}."


def tempting(scores: Tensor, probs: Tensor) -> Tensor:
    """The largest chance of a response that is rated above the likeliest. [seed all]"""
    likeliest = scores.gather(-1, probs.argmax(-1, keepdim=True))  # [seed 1]
    return torch.where(scores > likeliest, probs, 0.0).amax(dim=-1)


def plot_climbs_by_beta(
    starts: dict[str, Tensor], ends: dict[str, Tensor], betas: Sequence[float]
) -> list[Axes]:
    """For each beta an arrow from what a start is worth to where its climb ended.

    A panel for each name. starts are [seed], ends [beta seed]: each seed is a dot.
    """
    axes, told = axes_row(len(ends), width=10.0, height=3.4), []
    for ax, (name, rows) in zip(axes, ends.items(), strict=True):
        start = starts[name].mean().item()
        ax.axhline(start, color=LEVEL, ls=":", lw=2)
        for place, values in enumerate(rows):
            draw_climb(ax, place, start, values)
        ax.set_xticks(range(len(betas)), [f"{beta:g}" for beta in betas])
        ax.set(xlim=(-0.6, len(betas) - 0.4), ylim=(0.8, 3.4))
        finish(ax, "β", "true reward (3 is best)" if ax is axes[0] else "", name)
        ends_at = ", ".join(f"{values.mean():.2f}" for values in rows)
        told.append(f"{name}: from {start:.2f} to {ends_at}")
    at = ", ".join(f"{beta:g}" for beta in betas)
    words = f"Arrows from the true reward of a start to that of the end, at beta {at}"
    describe(axes[0].figure, f"{words}. {'; '.join(told)}.")
    return axes


def draw_climb(ax: Axes, place: float, start: float, ends: Tensor) -> None:
    """One arrow, with the mean change above it and a dot beside it for each seed."""
    gap = ends.mean().item() - start
    look: dict[str, Any] = {"color": PI, "alpha": 0.4, "lw": 0}
    ax.plot([place + 0.22] * len(ends), ends, "o", ms=4, **look)
    if abs(gap) > LEAST:  # the head of a short, thick one would be too long
        width = min(4.0, 1 + 8 * abs(gap))
        draw_arrow(ax, (place, start), (place, start + gap), gap, width)
    words: dict[str, Any] = {"ha": "center", "color": sign_colour(gap)}
    ax.text(place, 3.15, f"{gap:+.2f}", fontsize=10, **words)
