"""What notebook 04 alone draws: what a clip, a price and a ratio do to tokens."""

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    DOWN,
    FLAT,
    PI,
    PI_OLD,
    UP,
    axes_row,
    draw_fan,
    finish,
    legend_above,
    sign_colour,
)

LOSS_COLOURS = {
    "naive": COLOURS[3],
    "unclipped": COLOURS[1],
    "clipped": PI,
    "penalty": COLOURS[4],
    "any loss": COLOURS[2],
}


def plot_then_and_now(
    then: Tensor, now: Tensor, deltas: Tensor, right: Tensor, joined: Tensor
) -> Axes:
    """A triangle for each token: up for a positive delta, hollow if it is not right.

    then and now: log-probabilities [batch trial pos] under the policy that sampled
    and under the one that learns; deltas [batch trial]; a line joins the tokens of one
    response, joined [batch trial]. A dark edge marks good tokens that fell.
    """
    ax, (least, most) = axes_row(width=6.5, height=3.8)[0], (0.03, 1.0)
    for times, name in ((1, "as likely as before"), (2, "twice or half"), (0.5, None)):
        line: Any = {"ls": "-" if times == 1 else ":", "lw": 1.4, "color": "grey"}
        ax.plot([least, most], [times * least, times * most], label=name, **line)
    p, q = then.exp(), now.exp().clamp(min=least)
    good, bad = ((sign * deltas > 0)[..., None] for sign in (1, -1))
    dots: Any = {"ls": "", "alpha": 0.7}
    for name, mark, colour, rows, size in (  # where both lie, the good one's rim shows
        (r"good ($\delta > 0$)", "^", UP, good, 10),
        (r"bad ($\delta < 0$)", "v", DOWN, bad, 6),
    ):
        for some, fill in ((rows & right, colour), (rows & ~right, "none")):
            look = dots | {"mec": colour, "mfc": fill, "ms": size}
            ax.plot(p[some], q[some], mark, label=name, **look)
            name = ""  # one entry of the legend for both
    look = dots | {"mec": "black", "mfc": "none", "ms": 7}
    ax.plot([], [], "^", label="hollow: wrong number", **look)
    line = {"color": "black", "lw": 1.2, "marker": ".", "label": "one response"}
    ax.plot(p[joined].T, q[joined].T, **line)
    fell: Any = {"mec": "black", "mfc": "none", "mew": 2, "ms": 10, "zorder": 4}
    some = good & (now < then)
    ax.plot(p[some], q[some], "^", label="fallen, though good", **fell)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    ticks = (0.03, 0.1, 0.3, 1)
    ax.set(xscale="log", yscale="log", xlim=(least, most), ylim=(least, most))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    far = int(((now - then).abs() > log(2)).sum())
    text = f"Tokens as triangles; {far} of {then.numel()} moved by over a factor of two"
    describe(ax.figure, f"{text} since they were drawn.")
    return finish(ax, "probability when drawn", "probability now")


def plot_means(
    plain: Tensor, weighted: Tensor, earned_old: float, earned: float
) -> Axes:
    """Means of old samples as dots, without a ratio and with it. [repeat] each

    A line stands at what each of the two policies earns, exactly.
    """
    ax = axes_row(width=8.0, height=2.4)[0]
    rows = ((1.0, plain, PI_OLD, "v"), (0.0, weighted, PI, "o"))
    for row, means, colour, mark in rows:
        jitter = torch.linspace(-0.2, 0.2, len(means))
        ax.plot(means, row + jitter, mark, color=colour, ms=7, alpha=0.65, mec="none")
    old, new = r"$\pi_\mathrm{old}$ earns", r"$\pi$ earns"
    ax.axvline(earned_old, color=PI_OLD, ls="--", lw=2, label=f"{old} {earned_old:.3f}")
    ax.axvline(earned, color=PI, lw=2, label=f"{new} {earned:.3f}")
    ax.set(ylim=(-0.5, 1.5), yticks=[1, 0], yticklabels=["plain", "weighted by $r$"])
    text = f"Means of old samples as dots: plain around {plain.mean():.2f}"
    describe(ax.figure, f"{text}, weighted around {weighted.mean():.2f}.")
    return legend_above(finish(ax, "mean reward of the samples", ""))


def plot_directions(
    exact: Tensor, gradients: Mapping[str, Tensor], colours: Sequence[str]
) -> Axes:
    """Gradients as arrows of one length, each at its angle to the exact one. [weight]

    Such an angle lies in a plane of its own: the arrows are turned into one.
    """
    ax = axes_row(width=6.5)[0]
    for (name, gradient), colour in zip(gradients.items(), colours, strict=True):
        angle = torch.cosine_similarity(gradient, exact, dim=0).clamp(-1, 1).arccos()
        end = torch.stack([angle.cos(), angle.sin()])
        draw_fan(ax, end, colour, 0.012)
        x, y = (1.04 * end).tolist()
        ax.text(x, y, f" {name}: {angle.rad2deg():.0f}°", va="center")
    ax.set(xlim=(-0.1, 1.9), ylim=(-0.08, 1.12), aspect="equal")
    ax.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    return finish(ax, "along the exact gradient", "across it")


def plot_price(
    kl: Tensor, price: Tensor, target: float, moves: Mapping[str, Tensor]
) -> Axes:
    """One seed: the KL of each rollout over its target, and below it the price.

    kl and price [rollout]: how far the rollout's last step was from pi_old, and the
    price that its steps paid; moves[name] are the rollouts [rollout] with one mark.
    """
    _, (upper, lower) = plt.subplots(2, 1, figsize=(8.0, 4.4), sharex=True)
    rollouts, colour = torch.arange(1, len(kl) + 1), LOSS_COLOURS["penalty"]
    upper.axhspan(target / 1.5, target * 1.5, color=colour, alpha=0.25, lw=0)
    upper.axhline(target, color="black", ls="--", lw=1.2)
    beside = upper.get_yaxis_transform()
    upper.text(1.01, target, "target", va="center", transform=beside)
    upper.plot(rollouts, kl, color=PI, lw=1, zorder=1)
    for (name, rows), mark in zip(moves.items(), "^vo", strict=True):
        upper.plot(rollouts[rows], kl[rows], mark, ms=8, color=PI, label=name)
    upper.set_ylim(0, max(0.4, 1.1 * kl.max().item()))
    legend_above(finish(upper, "", "KL (nats)"))
    lower.step(rollouts, price, where="mid", color=colour, lw=2.5, label="price")
    lower.set_yscale("log", base=2)  # doubling is one step up
    ticks = [2.0**power for power in range(-6, 6, 2)]
    lower.set_yticks(ticks, [f"{t:g}" if t >= 1 else f"1/{1 / t:g}" for t in ticks])
    least, most = price.min().item() / 1.5, price.max().item() * 1.5
    lower.set_ylim(min(0.2, least), max(5.0, most))
    lower.minorticks_off()
    return finish(lower, "rollout", "price $c$")


def plot_clip_range(epsilon: float, epsilon_high: float) -> list[Axes]:
    """The objective of a good token and of a bad one; it is flat where hatched."""
    axes, ratio = axes_row(2, width=9.0), torch.linspace(0.01, 2.2, 220)
    low, high = 1 - epsilon, 1 + epsilon_high
    for ax, delta, flat in zip(axes, (1, -1), ((high, 2.3), (-0.1, low)), strict=True):
        objective = ratio * delta
        clipped = objective.minimum(ratio.clamp(low, high) * delta)
        colour, blue = (LOSS_COLOURS[mode] for mode in ("unclipped", "clipped"))
        ax.plot(ratio, objective, color=colour, ls="--", label="unclipped")
        ax.plot(ratio, clipped, color=blue, label="clipped")
        ax.axvspan(low, high, **CLIP)
        ax.axvspan(*flat, **FLAT)
        ax.set(xlim=(-0.1, 2.3), ylim=(-2.5, 2.5))
        finish(ax, "ratio $r$", "objective", rf"$\delta = {delta:+g}$")
    axes[0].legend(loc="lower right")
    return axes


def plot_pulls(
    ratios: Tensor, pull_of: Callable[[str, Tensor, float], Tensor]
) -> list[Axes]:
    """The pull of three losses on a good and on a bad token, with dots at `ratios`.

    pull_of(mode, ratio [point], delta) -> [point]
    """
    axes, dense = axes_row(2, width=9.0), torch.linspace(0.4, 2.1, 681)
    for ax, delta in zip(axes, (1.0, -1.0), strict=True):
        for mode, line in (("naive", ":"), ("unclipped", "--"), ("clipped", "-")):
            look: Any = {"color": LOSS_COLOURS[mode], "lw": 2}
            ax.plot(dense, pull_of(mode, dense, delta), ls=line, label=mode, **look)
            ax.plot(ratios, pull_of(mode, ratios, delta), "o", ms=5, **look)
        ax.axhline(0, color="black", lw=0.8)
        finish(ax, "ratio $r$", r"pull on log $\pi$", rf"$\delta = {delta:+g}$")
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.97), "ncols": 3}
    ax.figure.legend(*ax.get_legend_handles_labels(), frameon=False, **place)
    return axes


def plot_reach(
    ratios: Tensor, objectives: Mapping[float, Tensor], floor: float
) -> Axes:
    """Objectives of tokens by ratio on log axes, one curve a delta. [ratio] each

    The dotted line is where a dual clip would stop them.
    """
    ax = axes_row()[0]
    for (delta, objective), line in zip(objectives.items(), ("-", "--"), strict=True):
        look: Any = {"color": sign_colour(delta), "ls": line, "lw": 2.5}
        ax.plot(ratios, objective, label=rf"$\delta$ = {delta:+g}", **look)
    ax.axhline(floor, color="grey", ls=":", lw=1.5)
    ax.set_xscale("log")
    # The linear part holds no curve, so that it adds no bend.
    ax.set_yscale("symlog", linthresh=0.1, linscale=0.2)
    for axis, marks in ((ax.xaxis, (0.1, 1, 10, 50)), (ax.yaxis, (-50, -3, -0.8, 1.2))):
        axis.set_ticks(marks, [f"{mark:g}" for mark in marks])
    ax.minorticks_off()
    return legend_above(finish(ax, "ratio $r$", "clipped objective"))
