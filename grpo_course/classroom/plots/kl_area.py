"""The KL as an area, and what a price for it makes of a policy."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, NO_POLICY, PI, PI_REF
from grpo_course.formulas import exact_kl


def plot_kl_area(log_probs: Tensor, ref_log_probs: Tensor) -> Axes:
    """The KL of two distributions as areas, one for each token. [vocab]

    A token's rectangle is as wide as its probability and as high as its log-ratio, so
    its area is its term of the sum.
    """
    (ax,) = axes_row(1, width=9.0, height=3.4)
    probs, heights = log_probs.exp(), log_probs - ref_log_probs
    starts = probs.cumsum(-1) - probs
    for token, (x, wide, high) in enumerate(
        zip(*(v.tolist() for v in (starts, probs, heights)), strict=True)
    ):
        draw_term(ax, token, x, wide, high)
    ax.axhline(0, color="black", lw=1)
    kl, above = exact_kl(log_probs, ref_log_probs), (probs * heights).clamp(min=0).sum()
    title = f"above {above:.3f} - below {above - kl:.3f} = KL {kl:.3f}"
    finish(ax, r"width $\pi$", r"height $\log\,(\pi/\pi_{ref})$", title)
    ax.set(xlim=(-0.02, 1.02))
    ax.margins(y=0.26)
    plt.tight_layout()
    terms = ", ".join(f"{term:+.3f}" for term in (probs * heights).tolist())
    describe(
        ax.figure,
        "A rectangle for each token, as wide as its probability and as high as its "
        f"log-ratio. The areas {terms} add up to the KL, {kl:.3f} nats.",
    )
    return ax


def draw_two(ax: Axes, log_probs: Tensor, ref_log_probs: Tensor) -> None:
    """A policy as filled bars, its reference as their green outline. [vocab]"""
    places = np.arange(len(log_probs))
    ax.bar(places, log_probs.detach().exp(), 0.7, color=PI, alpha=0.75, label=r"$\pi$")
    outline: dict[str, Any] = {"facecolor": "none", "edgecolor": PI_REF, "lw": 2.5}
    ax.bar(places, ref_log_probs.exp(), 0.84, label=r"$\pi_{ref}$", **outline)
    ax.set(ylim=(0, 1), xticks=places)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    finish(ax, "token", "probability")


def draw_term(ax: Axes, token: int, x: float, wide: float, high: float) -> None:
    """One token's rectangle; beyond its end its number and its area."""
    colour, hatch = (PI, "") if high > 0 else (DOWN, "//")
    look: dict[str, Any] = {"align": "edge", "ec": "white", "hatch": hatch}
    ax.bar(x, high, wide, color=colour, alpha=0.8, **look)
    away, side = (4, "bottom") if high > 0 else (-4, "top")
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": side}
    name = f"token {token}" if wide > 0.15 else str(token)
    text = f"{name}\n{wide * high:+.2f}"
    size = 12 if wide > 0.1 else 10  # narrow ones stand close
    ax.annotate(text, (x + wide / 2, high), (0, away), fontsize=size, **place)


def plot_two_tokens(probs: Tensor, own: Tensor, states: Tensor) -> Axes:
    """The KL of two tokens as an area: the first token's own, on it that of the second.

    probs and states [vocab]: of each first token its probability, and the KL of the
    state that it leads into. own []: the KL of the first token.
    """
    (ax,) = axes_row(1, width=7.5, height=3.2)
    base, mean = own.item(), (probs * states).sum().item()
    ax.bar(0.5, base, 1, color=NO_POLICY, alpha=0.35)
    ax.text(0.5, base / 2, f"first token {base:.2f}", ha="center", va="center")
    x = 0.0
    pairs = zip(probs.tolist(), states.tolist(), strict=True)
    for token, (wide, high) in enumerate(pairs):
        ax.bar(x, high, wide, base, align="edge", color=PI, alpha=0.8, ec="white")
        narrow, name = wide < 0.05, f"{token}: KL {high:.2f}"
        at = (x + wide, base + high) if narrow else (x + wide / 2, base + high)
        ax.text(*at, f" {name}", ha="left" if narrow else "center", va="bottom")
        x += wide
    title = f"first token {base:.3f} + second token {mean:.3f} = {base + mean:.3f} nats"
    finish(ax, "width: probability of the first token", "KL (nats)", title)
    ax.set(xlim=(-0.02, 1.16), ylim=(0, 1.15 * (base + states.max().item())))
    terms = ", ".join(f"{term:.3f}" for term in (probs * states).tolist())
    describe(
        ax.figure,
        f"A grey block of width 1, the KL of the first token, {base:.3f}. On it a "
        "rectangle for each first token, as wide as its probability and as high as the "
        f"KL of its state. Their areas {terms} add up to {mean:.3f} nats.",
    )
    return ax


def settle(
    rewards: Tensor, ref_log_probs: Tensor, beta: float, estimator: str
) -> Tensor:
    """Where training one state ends that pays beta for an estimator in its loss.

    Exact, of the expected update with its samples frozen. -> log-probabilities [vocab].
    k1 has no gradient, so the best token takes all; k2 has that of KL(pi||ref), whose
    optimum tilts the reference; k3 has that of KL(ref||pi), which stands still where
    pi (beta + J - R) = beta ref, with J the expected reward.
    """
    if estimator == "k1":
        return torch.where(rewards == rewards.max(), 0.0, -torch.inf).log_softmax(-1)
    if estimator == "k2":
        return (ref_log_probs + rewards / beta).log_softmax(-1)
    weight = beta * ref_log_probs.exp()
    low, high = rewards.max() - beta, rewards.max()
    for _ in range(100):  # J, by halving: the larger it is, the smaller is the sum
        middle = (low + high) / 2
        is_low = (weight / (beta + middle - rewards)).sum() > 1
        low, high = (middle, high) if is_low else (low, middle)
    return (weight / (beta + high - rewards)).log().log_softmax(-1)


def plot_settled(
    rewards: Tensor, ref_log_probs: Tensor, beta: float, estimator: str
) -> list[Axes]:
    """The policy that a price ends with, and its KL beside that of the others."""
    left, right = axes_row(2, width=9.0, height=3.4)
    draw_two(left, settle(rewards, ref_log_probs, beta, estimator), ref_log_probs)
    for row, name in enumerate(("k1", "k2", "k3")):
        kl = exact_kl(settle(rewards, ref_log_probs, beta, name), ref_log_probs).item()
        chosen = name == estimator
        look: dict[str, Any] = {
            "facecolor": PI if chosen else "none",
            "edgecolor": PI,
            "lw": 2,
        }
        right.barh(row, kl, 0.6, **look)
        place: dict[str, Any] = {
            "xytext": (5, 0),
            "textcoords": "offset points",
            "va": "center",
        }
        right.annotate(f"{kl:.2f}", (kl, row), **place)
    most = -ref_log_probs.min().item()
    right.set(yticks=range(3), yticklabels=("k1", "k2", "k3"), xlim=(0, 0.9 * most))
    right.invert_yaxis()
    finish(right, "exact KL at the end (nats)", "", f"β = {beta:g}")
    plt.tight_layout()
    return [left, right]


def draw_settled(
    rewards: Tensor, ref_log_probs: Tensor, beta: float, estimator: str
) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_settled(rewards, ref_log_probs, beta, estimator)
    end = settle(rewards, ref_log_probs, beta, estimator)
    kl, gain = exact_kl(end, ref_log_probs), (end.exp() * rewards).sum()
    return f"{estimator}, β = {beta:g}: KL {kl:.2f} nats, expected reward {gain:.2f}."
