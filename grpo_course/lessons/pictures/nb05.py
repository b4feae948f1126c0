"""What notebook 05 alone draws: the KL as an area, k3 as a gap, ends of training."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    PI,
    axes_row,
    finish,
    legend_above,
    legend_below,
    write,
)
from grpo_course.loop import mean_and_error


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
        size, right = (
            (12, 0) if wide > 0.1 else (10, -6)
        )  # a narrow one is for its left
        away, side = ((right, 4), "bottom") if high > 0 else ((right, -4), "top")
        text = f"{name}\n{area:+.2f}".replace("-", "\u2212")
        write(ax, text, x + wide / 2, high, away, va=side, size=size)
    ax.axhline(0, color="black", lw=1)
    kl, above = areas.sum(), areas.clamp(min=0).sum()
    title = f"above {above:.3f} \u2212 below {above - kl:.3f} = KL {kl:.3f}"
    finish(ax, r"width $\pi$", r"height $\log\,(\pi/\pi_{ref})$", title)
    ax.set(xlim=(-0.02, 1.02))
    ax.margins(y=0.36)
    plt.tight_layout()
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
    return legend_above(finish(ax, r"$x = \pi_{ref}\,/\,\pi$", r"$x - 1$ and $\log x$"))


def plot_runs(
    seen: Mapping[str, Tensor], names: Sequence[str], policy: int
) -> list[Axes]:
    """What was seen at every tenth step: seeds thin, their mean and one policy thick.

    seen[name] is [look seed].
    """
    axes = axes_row(len(names), width=4.5 * len(names), height=2.8)
    for ax, name in zip(axes, names, strict=True):
        steps = range(0, 10 * len(seen[name]), 10)
        ax.plot(steps, seen[name], color=COLOURS[5], lw=0.7)
        ax.plot(steps, seen[name].mean(-1), color=COLOURS[0], lw=3, label="mean of 32")
        one = seen[name][:, policy]
        ax.plot(steps, one, color=COLOURS[1], ls="--", lw=3, label=f"policy {policy}")
        finish(ax, "step", name)
    legend_below(axes)
    return axes


def plot_mixtures(mixed: Mapping[tuple[str, str], Mapping[str, Tensor]]) -> Axes:
    """Which wrong responses two changes leave, each alone and both, and P(sorted).

    mixed[rarer, others] holds what was seen of a run, [look seed] each. The first is
    where both arrows start; each is labelled with its change and its standard error.
    """
    (ax,) = axes_row(1, width=7.5, height=4.2)
    keys, told = ("preferred", "other wrong"), []
    start, right, up, both = [
        torch.stack([run[key][-1] for key in keys]) for run in mixed.values()
    ]  # [key seed]
    for (rarer, others), run in mixed.items():
        x, y = (run[key][-1].mean().item() for key in keys)
        ax.plot(x, y, "o", color="black", ms=7)
        text = f"rarer: {rarer}, others: {others}\n"
        text += f"P(sorted) {run['P(sorted)'][-1].mean():.2f}"
        told.append(f"{text}, {keys[0]} {x:.3f}, {keys[1]} {y:.3f}".replace("\n", ": "))
        low = rarer == next(iter(mixed))[0]
        write(ax, text, x, y, (0, -9 if low else 9), va="top" if low else "bottom")
    for k, (end, axis) in enumerate(((right, 0), (up, 1))):
        foot, head = (tuple(each.mean(-1).tolist()) for each in (start, end))
        arrow: Any = {"arrowstyle": "-|>", "lw": 2.5, "mutation_scale": 18}
        arrow |= {"color": COLOURS[k], "shrinkA": 5, "shrinkB": 5}
        ax.annotate("", head, foot, arrowprops=arrow)
        mean, error = mean_and_error(end[axis] - start[axis])
        text = f"{keys[axis]}\n{mean:+.3f} \u00b1 {error:.3f}".replace("-", "\u2212")
        at = [(a + b) / 2 for a, b in zip(foot, head, strict=True)]
        look: Any = ({"away": (0, 5), "va": "bottom"}, {"away": (8, 0), "ha": "left"})
        write(ax, text, *at, color=COLOURS[k], **look[k])
        ax.plot(*zip(end.mean(-1).tolist(), both.mean(-1).tolist(), strict=True), "k:")
    ax.margins(0.35, 0.3)
    finish(ax, *(f"P({key})" for key in keys))
    ax.figure.set_label("; ".join(told))
    return ax


def plot_ends(
    trained: Mapping[str, Sequence[Mapping[str, Tensor]]],
    betas: Sequence[float],
    start: float,
    free: Mapping[str, Tensor],
) -> Axes:
    """Where training at each beta ends, with its standard error; also without a KL.

    trained[name][beta] and free hold what was seen of a run, [look seed] each.
    """
    (ax,) = axes_row(1, width=6.5, height=3.6)
    for k, (name, runs) in enumerate(trained.items()):
        p = torch.stack([run["P(sorted)"][-1] for run in runs])  # [beta seed]
        mean, error = mean_and_error(p)
        x = [beta * 1.1 ** (k - 1) for beta in betas]  # side by side
        ax.plot(x, mean, "os^"[k], color=COLOURS[k], label=name)
        ax.vlines(x, mean - error, mean + error, color=COLOURS[k])
    levels = {"start": start, "no KL": free["P(sorted)"][-1].mean().item()}
    for (name, level), line in zip(levels.items(), ("--", ":"), strict=True):
        ax.axhline(level, color="black", ls=line)
        write(ax, name, math.sqrt(betas[0] * betas[1]), level, (0, 4), va="bottom")
    ax.set(xscale="log", xticks=betas, xticklabels=betas)
    ax.margins(y=0.12)
    ax.minorticks_off()
    label = "\u03b2 (points at one \u03b2 stand side by side)"
    finish(ax, label, "P(sorted) at the end\n(± standard error)")
    legend_below([ax])
    return ax
