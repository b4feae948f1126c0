"""When writers write and the learner learns, as bars in time."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from grpo_course.classroom.plots import finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, PI
from grpo_course.off_policy import LEARNER, Span


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
