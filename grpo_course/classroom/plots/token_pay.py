"""KL in the reward: what each token is paid, and what is still to come from it on."""

from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import PI, sign_colour
from grpo_course.ppo import generalized_advantages, kl_per_token, reward_per_token

BEFORE: dict[str, Any] = {"facecolor": "none", "edgecolor": "black", "lw": 1.8}


def pay_and_returns(
    reward: float, log_ratios: Tensor, beta: float
) -> tuple[Tensor, Tensor]:
    """What each token is paid with the KL, and the sum from it on. [pos] twice"""
    ref = torch.full_like(log_ratios, -2.0)[None, None]  # [batch trial pos]
    at_end = reward_per_token(torch.tensor([[reward]]), ref)
    paid = kl_per_token(at_end, ref + log_ratios, ref, beta)
    returns = generalized_advantages(paid, torch.zeros_like(paid), 1.0, 1.0)
    return paid[0, 0], returns[0, 0]


def plot_token_pay(reward: float, log_ratios: Tensor, beta: float) -> list[Axes]:
    """Bars along a response, without the KL as outlines. [pos]"""
    left, right = axes_row(2, width=9.5, height=3.4)
    paid, returns = pay_and_returns(reward, log_ratios, beta)
    without, whole = pay_and_returns(reward, log_ratios, 0.0)
    colours = [sign_colour(pay) for pay in paid.tolist()]
    draw_bars(left, paid, without, colours, f"β = {beta:g}: paid at each token")
    draw_bars(right, returns, whole, [PI] * len(returns), "return: the sum from it on")
    left.set_ylabel("reward")
    describe(
        left.figure,
        "Left, what each token is paid; right, its return. Outlines are without the "
        f"KL. With beta {beta:g} tokens are paid {listed(paid)}; the returns are "
        f"{listed(returns)}.",
    )
    return [left, right]


def draw_bars(
    ax: Axes, now: Tensor, before: Tensor, colours: list[str], title: str
) -> None:
    """A bar for each token with its number, and an outline of what it was before."""
    places = range(len(now))
    ax.bar(places, now, 0.6, color=colours, alpha=0.75)
    ax.bar(places, before, 0.72, **BEFORE)
    for x, value, old in zip(places, now.tolist(), before.tolist(), strict=True):
        foot = min(value, 0) - 0.12 if value < 0 else max(value, old) + 0.1
        side = "top" if value < 0 else "bottom"
        ax.text(x, foot, f"{value:+.1f}", ha="center", va=side)
    ax.axhline(0, color="black", lw=1)
    ax.set(xticks=places, ylim=(-2.8, 3.2))
    finish(ax, "token", "", title).grid(visible=False, axis="x")


def listed(values: Tensor) -> str:
    """The numbers of the tokens, one after another."""
    return ", ".join(f"{value + 0.0:+.1f}" for value in values.tolist())


def draw_token_pay(reward: float, log_ratios: Tensor, beta: float) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_token_pay(reward, log_ratios, beta)
    _, returns = pay_and_returns(reward, log_ratios, beta)
    return f"β = {beta:g}: returns {listed(returns)}."
