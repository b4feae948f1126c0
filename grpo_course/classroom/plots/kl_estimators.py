"""Pictures of a policy, its reference, and what the KL estimators say of them."""

import math
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    plot_seeds,
)
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.kl_area import draw_two
from grpo_course.classroom.plots.palette import GROUND
from grpo_course.formulas import exact_kl, kl_values

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
