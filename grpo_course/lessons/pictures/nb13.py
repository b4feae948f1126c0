"""What notebook 13 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    DOWN,
    GONE,
    LINES,
    PI,
    ROW,
    UP,
    axes_row,
    draw_blocks,
    draw_costs,
    finish,
    legend_above,
)
from grpo_course.loop import ENOUGH
from grpo_course.off_policy import LEARNER, Span

# The pictures of 13: two spreads, an engine's samples, how fast a clip lets rise.


BEYOND_KINDS = (
    ("right", 1, UP, "o"),
    ("wrong", 0, DOWN, "v"),
)  # of a response: its reward


FULL: dict[str, Any] = {"width": 0.6, "color": PI, "alpha": 0.7}


HOLLOW: dict[str, Any] = {"width": 0.8, "fill": False, "ec": "black", "lw": 1.8}


def plot_spreads(rewards: Tensor, deltas: Mapping[str, Tensor]) -> list[Axes]:
    """A panel for each spread that divides; in it the groups of a batch, side by side.

    rewards and each of the deltas [batch trial]; a reward is 1 or 0.
    """
    axes, told = axes_row(len(deltas), width=9.0, height=3.0), []
    groups, trials = rewards.shape
    places = torch.arange(groups)[:, None] + torch.linspace(-0.25, 0.25, trials)
    for ax, (title, made) in zip(axes, deltas.items(), strict=True):
        for name, reward, colour, mark in BEYOND_KINDS:
            mine = rewards == reward
            look: dict[str, Any] = {"color": colour, "ms": 6, "alpha": 0.8, "mew": 0}
            ax.plot(places[mine], made[mine], mark, ls="", label=name, **look)
        ax.axhline(0, color="black", lw=0.8)
        ax.set(ylim=(-3.5, 10.5), xticks=[])
        finish(ax, f"{groups} groups of {trials}", r"$\delta$", f"{title} spread")
        told.append(f"by {title} spread from {made.min():.2f} to {made.max():.2f}")
    axes[0].legend(loc="upper left", frameon=False)
    plt.tight_layout()
    right = f"{int(rewards.sum())} of {rewards.numel()} responses are right"
    describe(axes[0].figure, f"Deltas as dots: {'; '.join(told)}. {right}.")
    return axes


def plot_engine(
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    tokens: Sequence[str],
    limits: Sequence[tuple[float, float]],
) -> list[Axes]:
    """What an engine's samples give as bars, what is right as outlines around them.

    pairs[title] holds both, [token] each; limits are those of the panels' axes.
    """
    axes, told = axes_row(len(pairs), width=9.0, height=2.8), []
    for ax, (title, (got, want)), ends in zip(axes, pairs.items(), limits, strict=True):
        ax.bar(range(len(got)), got, label="engine's samples", **FULL)
        ax.bar(range(len(want)), want, label="right", **HOLLOW)
        ax.axhline(0, color="black", lw=0.8)
        ax.set_xticks(range(len(tokens)), tokens)
        ax.set_ylim(*ends)
        finish(ax, "token (★ is rewarded)", "", title).grid(visible=False, axis="x")
        values = zip(tokens, got.tolist(), want.tolist(), strict=True)
        words = [f"{token} {one:.3f} of {other:.3f}" for token, one, other in values]
        told.append(f"{title}: {', '.join(words)}")
    axes[0].legend(loc="upper right", frameon=False)
    plt.tight_layout()
    describe(axes[0].figure, f"Bars, and what is right as outlines: {'; '.join(told)}.")
    return axes


# Ways to do one thing beside each other: gaps, means, before and after.


def plot_gaps(
    gaps: Mapping[str, Sequence[tuple[float, float]]],
    settings: Sequence[float],
    xlabel: str,
    ylabel: str,
) -> Axes:
    """Mean and standard error at each setting, a line a name; its bars hold two errors.

    The settings are evenly spaced; a line on zero is the baseline.
    """
    ax = axes_row()[0]
    for row, (name, pairs) in enumerate(gaps.items()):
        means, errors = zip(*pairs, strict=True)
        spots = [place + 0.04 * (row - len(gaps) / 2) for place in range(len(pairs))]
        style: dict[str, Any] = {
            "color": COLOURS[row],
            "ls": LINES[row],
            "marker": "o",
            "ms": 4,
        }
        ax.plot(spots, means, label=name, **style)
        bars = [ENOUGH * error for error in errors]
        ax.errorbar(spots, means, bars, fmt="", ls="", ecolor=COLOURS[row])
    ax.axhline(0, color="black", lw=1)
    ax.set_xticks(range(len(settings)), [f"{value:g}" for value in settings])
    places = ", ".join(f"{value:g}" for value in settings)
    text = f"Lines of {ylabel} against {xlabel}, at {places}: {gaps_words(gaps)}."
    describe(ax.figure, f"{text} Bars: two standard errors.")
    return legend_above(finish(ax, xlabel, f"{ylabel}\n(bars: two standard errors)"))


def gaps_words(gaps: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The means of each line, at one setting after the other."""
    told = {n: [f"{mean:+.3f}" for mean, _ in pairs] for n, pairs in gaps.items()}
    return "; ".join(f"{name} {', '.join(means)}" for name, means in told.items())


# How three means over a batch weigh the tokens of a short and of a long response.


def plot_weights(weights: Mapping[str, Tensor]) -> list[Axes]:
    """A panel for each mean: a short response above, a long one below. [trial pos] each

    A weight is 0 at the padding; the tallest block is equally high in all panels.
    """
    axes, told = axes_row(len(weights), width=11.0, height=2.8), []
    for ax, (name, rows) in zip(axes, weights.items(), strict=True):
        for row, bottom in zip(rows, (ROW, 0.0), strict=True):
            draw_blocks(ax, row, bottom, rows.max().item())
        ax.set(xlim=(-0.2, rows.shape[1] + 0.2), ylim=(-0.1, 2 * ROW - 0.3), title=name)
        ax.axis("off")
        told.append(f"{name} {rows[0, 0]:.3f} and {rows[1, 0]:.3f}")
    for row, bottom in zip(rows, (ROW, 0.0), strict=True):
        place: dict[str, Any] = {"ha": "right", "va": "bottom"}
        axes[0].text(-0.6, bottom, f"{(row > 0).sum()} tokens", **place)
    words = "Blocks as high as tokens of a short and of a long response weigh"
    describe(axes[0].figure, f"{words}, under each mean: {'; '.join(told)}.")
    return axes


# Ratios of tokens and of whole responses, and how hard each token pulls.


RATIO_LEVELS_ENDS = (0.22, 4.6)  # of the axis, in ratios


TICKS = (0.25, 0.5, 0.8, 1, 1.2, 2, 4)


CROSS: dict[str, Any] = {"ls": "", "marker": "x", "ms": 10, "mew": 3, "zorder": 3}


CROSS |= {"color": "black"}


SHIFTS = (-0.19, 0.19)  # of two bars beside each other


RATIO_LEVELS_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": PI},
    {"facecolor": COLOURS[4], "edgecolor": "white", "hatch": "///"},
)


def plot_levels(
    ratio: Tensor, mask: Tensor, of_response: Tensor, epsilon: float = 0.2
) -> Axes:
    """A row for each response: its tokens' ratios as dots, its own as a diamond.

    ratio, bool mask [trial pos], of_response [trial]; the grey band is the clip range.
    """
    ax = axes_row(width=8.0, height=1.7 + 0.3 * len(ratio))[0]
    dots: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6, "color": GONE, "mew": 0}
    diamond: dict[str, Any] = {"marker": "D", "ms": 10, "color": PI, "mec": "white"}
    for row, (values, keep) in enumerate(zip(ratio, mask, strict=True)):
        many = int(keep.sum())
        ax.plot(
            values[keep], [row - 0.18] * many, alpha=max(0.1, 1 - many / 70), **dots
        )
        ax.plot(of_response[row], row + 0.14, zorder=3, **diamond)
    ax.plot([], [], label="a token", **dots)
    ax.plot([], [], ls="", label="the response", **diamond)
    ax.axvspan(1 - epsilon, 1 + epsilon, label="clip range", **CLIP)
    ax.axvline(1, color="black", lw=0.8)
    ax.set(xscale="log", xlim=RATIO_LEVELS_ENDS, ylim=(len(ratio) - 0.5, -0.5))
    ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    ax.set_yticks(range(len(ratio)), [f"response {row}" for row in range(len(ratio))])
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    finish(ax, "ratio $r$", "").grid(visible=False)
    plt.tight_layout()
    describe(ax.figure, levels_words(ratio[mask], of_response, epsilon))
    return ax


def outside(ratio: Tensor, epsilon: float) -> int:
    """How many ratios are outside the clip range."""
    return int(((ratio - 1).abs() > epsilon).sum())


def levels_words(tokens: Tensor, of_response: Tensor, epsilon: float) -> str:
    """The spread of both kinds of ratio, as one says it."""
    told = [
        f"{name} from {values.min():.2f} to {values.max():.2f}, "
        f"{outside(values, epsilon)} of {len(values)} outside the clip range"
        for name, values in (("tokens", tokens), ("responses", of_response))
    ]
    return f"Ratios: {'; '.join(told)}."


def wide_as(counts: Sequence[int]) -> list[Axes]:
    """Panels beside each other, as wide as they have tokens: all bars are alike."""
    look: dict[str, Any] = {"figsize": (10.0, 3.4), "layout": "constrained"}
    _, axes = plt.subplots(1, len(counts), width_ratios=counts, squeeze=False, **look)
    return list(axes[0])


def plot_pulls(
    ratio: Tensor, mask: Tensor, deltas: Tensor, pulls: Mapping[str, Tensor]
) -> list[Axes]:
    """How hard each token pulls under each loss, as bars; a cross where not at all.

    ratio, bool mask and each of the pulls [trial pos], deltas [trial].
    """
    axes = wide_as(mask.sum(-1).tolist())
    most = max(pull[mask].max().item() for pull in pulls.values())
    least = min(pull[mask].min().item() for pull in pulls.values())
    for trial, ax in enumerate(axes):
        keep = mask[trial]
        for shift, (name, pull), look in zip(
            SHIFTS, pulls.items(), RATIO_LEVELS_LOOKS, strict=True
        ):
            places, values = torch.arange(int(keep.sum())) + shift, pull[trial, keep]
            ax.bar(places, values, 0.36, label=name, **look)
            gone = places[values.abs() < 1e-6]
            ax.plot(gone, torch.zeros_like(gone), **CROSS)
        names = [f"{value:.1f}" for value in ratio[trial, keep].tolist()]
        ax.set_xticks(range(len(names)), names)
        ax.axhline(0, color="black", lw=1)
        ax.set_xlim(-0.5, len(names) - 0.5)
        ax.set_ylim(min(0.0, least) - 0.3, max(0.0, most) + 0.3)
        title = rf"$\delta = {deltas[trial]:+g}$"
        finish(ax, "ratio of the token", "pull", title).grid(visible=False, axis="x")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside upper center", ncols=2)
    told = [f"{k} {', '.join(f'{x:.1f}' for x in v[mask])}" for k, v in pulls.items()]
    shown = ", ".join(f"{value:.1f}" for value in ratio[mask])
    describe(ax.figure, f"Tokens of ratio {shown}. Bars, pulls: {'; '.join(told)}.")
    return axes


# How wrong an update is as a setting moves; what defects cost.


def plot_gains(gains: dict[str, tuple[float, float]], xlabel: str) -> Axes:
    """Mean and standard error of each difference, the largest on top."""
    ordered = dict(sorted(gains.items(), key=lambda row: -abs(row[1][0])))
    ax = draw_costs(axes_row(width=8.5, height=3.8)[0], ordered, xlabel)
    told = "; ".join(f"{name} {mean:+.3f}" for name, (mean, _) in ordered.items())
    describe(ax.figure, f"A dot a row, {xlabel}: {told}.")
    return ax


# When writers write and the learner learns, as bars in time.


def plot_waiting(
    spans: Mapping[str, Sequence[Span]],
    writers: int,
    seconds: float,
    begin: float = 0.0,
    ages: Mapping[str, int] | None = None,
) -> list[Axes]:
    """Panels below each other, one a way to wait: rows for the learner and each writer.

    A gap in a row is time in which it waits; `seconds` are shown, from `begin` on.
    Where `ages` says how old a batch is, one such batch and its update are framed.
    """
    size, count = (9.0, 0.6 + 1.9 * len(spans)), len(spans)
    figure, rows = plt.subplots(count, 1, sharex=True, squeeze=False, figsize=size)
    told, end, axes = [], begin + seconds, list(rows[:, 0])
    for ax, (title, busy) in zip(axes, spans.items(), strict=True):
        draw_busy(ax, busy)
        ax.set_yticks(
            range(writers + 1),
            ["learner", *(f"writer {w + 1}" for w in range(writers))],
        )
        ax.set(xlim=(begin, end), ylim=(writers + 0.6, -0.6))
        finish(ax, "seconds" if ax is axes[-1] else "", "", title).grid(
            visible=False, axis="y"
        )
        count = sum(s.who == LEARNER and begin < s.end <= end for s in busy)
        told.append(f"{title}: {count} updates")
        if ages:
            told[-1] += ", " + mark_batch(ax, busy, begin, ages[title])
    plt.tight_layout()
    describe(
        figure,
        f"Bars where writers write and the learner learns, {seconds:g} seconds long. "
        f"{'; '.join(told)}.",
    )
    return axes


def draw_busy(ax: Axes, busy: Sequence[Span]) -> None:
    """A bar for each span, in the row of who is busy."""
    for who in {s.who for s in busy}:
        bars = [(s.start, s.end - s.start) for s in busy if s.who == who]
        colour = COLOURS[1] if who == LEARNER else to_rgba(PI, 0.55)
        ax.broken_barh(bars, (who + 0.65, 0.7), fc=colour, ec="white", lw=1.2)


def mark_batch(ax: Axes, busy: Sequence[Span], begin: float, age: int) -> str:
    """Frame a batch and its update, and number the updates since it was begun.

    It is the first batch begun after `begin` that gets so old. Batches are learned
    from in the order in which they are ready. Returns words for it.
    """
    written = sorted((s for s in busy if s.who != LEARNER), key=lambda s: s.end)
    learned = sorted((s for s in busy if s.who == LEARNER), key=lambda s: s.start)
    pairs = zip(written, learned, strict=False)
    for batch, update in sorted(pairs, key=lambda pair: pair[0].start):
        passed = [s for s in learned if batch.start < s.end <= update.start]
        if batch.start > begin and len(passed) == age:
            break
    else:
        raise ValueError(f"age={age}: no batch that is begun after {begin} gets so old")
    for s in (batch, update):
        look: dict[str, Any] = {"fc": "none", "ec": "black", "lw": 2.5, "zorder": 4}
        ax.broken_barh([(s.start, s.end - s.start)], (s.who + 0.65, 0.7), **look)
    ends = (update.start, 0.38), (batch.start, batch.who + 1)
    ax.annotate("", *ends, arrowprops={"arrowstyle": "-|>", "lw": 1.8})
    ink: dict[str, Any] = {"color": "white", "ha": "center", "va": "center_baseline"}
    for number, s in enumerate(passed, 1):
        middle = (max(s.start, begin) + s.end) / 2
        ax.text(middle, 0, f"{number}", weight="bold", **ink)
    return f"{age} of them since the framed batch was begun, until its own"
