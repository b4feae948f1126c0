"""Every response by what it is worth and by what a learned reward says of it."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, GONE, PI

RING: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": COLOURS[1], "mew": 2.5}
RING |= {"zorder": 4}  # around what the model likes best
LARGEST = 900.0  # points squared, of a response that is sure


def plot_overrated(
    true: Tensor, scores: Tensor, policies: dict[str, Tensor]
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
        ax.set(xticks=range(4), xlim=(-0.5, 3.5), ylim=(-3.6, 3.6))
    axes[0].set_ylabel("the model's reward (std)")
    describe(
        axes[0].figure,
        f"{len(true)} responses as dots, the true reward across and the model's "
        f"upwards, with a disc on each as large as its probability. "
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
