"""What notebook 05 alone draws: the KL as an area, its estimators, where a price ends."""

import math
from typing import Any

import matplotlib.pyplot as plt
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
    write,
)
from grpo_course.formulas import exact_kl, kl_values

NAMES = ("k1", "k2", "k3")


def draw_two(ax: Axes, log_probs: Tensor, ref_log_probs: Tensor) -> None:
    """A policy as filled bars, its reference as their green outline. [vocab]"""
    places = range(len(log_probs))
    ax.bar(places, log_probs.detach().exp(), 0.7, color=PI, alpha=0.75, label=r"$\pi$")
    outline: Any = {"facecolor": "none", "edgecolor": PI_REF, "lw": 2.5}
    ax.bar(places, ref_log_probs.exp(), 0.84, label=r"$\pi_{ref}$", **outline)
    ax.set(ylim=(0, 1), xticks=places)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    finish(ax, "token", "probability")


def plot_kl_area(log_probs: Tensor, ref_log_probs: Tensor) -> Axes:
    """The KL of two distributions as areas, one for each token. [vocab]

    A token's rectangle is as wide as its probability and as high as its log-ratio, so
    its area is its term of the sum.
    """
    (ax,) = axes_row(1, width=9.0, height=3.4)
    probs, heights = log_probs.exp(), log_probs - ref_log_probs
    starts, areas = probs.cumsum(-1) - probs, probs * heights
    fills = [(PI, "") if high > 0 else (DOWN, "//") for high in heights]
    colours, hatches = zip(*fills, strict=True)
    look: Any = {"align": "edge", "color": colours, "hatch": hatches, "ec": "white"}
    ax.bar(starts, heights, probs, alpha=0.8, **look)
    for token, (x, wide, high, area) in enumerate(
        zip(starts, probs, heights, areas, strict=True)
    ):
        name = f"token {token}" if wide > 0.15 else str(token)
        away, side = ((0, 4), "bottom") if high > 0 else ((0, -4), "top")
        size = 12 if wide > 0.1 else 10  # narrow ones stand close
        write(ax, f"{name}\n{area:+.2f}", x + wide / 2, high, away, va=side, size=size)
    ax.axhline(0, color="black", lw=1)
    kl, above = areas.sum(), areas.clamp(min=0).sum()
    title = f"above {above:.3f} - below {above - kl:.3f} = KL {kl:.3f}"
    finish(ax, r"width $\pi$", r"height $\log\,(\pi/\pi_{ref})$", title)
    ax.set(xlim=(-0.02, 1.02))
    ax.margins(y=0.26)
    plt.tight_layout()
    return ax


def plot_two_tokens(probs: Tensor, own: Tensor, states: Tensor) -> Axes:
    """The KL of two tokens as an area: the first token's own, on it that of the second.

    probs and states [vocab]: of each first token its probability, and the KL of the
    state that it leads into. own []: the KL of the first token.
    """
    (ax,) = axes_row(1, width=7.5, height=3.2)
    base, mean, starts = own.item(), (probs @ states).item(), probs.cumsum(-1) - probs
    ax.bar(0.5, base, 1, color=NO_POLICY, alpha=0.35)
    ax.text(0.5, base / 2, f"first token {base:.2f}", ha="center", va="center")
    ax.bar(starts, states, probs, base, align="edge", color=PI, alpha=0.8, ec="white")
    for token, (x, wide, high) in enumerate(zip(starts, probs, states, strict=True)):
        at, side = (x + wide, "left") if wide < 0.05 else (x + wide / 2, "center")
        ax.text(at, base + high, f" {token}: KL {high:.2f}", ha=side, va="bottom")
    title = f"first token {base:.3f} + second token {mean:.3f} = {base + mean:.3f} nats"
    finish(ax, "width: probability of the first token", "KL (nats)", title)
    ax.set(xlim=(-0.02, 1.16), ylim=(0, 1.15 * (base + states.max().item())))
    return ax


def plot_gap(log_probs: Tensor, ref_log_probs: Tensor) -> Axes:
    """k3 of each token as the gap between x - 1 and log x, at x = ref/pi. [vocab]"""
    (ax,) = axes_row(1, width=7.0, height=3.2)
    ratios = [round(x, 6) for x in (ref_log_probs - log_probs).exp().tolist()]
    x = torch.linspace(0.7 * min(ratios), 1.1 * max(ratios), 200)
    bar: Any = {"color": COLOURS[2], "lw": 6, "alpha": 0.6, "solid_capstyle": "butt"}
    ax.plot(x, x - 1, color="black", label="$x - 1$")
    ax.plot(x, x.log(), color=COLOURS[0], ls="--", label=r"$\log x = -k_1$")
    for ratio in sorted(set(ratios)):
        name = ", ".join(str(k) for k, each in enumerate(ratios) if each == ratio)
        low, high = math.log(ratio), ratio - 1
        ax.plot([ratio, ratio], [low, high], **bar)
        text = f"token{'s' * (',' in name)} {name}: {high - low:.2f}"
        below: Any = {"y": low, "away": (6, -6), "ha": "left", "va": "top"}
        above: Any = {"y": high, "away": (-6, 4), "ha": "right", "va": "bottom"}
        write(ax, text, ratio, **(below if high < 0 else above))
    ax.plot([], [], label="the gap: $k_3$", **bar)
    ax.axhline(0, color="grey", lw=1)
    return legend_above(finish(ax, r"$x = \pi_{ref}\,/\,\pi$", ""))


def plot_sample_means(means: dict[str, Tensor], kl: float, size: int) -> Axes:
    """How means of `size` sampled tokens fall around the KL. means[name] [repeat]"""
    (ax,) = axes_row(1, width=8.0, height=2.4)
    every = torch.cat(list(means.values()))
    edges = torch.linspace(every.min().item(), every.max().item(), 45).tolist()
    for name, values in means.items():
        colour = COLOURS[NAMES.index(name)]
        look: Any = {"histtype": "stepfilled", "alpha": 0.45, "ec": colour, "lw": 2}
        ax.hist(values, edges, color=colour, label=name, **look)
    ax.axvline(kl, color="black", ls="--", label=f"exact KL {kl:.3f}")
    ax.axvline(0, color="grey", lw=1)
    ranges = ", ".join(
        f"{n} from {v.min():.2f} to {v.max():.2f}" for n, v in means.items()
    )
    describe(
        ax.figure,
        f"Histograms of means of {size} samples: {ranges}; the KL is {kl:.3f}.",
    )
    return legend_above(finish(ax, f"mean of {size} samples (nats)", "how often"))


def plot_kl_estimators(log_probs: Tensor, ref_log_probs: Tensor) -> list[Axes]:
    """Both distributions, and each estimator's value for every token. [vocab]

    Values are in units of the KL. A disc's area grows with the token's probability; the
    dot with whiskers is mean and standard deviation.
    """
    size: Any = {"figsize": (9.5, 3.4), "width_ratios": (1, 1.8)}
    _, (left, right) = plt.subplots(1, 2, **size)
    draw_two(left, log_probs, ref_log_probs)
    kl, probs = exact_kl(log_probs, ref_log_probs).item(), log_probs.exp()
    for row, name in enumerate(NAMES):
        values = kl_values(log_probs, ref_log_probs, name) / kl
        area = 8 + 300 * probs  # the rarest token can still be seen
        right.scatter(values, [row] * len(values), s=area, color=COLOURS[5], label=name)
        name_tokens(right, values, row)
        mean = probs @ values
        spread = (probs @ (values - mean) ** 2).sqrt()
        right.errorbar(mean, row + 0.25, xerr=spread, fmt="o", color=COLOURS[0])
    right.axvline(1, color=COLOURS[1], ls="--")
    right.set(yticks=range(3), yticklabels=NAMES, ylim=(2.5, -0.6))
    right.set_xscale("symlog", linthresh=1)  # linear up to 1, for far away k3 is large
    ticks = (-20, -5, -1, 0, 1, 5, 20, 60)
    right.set(xlim=(-25, 90), xticks=ticks, xticklabels=ticks)
    finish(right, "value / exact KL", "", f"dashed: exact KL, {kl:.3f} nats")
    plt.tight_layout()
    return [left, right]


def name_tokens(ax: Axes, values: Tensor, row: int) -> None:
    """The numbers of the tokens over their discs; where it is narrow, one is higher."""
    far = values.sign() * (1 + values.abs().log10())
    places = far.where(values.abs() > 1, values).tolist()  # as far apart as drawn
    groups: list[list[int]] = []
    for token in sorted(range(len(places)), key=places.__getitem__):
        if groups and places[token] - places[groups[-1][0]] < 0.05:  # the same place
            groups[-1].append(token)
        else:
            groups.append([token])
    before, high = -math.inf, False
    for group in groups:
        place = places[group[0]]
        high, before = not high and place - before < 0.2, place
        text, at = ",".join(map(str, sorted(group))), values[group].mean().item()
        paper = {"fc": GROUND, "lw": 0, "pad": 0.4}
        write(ax, text, at, row, (0, 24 if high else 12), va="baseline", bbox=paper)


def plot_settled(
    ends: dict[str, Tensor], ref_log_probs: Tensor, estimator: str, title: str
) -> list[Axes]:
    """The policy that an estimator ends with, and its KL beside that of the others."""
    left, right = axes_row(2, width=9.0, height=3.4)
    draw_two(left, ends[estimator], ref_log_probs)
    kls = [exact_kl(end, ref_log_probs).item() for end in ends.values()]
    fills = [PI if name == estimator else "none" for name in ends]
    bars = right.barh(list(ends), kls, 0.6, facecolor=fills, edgecolor=PI, lw=2)
    right.bar_label(bars, fmt="{:.2f}", padding=5)
    right.set_xlim(0, 0.9 * -ref_log_probs.min().item())
    right.invert_yaxis()
    finish(right, "exact KL at the end (nats)", "", title)
    plt.tight_layout()
    return [left, right]
