"""What notebook 08 alone draws."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    GONE,
    GROUND,
    LEVEL,
    PI,
    PI_REF,
    axes_row,
    cells,
    draw_arrow,
    finish,
    legend_above,
    sign_colour,
    write,
)


def plot_reads(tables: Mapping[str, Tensor], prompt_length: int) -> list[Axes]:
    """A table for each critic: a cell is filled where its token moves its value.

    bool [value token]; the prompt's tokens come first.
    """
    axes = axes_row(len(tables), width=10.0, height=2.5)
    for ax, (name, table) in zip(axes, tables.items(), strict=True):
        count, width = table.shape
        cells(finish(ax, "", "", name), table.float(), "", limits=(-0.15, 1.3))
        ax.vlines([x - 0.5 for x in range(1, width)], -0.5, count - 0.5, "white", lw=4)
        ax.hlines([y - 0.5 for y in range(1, count)], -0.5, width - 0.5, "white", lw=4)
        ax.axvline(prompt_length - 0.5, color="black", lw=1.5)
        names = [f"prompt\n{p}" for p in range(prompt_length)]
        names += [f"token\n{t}" for t in range(width - prompt_length)]
        ax.set_xticks(range(width), names, fontsize=10)
        ax.set_yticks(range(count), [f"$V_{t}$" for t in range(count)])
    return axes


def plot_entropy_push(probs: Tensor, push: Tensor) -> list[Axes]:
    """Left the gradient of the entropy, right that of -log pi, averaged over samples.

    A sample pushes its own logit down and all others up. Weighed by how often each is
    drawn, both pushes on a logit are pi (1 - pi): they cancel. [vocab] twice
    """
    left, right = axes_row(2, width=9.5, height=3.4)
    for ax, title in ((left, "exact entropy"), (right, r"mean of samples' $-\log\pi$")):
        ax.bar(range(len(probs)), probs, 0.8, color=PI, alpha=0.3)
        ax.set(xticks=range(len(probs)), yticks=(0, 0.5, 1), ylim=(-0.2, 1.3))
        finish(ax, "token", "", title).grid(visible=False, axis="x")
    left.set_ylabel("probability")
    both = probs * (1 - probs)
    for ax, shift, pushes in (
        (left, 0, push),
        (right, -0.15, -both),
        (right, 0.15, both),
    ):
        for x, (foot, up) in enumerate(
            zip(probs.tolist(), pushes.tolist(), strict=True)
        ):
            if abs(up) > 0.05:  # a shorter arrow is all head
                draw_arrow(ax, (x + shift, foot), (x + shift, foot + 1.6 * up), up, 2.5)
    return [left, right]


def plot_value_clip(
    pulled: Callable[[Tensor, float | None], tuple[Tensor, Tensor]],
    clip: float,
    tried: Tensor,
) -> Axes:
    """The critic's loss with and without a clip, and how each of some values is pulled.

    `pulled` gives the loss at values, and minus its gradient: [value] -> [value] twice.
    """
    ax, places = axes_row(width=8.0, height=3.8)[0], torch.linspace(-1.0, 3.0, 401)
    squared, clipped = (pulled(places, each)[0] for each in (None, clip))
    target = torch.ones_like(places)
    huber = torch.nn.functional.huber_loss(places, target, reduction="none")
    flat = torch.where(clipped > squared + 1e-6, clipped, torch.nan)
    ax.axvspan(-clip, clip, label="clip range", **CLIP)
    ax.plot(places, squared, color=COLOURS[1], ls="--", label="squared")
    ax.plot(places, huber, color=COLOURS[3], ls=":", lw=2.5, label="Huber")
    ax.plot(places, clipped, color=PI, lw=3, label="clipped")
    ax.plot(places, flat, color=GONE, lw=6, label="clipped, flat")
    spots = (tried, *pulled(tried, clip))
    for value, loss, pull in zip(*(each.tolist() for each in spots), strict=True):
        if pull:
            draw_arrow(ax, (value, loss), (value + 0.55 * pull, loss), pull, width=3)
        fill: dict[str, Any] = {
            "mfc": PI if pull else GROUND,
            "mec": PI if pull else GONE,
        }
        ax.plot(value, loss, "o", ms=10, mew=2.5, zorder=5, **fill)
    ax.set(xlim=(-1.1, 3.1), ylim=(-0.1, 2.1))
    return legend_above(finish(ax, "new value (old value 0, target 1)", "value loss"))


def plot_token_pay(panels: Mapping[str, tuple[Tensor, Tensor]]) -> list[Axes]:
    """A bar for each token, around it an outline of what it was before. [pos] twice"""
    axes = axes_row(len(panels), width=9.5, height=3.4)
    for ax, (title, (now, before)) in zip(axes, panels.items(), strict=True):
        places, colours = range(len(now)), [sign_colour(x) for x in now.tolist()]
        ax.bar(places, now, 0.6, color=colours, alpha=0.75)
        ax.bar(places, before, 0.72, facecolor="none", edgecolor="black", lw=1.8)
        for x, value, old in zip(places, now.tolist(), before.tolist(), strict=True):
            value = round(value, 1) + 0.0  # no minus zero
            foot = value - 0.3 if value < 0 else max(value, old) + 0.3
            write(ax, f"{value:+.1f}", x, foot)
        ax.axhline(0, color="black", lw=1)
        ax.set(xticks=places, ylim=(-2.8, 3.2))
        finish(ax, "token", "", title).grid(visible=False, axis="x")
    axes[0].set_ylabel("reward")
    return axes


def plot_value_steps(values: Tensor, reward: float, ax: Axes | None = None) -> Axes:
    """The values as levels, the reward as the last one, and what each token changed.

    values [pos] are said before each token; the reward is paid after the last one.
    """
    levels = [*values.tolist(), reward]
    numbers = ax is None  # in a panel they would stand on the levels
    ax = ax or axes_row(width=8.0, height=3.4)[0]
    names = [f"$V_{t}$ = {value:.1f}" for t, value in enumerate(values.tolist())]
    box = {"facecolor": GROUND, "lw": 0, "pad": 0.5, "alpha": 0.8}
    for x, (level, name) in enumerate(
        zip(levels, [*names, f"paid {reward:g}"], strict=True)
    ):
        colour = PI if x < len(values) else PI_REF
        ax.plot([x - 0.42, x + 0.42], [level, level], color=colour, lw=4)
        write(ax, name, x, level - 0.08, va="top", bbox=box)
    errors = [after - now for now, after in pairwise(levels)]
    for t, error in enumerate(errors):
        draw_arrow(ax, (t + 0.5, levels[t]), (t + 0.5, levels[t + 1]), error, width=3)
        look: dict[str, Any] = {
            "ha": "left",
            "color": sign_colour(error),
            "weight": "bold",
        }
        if numbers:
            write(
                ax, f"{error:+.1f}", t + 0.58, (levels[t] + levels[t + 1]) / 2, **look
            )
    ticks = [t + 0.5 for t in range(len(values))]
    ax.set_xticks(ticks, [f"token {t}" for t in range(len(values))])
    ax.set(xlim=(-0.6, len(values) + 0.7), ylim=(0, 1.1 * max(levels)))
    finish(ax, "", "reward still expected").grid(visible=False, axis="x")
    told = ", ".join(f"{t}: {error:+.1f}" for t, error in enumerate(errors))
    describe(
        ax.figure,
        f"A stair of values up to the reward {reward:g}; its steps are {told}.",
    )
    return ax


def plot_critic(
    values: Tensor, exact: Tensor, deltas: Mapping[str, Tensor]
) -> list[Axes]:
    """Left, a critic's stair and, dotted, the exact one; right, bars for each token.

    values [pos]; exact [pos + 1] ends with the reward. deltas, by name, are [pos]; what
    each token truly changed is drawn beside them.
    """
    left, right = axes_row(2, width=10.0, height=3.4)
    plot_value_steps(values, exact[-1].item(), left)
    for x, level in enumerate(exact[:-1].tolist()):
        left.plot([x - 0.46, x + 0.46], [level, level], color="black", lw=2.5, ls=":")
    left.set(ylim=(-0.35, 3.4), title="dotted: the exact expectation")
    bars = zip(
        {**deltas, "exact": exact.diff()}.items(),
        (*COLOURS[3:5], "black"),
        strict=True,
    )
    for number, ((name, heights), colour) in enumerate(bars):
        places = [t + 0.27 * (number - 1) for t in range(len(heights))]
        right.bar(places, heights, 0.25, label=name, color=colour)
    right.axhline(0, color="black", lw=1)
    right.set_xticks(range(len(values)), [f"token {t}" for t in range(len(values))])
    right.set_ylim(-3, 3)
    legend_above(finish(right, "", r"$\delta$"))
    text = "Left a critic's stair beside the exact one, right the deltas of each token as bars."
    describe(left.figure, text)
    return [left, right]


def plot_overrated(
    true: Tensor,
    scores: Tensor,
    policies: Mapping[str, Tensor],
    ylabel: str = "the model's reward (std)",
    ylim: tuple[float, float] = (-3.6, 3.6),
) -> list[Axes]:
    """A panel for each policy: a disc for each response, as large as its probability.

    A ring marks the model's favourite. true and scores [all], each policy [all].
    """
    axes = axes_row(len(policies), width=4.6 * len(policies), height=3.6)
    best = scores.argmax()
    # Many responses are worth the same: spread them a little, the same way each time.
    across = true + 0.25 * (torch.arange(len(true)) * 0.618 % 1 - 0.5)
    ring: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": COLOURS[1], "mew": 2.5}
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        ax.plot(across, scores, ".", color=GONE, ms=4)
        ax.scatter(across, scores, s=900 * probs, color=PI, alpha=0.55, lw=0, zorder=3)
        ax.plot(across[best], scores[best], "o", zorder=4, **ring)
        finish(ax, "true reward", "", f"{name}: worth {(probs * true).sum():.2f}")
        ax.set(xticks=range(4), xlim=(-0.5, 3.5), ylim=ylim)
    axes[0].set_ylabel(ylabel)
    return axes


def plot_climbs_by_beta(
    starts: Mapping[str, Tensor], ends: Mapping[str, Tensor], betas: Sequence[float]
) -> list[Axes]:
    """For each beta an arrow from what a start is worth to where its climb ended.

    A panel for each name. starts are [seed], ends [beta seed]: each seed is a dot, and
    the mean change stands above.
    """
    axes = axes_row(len(ends), width=10.0, height=3.4)
    for ax, (name, rows) in zip(axes, ends.items(), strict=True):
        start = starts[name].mean().item()
        ax.axhline(start, color=LEVEL, ls=":", lw=2)
        for x, values in enumerate(rows):
            ax.plot(
                [x + 0.22] * len(values), values, "o", ms=4, color=PI, alpha=0.4, lw=0
            )
            gap = values.mean().item() - start
            if abs(gap) > 0.005:  # the head of a short, thick one would be too long
                draw_arrow(
                    ax, (x, start), (x, start + gap), gap, min(4.0, 1 + 8 * abs(gap))
                )
            write(ax, f"{gap:+.2f}", x, 3.2, size=10, color=sign_colour(gap))
        ax.set_xticks(range(len(betas)), [f"{beta:g}" for beta in betas])
        ax.set(xlim=(-0.6, len(betas) - 0.4), ylim=(0.8, 3.4))
        finish(ax, "β", "true reward (3 is best)" if ax is axes[0] else "", name)
    return axes
