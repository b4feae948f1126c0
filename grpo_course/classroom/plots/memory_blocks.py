"""Memory as blocks drawn to scale: their areas are numbers that must be kept."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS

Kept = dict[str, dict[str, dict[str, float]]]  # method, model, kind -> count
# What is kept, its colour and its hatching.
LOOKS = {
    "weights": (COLOURS[0], ""),
    "gradients": (COLOURS[5], "//"),
    "Adam": (COLOURS[4], ".."),
    "log-probs": (COLOURS[1], ""),
}


def plot_memory(kept: Kept, unit: str = "") -> Axes:
    """A row for each method, a block for each of its models, in proportion.

    kept[method][model][kind] is a count, and a kind is one of LOOKS. Every row is
    equally high, so that widths can be compared, too.
    """
    totals = {
        m: sum(sum(k.values()) for k in models.values()) for m, models in kept.items()
    }
    most = max(totals.values())
    ax = axes_row(width=8.5, height=0.8 + 0.95 * len(kept))[0]
    for row, (method, models) in enumerate(kept.items()):
        x = 0.0
        for name, kinds in models.items():
            x = draw_model(ax, x, row, name, kinds)
        ax.text(x + 0.01 * most, row, f"{totals[method]:,}{unit}", va="center")
    ax.set(xlim=(0, 1.16 * most), ylim=(len(kept) - 0.4, -0.75), xticks=[])
    ax.set_yticks(range(len(kept)), list(kept))
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    used = [kind for kind in LOOKS if kind in kinds_in(kept)]
    looks = [Rectangle((0, 0), 1, 1, **look(kind)) for kind in used]
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.45, 0.97)}
    ax.legend(looks, used, ncols=len(used), frameon=False, **place)
    plt.tight_layout()
    describe(ax.figure, f"Memory as blocks drawn to scale. {in_words(kept, unit)}")
    return ax


def kinds_in(kept: Kept) -> set[str]:
    """What is kept at all."""
    return {k for models in kept.values() for kinds in models.values() for k in kinds}


def look(kind: str) -> dict:
    """How a kind of numbers is filled."""
    colour, hatch = LOOKS[kind]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "alpha": 0.85}


def draw_model(
    ax: Axes, x: float, row: int, name: str, kinds: dict[str, float]
) -> float:
    """The blocks of one model from x on; returns where they end."""
    start = x
    for kind, count in kinds.items():
        ax.add_patch(Rectangle((x, row - 0.28), count, 0.56, **look(kind)))
        x += count
    frame: dict[str, Any] = {"fill": False, "edgecolor": "black", "lw": 2}
    ax.add_patch(Rectangle((start, row - 0.28), x - start, 0.56, **frame))
    ax.text(start, row - 0.31, name, va="bottom")
    return x


def in_words(kept: Kept, unit: str) -> str:
    """Each method with its models and their numbers."""
    told = []
    for method, models in kept.items():
        parts = [
            f"{name} {sum(kinds.values()):,}{unit}" for name, kinds in models.items()
        ]
        told.append(f"{method}: {', '.join(parts)}.")
    return " ".join(told)
