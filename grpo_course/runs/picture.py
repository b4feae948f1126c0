"""One picture of a run, or of two side by side: what one looks at while it goes on."""

import io
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import library

from grpo_course.files import write_atomically
from grpo_course.runs.record import Record, read_record, series

PICTURE = "run.png"
TIME = "seconds an epoch"
# title of a small plot -> its columns; the second is dashed
PANELS: dict[str, tuple[str, ...]] = {
    "mean reward": ("mean_reward",),
    "accuracy": ("accuracy", "held_out"),
    "tied groups (share)": ("tied_right", "tied_wrong"),
    "KL to the reference (nats)": ("kl",),
    "gradient norm": ("gradient_norm",),
    "entropy (nats a token)": ("sampled_entropy",),
    "length (tokens)": ("mean_length",),
    TIME: ("sampling", "update"),
}
LABELS = {
    "accuracy": "training",
    "held_out": "held-out",
    "tied_right": "all right",
    "tied_wrong": "all wrong",
}
LINES = ("-", "--")
POINTS = {"held_out"}  # measured now and then: each look is a point
COLOURS = library["tableau-colorblind10"]["axes.prop_cycle"].by_key()["color"]


def redraw(out: Path, tell: Callable[[str], None] = print) -> None:
    """Draw a run into its folder, once it has measured something.

    A run does not stop where that cannot be done.
    """
    try:
        record = read_record(out)
        if record.metrics:
            write_atomically(out / PICTURE, draw([record]))
    except Exception as problem:  # no picture is worth a run
        tell(f"{out / PICTURE} could not be written ({problem}); the run goes on.")


def draw(records: Sequence[Record]) -> bytes:
    """A PNG with a small plot for each of PANELS; a colour for each run."""
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    for ax, title in zip(figure.subplots(2, 4).flat, PANELS, strict=True):
        for record, colour in zip(records, cycle(COLOURS)):
            draw_panel(ax, record, title, colour)
        ax.set_title(title, fontsize=10)
        ax.tick_params(labelsize=8)
        ax.grid(alpha=0.3)
        if len(PANELS[title]) > 1 and ax.lines:
            handles = ax.lines[: len(ax.lines) // len(records)]
            ax.legend(handles=handles, fontsize=7, labelcolor="0.2")
    names = zip(records, cycle(COLOURS))
    for place, (record, colour) in enumerate(names):
        where = (place + 0.5) / len(records)
        figure.text(where, 1.0, record.name, color=colour, ha="center", va="bottom")
    figure.supxlabel("epoch", fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100, bbox_inches="tight")
    return out.getvalue()


def draw_panel(ax: Axes, record: Record, title: str, colour: str) -> None:
    """The columns of one small plot, of one run."""
    rows = record.times if title == TIME else record.metrics
    for name, style in zip(PANELS[title], LINES, strict=False):
        (line,) = ax.plot(*series(rows, name), color=colour, ls=style, lw=1.2)
        line.set_label(LABELS.get(name, name))
        if name in POINTS:
            line.set(marker="o", markersize=3.5)
