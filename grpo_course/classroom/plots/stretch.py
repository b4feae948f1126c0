"""What a mode makes of two gradients: two lengths around the line of equals."""

from collections.abc import Mapping
from operator import sub
from typing import Any

from matplotlib.axes import Axes

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import LINED
from grpo_course.classroom.plots.palette import GROUND, PI

KEPT = 0.999  # a cosine from which on a direction counts as kept
SAME = 0.045  # points that are nearer than this share a dot


def plot_stretch(
    points: Mapping[str, tuple[float, float, float]], xlabel: str, ylabel: str
) -> Axes:
    """How much longer each way makes two gradients, around the line of equals.

    A point is (across, up, cosine of both together with the exact ones). Where that
    direction is bent the dot is hollow, and the cosine stands beside it. A cross marks
    the exact gradients, whose lengths are the unit.
    """
    ax = axes_row(width=6.4, height=4.6)[0]
    ax.axline((0, 0), slope=1, color="grey", ls="--", lw=1.2, zorder=1)
    ax.plot(1, 1, "+", ms=22, mew=1.5, color="black", zorder=1)
    aside: dict[str, Any] = {"textcoords": "offset points", "ha": "right"}
    ax.annotate("exact", (1, 1), (-12, 12), **aside)
    for (x, y, cosine), names in together(points).items():
        bent = cosine < KEPT
        ax.plot(x, y, "o", ms=10, mec=PI, mew=2, mfc=GROUND if bent else PI)
        told = ", ".join(names) + (f" (cosine {cosine:.2f})" if bent else "")
        note = ax.annotate(told, (x, y), (10, -4), textcoords="offset points")
        note.set_path_effects([*LINED])  # the line of equals does not cross the name
    most = 1.1 * max(y for _, y, _ in points.values())
    ax.set(xlim=(0, 1.25 * most), ylim=(-0.04 * most, most), aspect="equal")
    listed = [f"{k} {x:.2f}, {y:.2f}" for k, (x, y, _) in points.items()]
    text = f"Dots by {xlabel} and {ylabel}, around the diagonal; exact is 1, 1"
    describe(ax.figure, f"{text}: {'; '.join(listed)}.")
    return finish(ax, xlabel, ylabel)


def together(
    points: Mapping[str, tuple[float, float, float]],
) -> dict[tuple[float, float, float], list[str]]:
    """The names at each place; places that look the same are one, the first."""
    found: dict[tuple[float, float, float], list[str]] = {}
    for name, place in points.items():
        same = (p for p in found if max(map(abs, map(sub, p, place))) < SAME)
        found.setdefault(next(same, place), []).append(name)
    return found
