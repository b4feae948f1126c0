"""What notebook 04 alone draws: rates, runs, and what a clip does to tokens."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    FLAT,
    GROUND,
    LINES,
    PI,
    PI_OLD,
    axes_row,
    finish,
    legend_above,
    write,
)
from grpo_course.formulas import EPSILON
from grpo_course.lessons.pictures.shared import draw_clip_plane
from grpo_course.loop import ENOUGH, mean_and_error

LOSS_COLOURS = {
    "clipped": PI,
    "unclipped": COLOURS[1],
    "one step": COLOURS[2],
    "naive": COLOURS[3],
}


def looks_of(names: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """A colour and a dash for each arm: a loss has the same ones in all pictures."""
    losses, looks = list(LOSS_COLOURS), []
    for at, name in enumerate(names):
        known = [loss for loss in losses if loss in name.split(", ")]
        place = losses.index(known[0]) if known else at
        colour = LOSS_COLOURS[known[0]] if known else COLOURS[at]
        looks.append((colour, LINES[place]))
    return looks


def plot_rates(arms: Mapping[str, Mapping[float, Tensor]], ylabel: str) -> Axes:
    """What each arm comes to at each rate, arms[name][rate] [seed]; a ring at its best.

    A bar is two standard errors of the mean over the seeds to each side.
    """
    ax, told = axes_row(width=8.0, height=3.4)[0], []
    looks = zip(arms.items(), looks_of(arms), strict=True)
    for place, ((name, runs), (colour, line)) in enumerate(looks):
        means, errors = mean_and_error(torch.stack(list(runs.values())))
        look: Any = {"color": colour, "ls": line, "lw": 2, "marker": "o", "ms": 4}
        look |= {"elinewidth": 1.2}
        # A little apart, so that bars at one rate do not cover each other.
        rates = [rate * 1.025 ** (place - (len(arms) - 1) / 2) for rate in runs]
        ax.errorbar(rates, means, ENOUGH * errors, label=name, capsize=3, **look)
        top = int(means.argmax())
        ring: Any = {"mfc": "none", "mec": colour, "ms": 13, "mew": 2}
        ax.plot(rates[top], means[top], "o", **ring)
        told.append(f"{name} best at {list(runs)[top]:g} with {means[top]:.2f}")
    ax.set_xscale("log")
    every = sorted({rate for runs in arms.values() for rate in runs})
    ticks = [rate for rate in every if f"{rate:.0e}"[0] in "1235"]
    ax.set_xticks(ticks, [f"{rate:g}" for rate in ticks], fontsize=10)
    ax.minorticks_off()
    describe(ax.figure, f"{ylabel} by learning rate: {'; '.join(told)}.")
    return legend_above(finish(ax, "learning rate", ylabel))


def compare(arms: Mapping[str, Mapping[float, Tensor]]) -> dict[str, Tensor]:
    """Draw P(sorted) of each arm at each rate. -> that at its best rate, [seed] each

    Print it too, and how far it is ahead of the first arm, seed by seed.
    """
    plot_rates(arms, "P(sorted) after 5 rollouts")
    best = {
        name: max(runs.values(), key=lambda right: right.mean().item())
        for name, runs in arms.items()
    }
    first, *others = best
    print(f"{first:21s} at its best rate {best[first].mean():.3f}")
    for name in others:
        lead, error = mean_and_error(best[name] - best[first])
        told = f"at its best rate {best[name].mean():.3f}"
        print(f"{name:21s} {told}, ahead by {lead:+.3f} ± {error:.3f}")
    return best


def plot_runs(runs: Mapping[str, Tensor]) -> list[Axes]:
    """P(sorted) and entropy of each arm, means over the seeds. [2 rollout seed] each

    A band is two standard errors to each side.
    """
    axes = axes_row(2, width=9.5)
    for row, ylabel in enumerate(("P(sorted)", "entropy (nats a token)")):
        for (name, run), (colour, line) in zip(
            runs.items(), looks_of(runs), strict=True
        ):
            mean, error = mean_and_error(run[row])
            axes[row].plot(mean, color=colour, ls=line, lw=2, label=name)
            edges = mean - ENOUGH * error, mean + ENOUGH * error
            axes[row].fill_between(range(len(mean)), *edges, color=colour, alpha=0.2)
        finish(axes[row], "rollouts", ylabel)
    place: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.93), "ncols": 4}
    handles = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*handles, frameon=False, handlelength=3, **place)
    plt.tight_layout()
    return axes


def plot_means(
    plain: Tensor, weighted: Tensor, fresh: Tensor, earned_old: float, earned: float
) -> Axes:
    """Means of samples as dots: old, old with a ratio, and fresh. [repeat] each

    A line stands at what each of the two policies earns, exactly.
    """
    ax = axes_row(width=8.0, height=2.9)[0]
    rows = (2.0, plain, PI_OLD, "v"), (1.0, weighted, PI, "o"), (0.0, fresh, PI, "D")
    for row, means, colour, mark in rows:
        jitter = torch.linspace(-0.2, 0.2, len(means))
        ax.plot(means, row + jitter, mark, color=colour, ms=5, alpha=0.5, mec="none")
    old, new = r"$\pi_\mathrm{old}$ earns", r"$\pi$ earns"
    ax.axvline(earned_old, color=PI_OLD, ls="--", lw=2, label=f"{old} {earned_old:.3f}")
    ax.axvline(earned, color=PI, lw=2, label=f"{new} {earned:.3f}")
    names = ["old, plain", "old, weighted by $r$", "fresh"]
    ax.set(ylim=(-0.5, 2.5), yticks=[2, 1, 0], yticklabels=names)
    text = "Means of samples as dots"
    for name, (_, means, _, _) in zip(names, rows, strict=True):
        text += f"; {name}: {means.mean():.2f}, spread {means.std():.2f}"
    describe(ax.figure, f"{text}.".replace("$", ""))
    return legend_above(finish(ax, "mean reward of the samples", ""))


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


def plot_let_go(
    noted: Sequence[tuple[Tensor, Tensor]], mu: int, epsilon: float = EPSILON
) -> tuple[float, float]:
    """The tokens of the first seed after mu steps. -> shares in the range, and let go

    noted[step] holds ratio [batch trial pos] and deltas [batch trial]; the first three
    rows of batch are the prompts of the first seed.
    """
    before, ratio = (noted[max(0, k)][0][:3].flatten() for k in (mu - 1, mu))
    deltas = noted[mu][1][:3, :, None].expand_as(noted[mu][0][:3]).flatten()
    ax = axes_row(width=8.0, height=4.0)[0]
    gone = draw_clip_plane(ax, ratio, deltas, epsilon, before)
    for x, y, words in (  # in shares of the sides
        (0.02, 0.8, "pushed up"),
        (0.98, 0.8, "clipped: no push"),
        (0.02, 0.05, "clipped: no push"),
        (0.98, 0.05, "pushed down"),
    ):
        look: Any = {"bbox": {"facecolor": GROUND, "lw": 0, "pad": 2}}
        side = "right" if x > 0.5 else "left"
        write(ax, words, x, y, ha=side, xycoords="axes fraction", **look)
    ax.set_xticks([0.03, 0.1, 1, 10], ["≤ 0.03", "0.1", "1", "10"])
    # Dots at the edge are whole, and none of them moves the axes.
    plt.setp(ax.lines, clip_on=False, in_layout=False)
    inside = (ratio > 1 - epsilon) & (ratio < 1 + epsilon)
    return inside.float().mean().item(), gone.float().mean().item()
