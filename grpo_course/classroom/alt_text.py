"""A sentence for readers who cannot see a plot, stored with it as alternative text.

It is read off the plot: titles, labels, and where lines, bars and tables begin and end.
For a drawing, whose axes say nothing, `describe(figure, ...)` sets it.
"""

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure, SubFigure

MOST = 8  # lines or bars that are told one by one


def describe(figure: Figure | SubFigure, text: str) -> None:
    """Set the alternative text of a drawing, whose axes say nothing."""
    figure.set_label(text)  # matplotlib gives a figure none, and draws it nowhere


def alternative_text(figure: Figure) -> str:
    """The text that was set, or what the axes hold."""
    if described := str(figure.get_label()):
        return described
    sentences = [of(ax) for ax in figure.axes if ax.axison or ax.get_title()]
    return " ".join(sentences) or "A drawing without axes."


def of(ax: Axes) -> str:
    """What one set of axes shows."""
    title, x, y = (plain(t) for t in (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()))
    of_axes = f"{y} against {x}" if x and y else x or y
    heading = ", ".join(filter(None, (title, of_axes))) or "Plot"
    # Lines and points on bars are the seeds beside a bar: bars alone are told.
    parts = [*tables(ax), *(bars(ax) or [*lines(ax), *clouds(ax)])]
    parts = parts or [plain(text.get_text()) for text in ax.texts if text.get_text()]
    more = [f"{len(parts) - MOST} more"] if len(parts) > MOST else []
    return f"{heading}: {'; '.join([*parts[:MOST], *more]) or 'empty axes'}."


def lines(ax: Axes) -> list[str]:
    """Each line, or each that has a name, with its first and last value."""
    drawn = [line for line in ax.lines if line.get_transform() == ax.transData]
    named = [line for line in drawn if label(line)] or drawn
    found = []
    for line in named:
        points = floats(line.get_xydata())
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) > 1:
            name = label(line) if len(named) > 1 else ""
            ends = f"from {number(points[0, 1])} to {number(points[-1, 1])}"
            dots = line.get_linestyle() in ("None", " ", "")
            ends = f"{len(points)} points, y {span(points[:, 1])}" if dots else ends
            found.append(f"{name or ('dots:' if dots else 'a line')} {ends}")
    return found


def clouds(ax: Axes) -> list[str]:
    """Each cloud of points."""
    found = [c for c in ax.collections if isinstance(c, PathCollection)]
    spots = [(label(c), floats(c.get_offsets())) for c in found]
    return [
        f"{name or 'dots'}: {len(at)} points, x {span(at[:, 0])}, y {span(at[:, 1])}"
        for name, at in spots
        if len(at)
    ]


def bars(ax: Axes) -> list[str]:
    """Bars with the names at their feet; of several groups the heights in order."""
    groups = [c for c in ax.containers if isinstance(c, BarContainer) and c.patches]
    if not groups:
        return []
    lying = groups[0].orientation == "horizontal"
    sizes = [
        [p.get_width() if lying else p.get_height() for p in g.patches] for g in groups
    ]
    if len(groups) > 1 and max(map(len, sizes)) > 1:
        heights = [", ".join(map(number, each[:MOST])) for each in sizes]
        pairs = zip(groups, heights, strict=True)
        return [f"{label(group)} bars: {each}".lstrip() for group, each in pairs]
    axis = ax.yaxis if lying else ax.xaxis
    texts = [plain(tick.get_text()) for tick in axis.get_ticklabels()]
    names = dict(zip(np.round(axis.get_ticklocs(), 6), texts, strict=False))
    feet = [p.get_center()[1 if lying else 0] for g in groups for p in g.patches]
    values = [size for each in sizes for size in each]
    named = list(zip(feet, values, strict=True))[:MOST]
    heights = [
        f"{names.get(round(f, 6)) or number(f)} at {number(v)}" for f, v in named
    ]
    return [f"bars: {', '.join(heights)}" + (" and more" if len(feet) > MOST else "")]


def tables(ax: Axes) -> list[str]:
    """A table of colours: of a small one all numbers, else its size and range."""
    found = []
    for table in (floats(image.get_array()) for image in ax.images):
        rows = [", ".join(f"{value:.2f}" for value in row) for row in table]
        size = f"a table of {len(table)} rows and {table.shape[1]} columns"
        small = table.size <= 25
        found.append(f"{size}, {'; '.join(rows) if small else span(table)}")
    return found


def label(thing: object) -> str:
    """The name in the legend; empty for one that matplotlib made up."""
    name = str(thing.get_label())  # type: ignore[attr-defined]
    return "" if name.startswith("_") else plain(name)


def floats(values: object) -> np.ndarray:
    """Numbers that may be masked, as NaN where they are."""
    return np.ma.asarray(values, dtype=float).filled(np.nan)


def span(values: np.ndarray) -> str:
    """The range of numbers."""
    return f"from {number(np.nanmin(values))} to {number(np.nanmax(values))}"


def number(value: float) -> str:
    """Three figures; what rounding left of a zero is a zero."""
    return f"{0.0 if abs(value) < 1e-9 else value:.3g}"


def plain(text: str) -> str:
    """A label without mathematics and line breaks: `10^{-4}` is 10 to the -4."""

    def spoken(found: re.Match) -> str:
        bare = re.sub(r"\\(math\w+|text|var|,)|[{}]|\\", "", found[1])
        return bare.replace("_", " ").replace("^", " to the ")

    words = re.sub(r"\$([^$]*)\$", spoken, text)
    return " ".join(words.replace("\N{MINUS SIGN}", "-").split())
