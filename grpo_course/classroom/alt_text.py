"""A sentence for readers who cannot see a plot: what it shows, read off the plot.

The sentence is stored with each picture as its alternative text, where nbconvert and
the website find it. `describe(figure, ...)` sets one by hand for a drawing.
"""

import re

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.container import BarContainer
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

MOST = 8  # lines or bars that are described one by one
INNER = 0.1  # a bend is mentioned if it leaves the ends by this share of the axis
ROUNDING = 1e-6  # values differ by less from processor to processor


def describe(figure: Figure | SubFigure, text: str) -> None:
    """Set the alternative text of a drawing, whose axes say nothing."""
    figure.set_label(text)  # matplotlib gives a figure none, and draws it nowhere


def alternative_text(figure: Figure) -> str:
    """The text that was set, or what the axes hold."""
    if given := str(figure.get_label()):
        return given
    told = [of(ax) for ax in figure.axes]
    return " ".join(filter(None, told)) or "A drawing without axes."


def of(ax: Axes) -> str:
    """What one set of axes shows, in a sentence or two."""
    if not ax.axison and not ax.get_title():
        return ""
    # Lines and points on bars are the seeds beside a bar: bars alone are described.
    parts = [*pictures(ax), *(bars(ax) or [*lines(ax), *scatters(ax)])]
    return f"{heading(ax)}: {'; '.join(parts) or 'empty axes'}."


def heading(ax: Axes) -> str:
    """Title and axis labels."""
    title, x, y = (plain(t) for t in (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()))
    of_axes = f"{y} against {x}" if x and y else x or y
    return ", ".join(part for part in (title, of_axes) if part) or "Plot"


def lines(ax: Axes) -> list[str]:
    """Each named line with its first and last value; how many have a band."""
    drawn = [(line, points) for line in ax.lines if len(points := places(line, ax)) > 1]
    told = [(line, points) for line, points in drawn if label(line)] or drawn
    found = []
    for line, points in told[:MOST]:
        name = label(line) if len(told) > 1 else ""
        if line.get_linestyle() in ("None", " ", ""):
            found.append((f"{name}: " if name else "") + points_words(points, ax))
        else:
            found.append(f"{name or 'a line'} {line_words(points, ax)}")
    more = [f"{len(told) - MOST} more lines"] if len(told) > MOST else []
    return found + more + bands(ax, len(told))


def label(thing: Artist | BarContainer) -> str:
    """The name in the legend; empty for one that matplotlib made up."""
    name = str(thing.get_label())
    return "" if name.startswith("_") else plain(name)


def places(line: Line2D, ax: Axes) -> np.ndarray:
    """The finite points of a line, [point 2]; none of an `axhline` and the like."""
    if line.get_transform() != ax.transData:
        return np.empty((0, 2))
    return finite(line.get_xydata())


def finite(points: ArrayLike) -> np.ndarray:
    """The rows without a NaN or an infinity."""
    rows = floats(points)
    return rows[np.isfinite(rows).all(axis=1)]


def floats(values: ArrayLike | None) -> np.ndarray:
    """Numbers that may be masked, as NaN where they are."""
    return np.ma.asarray(values, dtype=float).filled(np.nan)


def line_words(points: np.ndarray, ax: Axes) -> str:
    """Where a line begins and ends, and an extreme that lies outside both."""
    x, y = points.T
    ends = y[0], y[-1]
    slack = INNER * np.ptp(ax.get_ylim()) + 1e-9  # a flat line has rounding alone
    words = f"from {number(y[0])} to {number(y[-1])}"
    if y.min() < min(ends) - slack:
        words += f", lowest {number(y.min())} at {number(x[y.argmin()])}"
    if y.max() > max(ends) + slack:
        words += f", highest {number(y.max())} at {number(x[y.argmax()])}"
    return words


def points_words(points: np.ndarray, ax: Axes) -> str:
    """How many points there are and where; points of one row bear its name."""
    x, y = points.T
    across = f"{len(points)} points, x {span(x)}"
    name = tick_names(ax.yaxis).get(round(y[0], 6))
    level = np.ptp(y) < ROUNDING
    return f"{name}: {across}" if name and level else f"{across}, y {span(y)}"


def scatters(ax: Axes) -> list[str]:
    """Each cloud of points."""
    clouds = [c for c in ax.collections if isinstance(c, PathCollection)]
    found = [(label(c), finite(c.get_offsets())) for c in clouds]
    return [
        (f"{name}: " if name else "") + points_words(points, ax)
        for name, points in found
        if len(points)
    ]


def bands(ax: Axes, num_lines: int) -> list[str]:
    """How many of the lines lie in a band that has a height."""
    fills = [c for c in ax.collections if isinstance(c, PolyCollection)]
    count = sum(map(has_height, fills))
    if not count or not num_lines:
        return []
    if count < num_lines:
        return [f"a band around {count} of {num_lines} lines"]
    return ["a band around it" if num_lines == 1 else "a band around each"]


def has_height(fill: PolyCollection) -> bool:
    """Whether a filled band is more than its line: some x has two heights."""
    corners = [finite(path.vertices).round(9) for path in fill.get_paths()]
    return any(
        len(np.unique(each, axis=0)) > len(np.unique(each[:, 0])) for each in corners
    )


def bars(ax: Axes) -> list[str]:
    """Each bar, with the name that stands at its foot."""
    groups = [c for c in ax.containers if isinstance(c, BarContainer)]
    patches = [patch for group in groups for patch in group.patches]
    if not patches:
        return []
    if any(len(group.patches) > 1 for group in groups) and len(groups) > 1:
        return [group_words(group) for group in groups]
    lying = groups[0].orientation == "horizontal"
    feet = [patch.get_center()[1 if lying else 0] for patch in patches]
    values = [p.get_width() if lying else p.get_height() for p in patches]
    names = tick_names(ax.yaxis if lying else ax.xaxis)
    told = [names.get(round(foot, 6), "") or number(foot) for foot in feet]
    if len(patches) > MOST and told == [number(foot) for foot in feet]:
        top = told[int(np.argmax(values))]
        return [f"{len(values)} bars {span(values)}, the highest at {top}"]
    pairs = zip(told, values, strict=True)
    words = ", ".join([f"{name} at {number(value)}" for name, value in pairs][:MOST])
    more = f" and {len(values) - MOST} more" if len(values) > MOST else ""
    return [f"bars: {words}{more}"]


def group_words(group: BarContainer) -> str:
    """The heights of one of several groups of bars."""
    heights = ", ".join(number(patch.get_height()) for patch in group.patches[:MOST])
    return f"{label(group)} bars: {heights}".lstrip()


def pictures(ax: Axes) -> list[str]:
    """A table of colours, with its size and range."""
    tables = [floats(image.get_array()) for image in ax.images]
    return [
        f"a table of {table.shape[0]} rows and {table.shape[1]} columns, "
        f"values {span(table)}"
        for table in tables
    ]


def span(values) -> str:
    """The range of numbers."""
    return f"from {number(np.nanmin(values))} to {number(np.nanmax(values))}"


def number(value: float) -> str:
    """Three figures; what rounding left of a zero is a zero."""
    return f"{0.0 if abs(value) < 1e-9 else value:.3g}"


def plain(text: str) -> str:
    """A label without mathematics and line breaks."""
    words = re.sub(r"\$([^$]*)\$", lambda found: spoken(found.group(1)), text)
    return " ".join(words.replace("\N{MINUS SIGN}", "-").split())


def spoken(formula: str) -> str:
    """The mathematics of matplotlib, as one says it: `10^{-4}` is 10 to the -4."""
    bare = re.sub(r"\\(math\w+|text|var)|[{}]|\\", "", formula)
    return bare.replace("_", " ").replace("^", " to the ")


def tick_names(axis) -> dict[float, str]:
    """What is written at which place of an axis."""
    texts = [plain(label.get_text()) for label in axis.get_ticklabels()]
    spots = [round(float(spot), 6) for spot in axis.get_ticklocs()]
    return dict(zip(spots, texts, strict=False))
