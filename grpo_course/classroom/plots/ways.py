"""What each seed gained, and by which training, for each way to answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS


def plot_ways(rows: Sequence[Mapping[str, Any]], short: Sequence[str]) -> list[Axes]:
    """A small plot for each way to answer: the models side by side, a line a seed.

    Rows are those of `lessons/own_task_seeds.json`; `short` names the models below
    their columns. The seed with the weakest start is drawn in another colour, dashed.
    """
    models = [name for name in rows[0] if name != "seed"]

    def in_words(way: str) -> str:
        """Where the seeds lie, model by model."""
        shares = {m: [row[m][way] for row in rows] for m in models}
        spans = [f"{m} {min(s):.2f} to {max(s):.2f}" for m, s in shares.items()]
        return f"{way}: {', '.join(spans)}"

    ways = list(rows[0][models[0]])
    weakest = min(rows, key=lambda row: row[models[0]][ways[0]])
    axes = axes_row(len(ways), width=11, height=3.4)
    for ax, way in zip(axes, ways, strict=True):
        for row in rows:
            shares = [row[model][way] for model in models]
            draw_seed(ax, shares, row["seed"], row is weakest)
        ax.set_title(way.replace(", ", ",\n"))
        ax.set_xticks(range(len(models)), short)
        ax.set(ylim=(0, 1.03), xlim=(-0.3, len(models) - 0.7))
        ax.label_outer()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("share right")
    figure = axes[0].figure
    named = [each for each in axes[0].lines if str(each.get_label())[0] != "_"]
    figure.legend(handles=named, loc="lower center", ncols=2, bbox_to_anchor=(0.5, 1))
    describe(figure, f"A line for each seed. {'; '.join(map(in_words, ways))}.")
    return axes


def draw_seed(ax: Axes, shares: list[float], seed: int, is_weakest: bool) -> None:
    """One seed's line through its models."""
    look: dict[str, Any] = {"color": COLOURS[0], "lw": 1, "alpha": 0.75}
    label = "each other seed"
    if is_weakest:
        look = {"color": COLOURS[1], "lw": 2, "ls": "--"}
        label = f"seed {seed}, the weakest start"
    known = {line.get_label() for line in ax.lines}
    ax.plot(
        shares, marker="o", ms=5, label="_again" if label in known else label, **look
    )
