"""What notebook 13 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    GONE,
    LINES,
    PI,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    write,
)
from grpo_course.formulas import EPSILON
from grpo_course.lessons.batch_queue import LEARNER, Span
from grpo_course.loop import ENOUGH


def plot_levels(
    ratio: Tensor, mask: Tensor, of_response: Tensor, epsilon: float = EPSILON
) -> Axes:
    """A row for each response: its tokens' ratios as dots, its own as a diamond.

    ratio, bool mask [trial pos], of_response [trial]; the grey band is the clip range.
    """
    count = len(ratio)
    ax = axes_row(width=8.0, height=1.7 + 0.3 * count)[0]
    dots: dict[str, Any] = {"ls": "", "marker": "o", "ms": 6, "color": GONE, "mew": 0}
    diamond: dict[str, Any] = {"marker": "D", "ms": 10, "color": PI, "mec": "white"}
    for row, (values, keep) in enumerate(zip(ratio, mask, strict=True)):
        faint = max(0.1, 1 - keep.sum().item() / 70)
        ax.plot(values[keep], [row - 0.18] * keep.sum(), alpha=faint, **dots)
        ax.plot(of_response[row], row + 0.14, zorder=3, **diamond)
    ax.plot([], [], label="a token", **dots)
    ax.plot([], [], ls="", label="the response", **diamond)
    ax.axvspan(1 - epsilon, 1 + epsilon, label="clip range", **CLIP)
    ax.axvline(1, color="black", lw=0.8)
    ax.set(xscale="log", xlim=(0.22, 4.6), ylim=(count - 0.5, -0.5))
    ticks = (0.25, 0.5, 1 - epsilon, 1, 1 + epsilon, 2, 4)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(range(count), [f"response {row}" for row in range(count)])
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    finish(ax, "ratio $r$", "").grid(visible=False)
    plt.tight_layout()
    told = f"tokens {ratio[mask].min():.2f} to {ratio[mask].max():.2f}"
    told += f", responses {of_response.min():.2f} to {of_response.max():.2f}"
    describe(ax.figure, f"Ratios beside a clip range of {epsilon:g}: {told}.")
    return ax


def plot_lengths(tokens: Mapping[str, Tensor]) -> Axes:
    """Tokens of a response in each rollout, [rollout seed] for each name."""
    ax = plot_bands(dict(tokens), "tokens of a response", "rollout")
    ax.set_xticks(range(0, 20, 5))
    ax.axhline(4, color="black", lw=0.8)
    write(ax, "three numbers and the end", 19, 4, (0, 8), ha="right", fontsize=11)
    return ax


def plot_rising(chances: Mapping[str, Tensor]) -> Axes:
    """The mean probability of a rare token in each rollout, [rollout seed]; log axis."""
    ax = axes_row()[0]
    for row, (name, chance) in enumerate(chances.items()):
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(chance.mean(dim=-1), label=name, **look)
    ax.set(yscale="log", ylim=(0.008, 1.2))
    ax.set_xticks(range(0, 20, 5))
    finish(ax, "rollout", "chance of the rare token")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


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
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(spots, means, marker="o", ms=4, label=name, **look)
        bars = [ENOUGH * error for error in errors]
        ax.errorbar(spots, means, bars, ls="", ecolor=COLOURS[row])
    ax.axhline(0, color="black", lw=1)
    ax.set_xticks(range(len(settings)), [f"{value:g}" for value in settings])
    return legend_above(finish(ax, xlabel, f"{ylabel}\n(bars: two standard errors)"))


def plot_engine(
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    tokens: Sequence[str],
    limits: Sequence[tuple[float, float]],
) -> list[Axes]:
    """What an engine's samples give as bars, what is right as outlines around them.

    pairs[title] holds both, [token] each; limits are those of the panels' axes.
    """
    axes = axes_row(len(pairs), width=9.0, height=2.8)
    hollow: dict[str, Any] = {"fill": False, "ec": "black", "lw": 1.8}
    for ax, (title, (got, want)), ends in zip(axes, pairs.items(), limits, strict=True):
        ax.bar(tokens, got, 0.6, color=PI, alpha=0.7, label="engine's samples")
        ax.bar(tokens, want, 0.8, label="right", **hollow)
        ax.axhline(0, color="black", lw=0.8)
        ax.set_ylim(*ends)
        finish(ax, "token (★ is rewarded)", "", title).grid(visible=False, axis="x")
    axes[0].legend(loc="upper right", frameon=False)
    plt.tight_layout()
    return axes


def plot_waiting(
    spans: Mapping[str, Sequence[Span]],
    writers: int,
    seconds: float,
    begin: float,
    ages: Mapping[str, int],
) -> list[Axes]:
    """Panels below each other, one a way to wait: rows for the learner and each writer.

    A gap in a row is time in which it waits; `seconds` are shown, from `begin` on. The
    first batch begun then that gets `ages[title]` updates old is framed, and so is its
    update; those in between are numbered.
    """
    size, end = (9.0, 0.6 + 1.9 * len(spans)), begin + seconds
    figure, grid = plt.subplots(len(spans), sharex=True, squeeze=False, figsize=size)
    axes, rows = list(grid[:, 0]), ["learner"]
    rows += [f"writer {writer}" for writer in range(1, writers + 1)]
    for ax, (title, busy) in zip(axes, spans.items(), strict=True):
        written = sorted((s for s in busy if s.who != LEARNER), key=lambda s: s.end)
        learned = sorted((s for s in busy if s.who == LEARNER), key=lambda s: s.start)
        for s in busy:
            if s.start < end and s.end > begin:
                fill = COLOURS[1] if s.who == LEARNER else to_rgba(PI, 0.55)
                bar = [(s.start, s.end - s.start)], (s.who + 0.65, 0.7)
                ax.broken_barh(*bar, fc=fill, ec="white", lw=1.2)
        # Batches are learned from in the order in which they are ready.
        pairs = sorted(zip(written, learned, strict=False), key=lambda p: p[0].start)
        for batch, update in pairs:
            passed = [s for s in learned if batch.start < s.end <= update.start]
            if batch.start > begin and len(passed) == ages[title]:
                break
        for s in (batch, update):
            bar = [(s.start, s.end - s.start)], (s.who + 0.65, 0.7)
            ax.broken_barh(*bar, fc="none", ec="black", lw=2.5, zorder=4)
        ends = (update.start, 0.38), (batch.start, batch.who + 1)
        ax.annotate("", *ends, arrowprops={"arrowstyle": "-|>", "lw": 1.8})
        ink: dict[str, Any] = {"color": "white", "weight": "bold", "ha": "center"}
        for number, s in enumerate(passed, 1):
            middle = (max(s.start, begin) + s.end) / 2
            ax.text(middle, 0, f"{number}", va="center_baseline", **ink)
        ax.set_yticks(range(writers + 1), rows)
        ax.set(xlim=(begin, end), ylim=(writers + 0.6, -0.6))
        finish(ax, "", "", title).grid(visible=False, axis="y")
    axes[-1].set_xlabel("seconds")
    plt.tight_layout()
    told = [f"{title} a batch gets {age} updates old" for title, age in ages.items()]
    describe(figure, f"When writers write and the learner learns. {'; '.join(told)}.")
    return axes
