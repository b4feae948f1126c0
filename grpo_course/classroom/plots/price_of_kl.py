"""The penalty form of PPO: how far each rollout went, and the price that follows."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import finish, legend_above
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import LOSS_COLOURS, PI

PRICE = LOSS_COLOURS["penalty"]
SLACK = 1.5  # the price stays where the KL is within this factor of its target


def price_moves(kl: Tensor, target: float) -> dict[str, Tensor]:
    """Which rollouts raise the price, lower it, or leave it. [rollout] -> bool each"""
    far, near = kl > SLACK * target, kl < target / SLACK
    return {
        "too far: the price doubles": far,
        "near: it halves": near,
        "on target: it stays": ~far & ~near,
    }


def draw_price(kl: Tensor, price: Tensor, target: float) -> str:
    """One seed: the KL of each rollout over its target, and below it the price.

    kl and price [rollout]: how far the rollout's last step was from pi_old, and the
    price that its steps paid. Returns what the price did, in words.
    """
    _, (upper, lower) = plt.subplots(2, 1, figsize=(8.0, 4.4), sharex=True)
    rollouts, moves = torch.arange(1, len(kl) + 1), price_moves(kl, target)
    upper.axhspan(target / SLACK, target * SLACK, color=PRICE, alpha=0.25, lw=0)
    upper.axhline(target, color="black", ls="--", lw=1.2)
    place: dict[str, Any] = {"va": "center", "transform": upper.get_yaxis_transform()}
    upper.text(1.01, target, "target", **place)
    upper.plot(rollouts, kl, color=PI, lw=1, zorder=1)
    for (name, rows), mark in zip(moves.items(), "^vo", strict=True):
        dots: dict[str, Any] = {"marker": mark, "ls": "", "ms": 8, "color": PI}
        upper.plot(rollouts[rows], kl[rows], label=name, **dots)
    upper.set_ylim(0, max(0.4, 1.1 * kl.max().item()))
    legend_above(finish(upper, "", "KL (nats)"))
    draw_steps(lower, rollouts, price)
    counts = [int(rows.sum()) for rows in moves.values()]
    told = f"It doubles {counts[0]} times, halves {counts[1]}, stays {counts[2]}."
    text = f"The KL of {len(kl)} rollouts around its target of {target:g}, "
    ends = f"from {price[0]:g} over at most {price.max():g} to {price[-1]:.2g}"
    describe(upper.figure, f"{text}and below it the price, {ends}. {told}")
    return told


def draw_steps(ax: Axes, rollouts: Tensor, price: Tensor) -> None:
    """The price that each rollout paid, on an axis where doubling is one step up."""
    ax.step(rollouts, price, where="mid", color=PRICE, lw=2.5)
    ax.set_yscale("log", base=2)
    ticks = [2.0**power for power in range(-6, 6, 2)]
    ax.set_yticks(ticks, [f"{t:g}" if t >= 1 else f"1/{1 / t:g}" for t in ticks])
    ax.set_ylim(min(0.2, price.min().item() / 1.5), max(5.0, price.max().item() * 1.5))
    ax.minorticks_off()
    finish(ax, "rollout", "price $c$")
