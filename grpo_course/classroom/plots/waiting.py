"""When writers write and the learner learns, as bars in time."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, PI
from grpo_course.engines.waiting import LEARNER, Span


def plot_waiting(
    spans: Mapping[str, Sequence[Span]],
    writers: int,
    seconds: float,
    begin: float = 0.0,
) -> list[Axes]:
    """A panel for each way to wait, in it a row for the learner and one a writer.

    A gap in a row is time in which it waits; `seconds` are shown, from `begin` on.
    """
    axes = axes_row(len(spans), width=10.0, height=2.6)
    told, end = [], begin + seconds
    for ax, (title, busy) in zip(axes, spans.items(), strict=True):
        for who in (LEARNER, *range(writers)):
            seen = [s for s in busy if s.who == who and s.end > begin and s.start < end]
            bars = [(s.start, s.end - s.start) for s in seen]
            learns = who == LEARNER
            look = {"color": COLOURS[1]} if learns else {"color": PI, "alpha": 0.55}
            ax.broken_barh(bars, (who + 0.65, 0.7), ec="white", **look)
        ax.set_yticks(
            range(writers + 1),
            ["learner", *(f"writer {w + 1}" for w in range(writers))],
        )
        ax.set(xlim=(begin, end), ylim=(writers + 0.6, -0.6))
        finish(ax, "seconds", "", title).grid(visible=False, axis="y")
        count = sum(s.who == LEARNER and begin < s.end <= end for s in busy)
        told.append(f"{title}: {count} updates")
    plt.tight_layout()
    describe(
        axes[0].figure,
        f"Bars where writers write and the learner learns, {seconds:g} seconds long. "
        f"{'; '.join(told)}.",
    )
    return axes
