"""The mechanism of one update, drawn: policies, pushes, a group.

Each function draws on axes, so that pictures can be put beside each other; the ones
that begin with `plot_` make a whole picture and its alternative text.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish, plot_policy
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import GROUND, PI, sign_colour

REACH = 0.42  # of a cell: how far the longest arrow goes from its middle
Point = tuple[float, float]
SMALLEST = 0.03  # of a cell: what is shorter is not drawn
LINED = [withStroke(linewidth=3.5, foreground="white")]


def outline(ax: Axes, answer: Sequence[int]) -> None:
    """A frame around the right cell of each position."""
    for row, column in enumerate(answer):
        corner = (column - 0.5, row - 0.5)
        style: dict[str, Any] = {"fill": False, "ec": "black", "lw": 2.5, "zorder": 3}
        ax.add_patch(Rectangle(corner, 1, 1, **style))


def draw_policy(ax: Axes, probs: Tensor, answer: Sequence[int], title: str) -> None:
    """A policy as a table of colours with the right cells outlined. [pos vocab]"""
    outline(plot_policy(probs, title, ax), answer)


def plot_policies(policies: dict[str, Tensor], answer: Sequence[int]) -> list[Axes]:
    """Policies beside each other, such as before and after. Each is [pos vocab]."""
    axes = axes_row(len(policies), width=4.4 * len(policies), height=2.7)
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        draw_policy(ax, probs, answer, name)
    for ax in axes[1:]:
        ax.set_ylabel("")
    plt.tight_layout()
    told = [f"{name}: {right_words(p, answer)}" for name, p in policies.items()]
    describe(axes[0].figure, f"Policies as tables of colours. {'; '.join(told)}.")
    return axes


def right_words(probs: Tensor, answer: Sequence[int]) -> str:
    """The probability of the right number at each position, in words."""
    values = probs[range(len(answer)), list(answer)].tolist()
    listed = ", ".join(f"{value:.2f}" for value in values)
    return f"probability of the right number at each position {listed}"


def draw_push(
    ax: Axes, push: Tensor, most: float, shift: float = 0.0, width: float = 2.2
) -> None:
    """An arrow in each cell, up where its logit is pushed up. [pos vocab]

    `most` is the push whose arrow fills a cell; `shift` moves the arrows sideways, so
    that two pushes stand beside each other.
    """
    for row, cells in enumerate(push.tolist()):
        for column, value in enumerate(cells):
            reach = REACH * max(-1.0, min(1.0, value / most)) if most else 0.0
            if abs(reach) > SMALLEST:
                x = column + shift  # the rows of a table are counted downwards
                draw_arrow(ax, (x, row + reach), (x, row - reach), value, width)


def draw_arrow(ax: Axes, foot: Point, head: Point, delta: float, width: float) -> None:
    """An arrow in the colour of the sign of delta, lined in white."""
    style: dict[str, Any] = {"arrowstyle": "-|>", "lw": width, "shrinkA": 0}
    style |= {"color": sign_colour(delta), "shrinkB": 0, "mutation_scale": 5 * width}
    arrow: Any = ax.annotate("", head, foot, arrowprops=style)
    arrow.arrow_patch.set_path_effects(LINED)


def plot_push(
    probs: Tensor,
    pushes: dict[str, Tensor],
    answer: Sequence[int],
    most: float | None = None,
) -> list[Axes]:
    """What an update does to each logit, as arrows on the policy; [pos vocab] each."""
    axes = axes_row(len(pushes), width=4.4 * len(pushes), height=2.7)
    most = most or max(push.abs().max().item() for push in pushes.values())
    for ax, (name, push) in zip(axes, pushes.items(), strict=True):
        draw_policy(ax, probs, answer, name)
        for number in list(ax.texts):
            number.remove()  # the arrows stand in their place
        draw_push(ax, push, most)
    for ax in axes[1:]:
        ax.set_ylabel("")
    plt.tight_layout()
    told = [f"{name}: {push_words(p, answer, most)}" for name, p in pushes.items()]
    text = "Arrows in the cells of a policy, up where a logit rises"
    describe(axes[0].figure, f"{text}. {'; '.join(told)}.")
    return axes


def push_words(push: Tensor, answer: Sequence[int], most: float) -> str:
    """How many arrows are drawn, how many go up, and how many of these are right."""
    up = push > most * SMALLEST / REACH
    drawn = int((push.abs() > most * SMALLEST / REACH).sum())
    right = int(up[range(len(answer)), list(answer)].sum())
    if not drawn:
        return "no arrow is large enough to be seen"
    text = f"arrows in {drawn} of {push.numel()} cells, {int(up.sum())} of them up"
    return f"{text}, {right} of these in right cells"


def draw_group(
    ax: Axes, values: Tensor, names: Sequence[str], xlabel: str, signed: bool = False
) -> None:
    """A group as a column of bars, one a response; as arrows if signed. [trial]"""
    rows = range(len(values))
    for row, value in zip(rows, values.tolist(), strict=True):
        draw = draw_delta if signed else draw_reward
        draw(ax, value, row)
    if signed:
        ax.axvline(0, color="black", lw=1)
    ax.set_yticks(rows, names)
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=5)  # numbers of neighbours do not meet
    finish(ax, xlabel, "").grid(visible=False)


def draw_reward(ax: Axes, value: float, row: int) -> None:
    """One bar with its number in it."""
    ax.barh(row, value, 0.6, color=PI)
    ink = GROUND if value > 0 else "black"
    place: dict[str, Any] = {
        "xytext": (4, 0),
        "textcoords": "offset points",
        "va": "center",
    }
    ax.annotate(f"{value:g}", (0, row), color=ink, **place)


def draw_delta(ax: Axes, value: float, row: int) -> None:
    """One arrow from zero with its number at its head; a short one is a thin one."""
    if abs(value) > 1e-6:  # else its head would reach across the zero
        width = min(4.0, length_in_points(ax, value) / 2.5)
        draw_arrow(ax, (0, row), (value, row), value, width)
    gap, side = (4, "left") if value >= 0 else (-4, "right")
    place: dict[str, Any] = {
        "xytext": (gap, 0),
        "textcoords": "offset points",
        "va": "center",
    }
    ax.annotate(f"{value + 0.0:+.2f}", (value, row), ha=side, **place)


def length_in_points(ax: Axes, value: float) -> float:
    """How long a value is across, at the limits that the axes have now."""
    (start, _), (end, _) = ax.transData.transform([(0, 0), (value, 0)])
    return abs(end - start) * 72 / ax.figure.dpi


def plot_group(
    rewards: Tensor, deltas: dict[str, Tensor], names: Sequence[str]
) -> list[Axes]:
    """A group's rewards as bars, and beside them what becomes of them. [trial] each."""
    axes = axes_row(1 + len(deltas), width=1.6 + 2.4 * (1 + len(deltas)), height=2.8)
    draw_group(axes[0], rewards, names, "reward $R$")
    axes[0].axvline(rewards.mean().item(), color="black", ls="--", lw=1.5)
    axes[0].set_title("dashed: their mean")
    for ax, (name, delta) in zip(axes[1:], deltas.items(), strict=True):
        reach = 2.0 * max(1e-6, delta.abs().max().item())
        ax.set_xlim(-reach, reach)  # of each its own: a small delta is seen
        draw_group(ax, delta, [""] * len(delta), r"delta $\delta$", signed=True)
        ax.set_title(name)
    axes[0].set_xlim(0, 1.25 * max(1e-6, rewards.max().item()))
    plt.tight_layout()
    told = {"rewards": rewards, **deltas}
    listed = [f"{k} {', '.join(f'{x:.3g}' for x in v)}" for k, v in told.items()]
    describe(axes[0].figure, f"A group as bars and arrows: {'; '.join(listed)}.")
    return axes
