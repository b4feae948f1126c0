"""Deltas that sum to zero, and pushes that do not: one group in 03's triangle."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import LINED, draw_arrow, draw_group
from grpo_course.classroom.plots.palette import PI
from grpo_course.classroom.plots.simplex import CORNERS, corner_names, name_corners
from grpo_course.sort import push_of

ZOOM = 2.0  # of all pushes alike: the triangle tells directions, not lengths
EDGE, GAP = "#c8c8c8", 0.02


def pushes_on_logits(logits: Tensor, drawn: Tensor, deltas: Tensor) -> Tensor:
    """Each response's part of minus the gradient of the sequence-mean loss at ratio 1.

    logits [answer], drawn (the answer of each response), deltas [trial]
    -> [trial answer]
    """
    return push_of(drawn, deltas[:, None], logits.softmax(dim=-1)) / len(drawn)


def plot_pushes(
    logits: Tensor, rewards: Tensor, drawn: Tensor, deltas: Tensor
) -> list[Axes]:
    """The deltas of a group with their sum; its pushes tip to tail, with theirs.

    A push sums to zero over the three answers, so the triangle's plane holds all of
    it. logits and rewards [answer], drawn (which answer) and deltas [trial]
    """
    left, right = axes_row(2, width=10.0, height=4.3)
    names = ["ABC"[answer] for answer in drawn.tolist()]
    earned = zip(names, rewards[drawn].tolist(), strict=True)
    rows = [*(f"answer {name}   $R$ {reward:g}" for name, reward in earned), "sum"]
    total, reach = deltas.sum(), 1.6 * deltas.abs().max().item()
    left.set_xlim(-reach, reach)
    draw_group(left, torch.cat([deltas, total[None]]), rows, r"delta $\delta$", True)
    left.axhline(len(drawn) - 0.5, color="black", lw=1)
    left.set_title(f"the deltas add up to {total + 0.0:g}")
    signs = ["to" if delta > 0 else "away from" for delta in deltas.tolist()]
    words = [f"{sign} {name}" for sign, name in zip(signs, names, strict=True)]
    pushes = pushes_on_logits(logits, drawn, deltas)
    draw_chain(right, logits.softmax(dim=-1), pushes, deltas.tolist(), words)
    name_corners(right, corner_names(rewards, [], 0))
    length = pushes.sum(dim=0).norm()
    right.set_title(f"the pushes add up to a norm of {length:.2f}")
    plt.tight_layout()
    each = ", ".join(f"{w} {d:+.2f}" for w, d in zip(words, deltas, strict=True))
    sums = ", ".join(f"{x:+.3f}" for x in pushes.sum(dim=0).tolist())
    text = f"Deltas as arrows, their sum {total:.2f}; pushes tip to tail: {each}"
    describe(left.figure, f"{text}. Their sum, in black, is {sums} on A, B, C.")
    return [left, right]


def draw_chain(
    ax: Axes,
    probs: Tensor,
    pushes: Tensor,
    deltas: Sequence[float],
    words: Sequence[str],
) -> None:
    """Pushes tip to tail from the policy, in the colours of their deltas; their sum.

    probs [answer], pushes [trial answer]; a delta and words for each push
    """
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color=EDGE, lw=1)
    points = torch.cat([probs[None], ZOOM * pushes]).cumsum(dim=0) @ CORNERS
    stops = [(x, y) for x, y in points.tolist()]
    for (foot, head), delta, word in zip(pairwise(stops), deltas, words, strict=True):
        draw_arrow(ax, foot, head, delta, 3.0)
        (x, y), (across, up) = foot, (head[0] - foot[0], head[1] - foot[1])
        beside = (x + across / 2 + 0.3 * up + GAP, y + up / 2 - 0.3 * across)
        ax.text(*beside, word, va="center", path_effects=LINED)
    start, along = points[0], points[-1] - points[0]
    same: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    ax.quiver(*start, *along, color="black", width=0.012, zorder=3, **same)
    x, y = (start + along / 2).tolist()
    ax.text(x - 0.04, y, "sum:\n" + r"$-\nabla L$", ha="right", va="center")
    ax.plot(*start, "o", color=PI, ms=9, mec="white", zorder=4)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.1, 0.98), aspect="equal")
    ax.axis("off")
