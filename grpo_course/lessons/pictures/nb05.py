"""What notebook 05 alone draws."""

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    GROUND,
    NO_POLICY,
    PI,
    PI_REF,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    plot_seeds,
)
from grpo_course.formulas import exact_kl, kl_values

# The KL as an area, and what a price for it makes of a policy.


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


# Pictures of a policy, its reference, and what the KL estimators say of them.


ESTIMATORS = ("k1", "k2", "k3")


TICKS = (-20, -5, -1, 0, 1, 5, 20, 60)


SAME, NEAR = 0.05, 0.2  # as drawn: tokens in one place; names that would overlap


def away_from(ref_log_probs: Tensor, log_probs: Tensor, strength: float) -> Tensor:
    """The policy that went `strength` times as far from its reference. -> [vocab]

    0 is the reference, 1 is `log_probs`; in between and beyond, the log-ratios grow
    in proportion.
    """
    gap = log_probs - ref_log_probs
    return (ref_log_probs + strength * gap).log_softmax(-1)


def plot_kl_estimators(log_probs: Tensor, ref_log_probs: Tensor) -> list[Axes]:
    """Both distributions, and each estimator's value for every token. [vocab]

    Values are in units of the KL. A disc's area grows with the token's probability; the
    dot with whiskers is mean and standard deviation.
    """
    kl = exact_kl(log_probs, ref_log_probs).item()
    size: dict[str, Any] = {"figsize": (9.5, 3.4), "width_ratios": (1, 1.8)}
    _, (left, right) = plt.subplots(1, 2, **size)
    draw_two(left, log_probs, ref_log_probs)
    for row, name in enumerate(ESTIMATORS):
        values = kl_values(log_probs, ref_log_probs, name) / kl
        mean, spread = mean_and_spread(log_probs, values)
        area = 8 + 300 * log_probs.exp()  # the rarest token can still be seen
        right.scatter(values, [row] * len(values), s=area, color=COLOURS[5])
        name_tokens(right, values, row)
        right.errorbar(mean, row + 0.25, xerr=spread, fmt="o", color=COLOURS[0])
    right.axvline(1, color=COLOURS[1], ls="--")
    right.set_yticks(range(len(ESTIMATORS)), ESTIMATORS)
    right.set_ylim(len(ESTIMATORS) - 0.5, -0.6)
    right.set_xscale("symlog", linthresh=1)  # linear up to 1, for far away k3 is large
    right.set(xlim=(-25, 90), xticks=TICKS, xticklabels=TICKS)
    finish(right, "value / exact KL", "", f"dashed: exact KL, {kl:.3f} nats")
    plt.tight_layout()
    return [left, right]


def name_tokens(ax: Axes, values: Tensor, row: int) -> None:
    """The numbers of the tokens over their discs; where it is narrow, one is higher."""
    far = values.sign() * (1 + values.abs().log10())
    places = far.where(values.abs() > 1, values)  # as far apart as they are drawn
    groups: list[list[int]] = []
    for token in places.argsort(stable=True).tolist():
        if groups and places[token] - places[groups[-1][0]] < SAME:
            groups[-1].append(token)
        else:
            groups.append([token])
    before, high = -float("inf"), False
    for group in groups:
        text, at = ",".join(map(str, sorted(group))), values[group].mean().item()
        place = places[group[0]].item()
        high, before = not high and place - before < NEAR, place
        up: dict = {"xytext": (0, 24 if high else 12), "textcoords": "offset points"}
        up |= {"ha": "center", "bbox": {"fc": GROUND, "lw": 0, "pad": 0.4}}
        ax.annotate(text, (at, row), **up)


def plot_gap(log_probs: Tensor, ref_log_probs: Tensor) -> Axes:
    """k3 of each token as the gap between x - 1 and log x, at x = ref/pi. [vocab]"""
    (ax,) = axes_row(1, width=7.0, height=3.2)
    ratios = [round(x, 6) for x in (ref_log_probs - log_probs).exp().tolist()]
    x = torch.linspace(0.7 * min(ratios), 1.1 * max(ratios), 200)
    bar: dict[str, Any] = {"color": COLOURS[2], "lw": 6, "alpha": 0.6}
    ax.plot(x, x - 1, color="black", label="$x - 1$")
    ax.plot(x, x.log(), color=COLOURS[0], ls="--", label=r"$\log x = -k_1$")
    told = []
    for ratio in sorted(set(ratios)):
        name = ", ".join(str(k) for k, each in enumerate(ratios) if each == ratio)
        low, high = math.log(ratio), ratio - 1
        ax.plot([ratio, ratio], [low, high], solid_capstyle="butt", **bar)
        name, below = f"token{'s' * (',' in name)} {name}", high < 0
        at, shift = (low, (6, -6)) if below else (high, (-6, 4))
        place: dict[str, Any] = {"ha": "left" if below else "right"}
        place |= {"va": "top" if below else "bottom", "textcoords": "offset points"}
        told.append(f"{name}: {high - low:.2f}")
        ax.annotate(told[-1], (ratio, at), shift, **place)
    ax.plot([], [], label="the gap: $k_3$", **bar)
    ax.axhline(0, color="grey", lw=1)
    text = "The line x - 1 over the curve log x, which touch at x = 1; their gap is k3"
    describe(ax.figure, f"{text}. {'; '.join(told)}.")
    return legend_above(finish(ax, r"$x = \pi_{ref}\,/\,\pi$", ""))


def plot_sample_means(means: dict[str, Tensor], kl: float, size: int) -> Axes:
    """How means of `size` sampled tokens fall around the KL. means[name] [repeat]"""
    (ax,) = axes_row(1, width=8.0, height=2.4)
    every = torch.cat(list(means.values()))
    edges = torch.linspace(every.min().item(), every.max().item(), 45).tolist()
    for name, values in means.items():
        colour = COLOURS[ESTIMATORS.index(name)]
        look: dict = {"histtype": "stepfilled", "alpha": 0.45, "ec": colour, "lw": 2}
        ax.hist(values, edges, color=colour, label=name, **look)
    ax.axvline(kl, color="black", ls="--", label=f"exact KL {kl:.3f}")
    ax.axvline(0, color="grey", lw=1)
    finish(ax, f"mean of {size} samples (nats)", "how often")
    told = [f"{n} from {v.min():.2f} to {v.max():.2f}" for n, v in means.items()]
    text = f"Histograms of means of {size} samples around the exact KL {kl:.3f}"
    describe(ax.figure, f"{text}: {', '.join(told)} nats.")
    return legend_above(ax)


def mean_and_spread(log_probs: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Exact mean and standard deviation over all tokens. [... vocab] -> two of [...]"""
    probs = log_probs.exp()
    mean = (probs * values).sum(-1)
    return mean, (probs * (values - mean[..., None]) ** 2).sum(-1).sqrt()


def draw_kl_estimators(
    log_probs: Tensor, ref_log_probs: Tensor, strength: float
) -> str:
    """The picture for a slider, `strength` times as far away; -> the sentence below."""
    moved = away_from(ref_log_probs, log_probs, strength)
    plot_kl_estimators(moved, ref_log_probs)
    kl = exact_kl(moved, ref_log_probs)
    spreads = [
        mean_and_spread(moved, kl_values(moved, ref_log_probs, name))[1] / kl
        for name in ESTIMATORS
    ]
    pairs = zip(ESTIMATORS, spreads, strict=True)
    told = ", ".join(f"{name} {spread:.2f}" for name, spread in pairs)
    return f"strength {strength:g}: KL {kl:.2f} nats; spread / KL: {told}."


def plot_dial(runs: dict[float, tuple]) -> list[Axes]:
    """P(sorted) and KL to the start for each beta; runs hold both, each [seed]."""
    axes = axes_row(2, width=9.0, height=2.6)
    labels = ("P(sorted)", "KL to the start (nats a token)")
    for column, (ax, label) in enumerate(zip(axes, labels, strict=True)):
        rows = {f"β = {beta:g}": run[column] for beta, run in runs.items()}
        plot_seeds(rows, label, ax=ax)
    plt.tight_layout()
    return axes


def plot_follow(
    moving: dict[float, tuple], frozen: dict[float, tuple], beta: float = 1.0
) -> list[Axes]:
    """P(sorted) with a moving reference, and the KL to either reference at one beta."""
    left, right = axes_row(2, width=9.0, height=3.0)
    rows = {f"β = {each:g}": run[0] for each, run in moving.items()}
    plot_seeds(rows, "P(sorted), moving reference", ax=left)
    two = {"frozen": frozen[beta], "moving": moving[beta]}
    curves = {name: run[-1].epochs("kl") for name, run in two.items()}
    plot_bands(curves, f"KL to the reference, β = {beta:g}", ax=right)
    plt.tight_layout()
    return [left, right]
