"""A sentence for who cannot see a plot: what it shows, read off the plot itself.

The sentence is stored with each picture as its alternative text, where nbconvert and
the website find it. `describe(figure, ...)` sets one by hand for a drawing.
"""

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

MOST = 8  # lines or bars that are told one by one


def describe(figure: Figure, text: str) -> None:
    """Set the alternative text of a figure that its axes do not tell."""
    figure.alternative_text = text


def alternative_text(figure: Figure) -> str:
    """The text that was set, or what the axes hold."""
    given = getattr(figure, "alternative_text", "")
    told = [given] if given else [of(ax) for ax in figure.axes]
    return " ".join(filter(None, told)) or "A drawing without axes."


def of(ax: Axes) -> str:
    """What one set of axes shows, in a sentence or two."""
    if not ax.axison and not ax.get_title():
        return ""
    parts = [*pictures(ax), *bars(ax), *lines(ax)]
    what = "; ".join(parts) or ("points" if ax.collections else "empty axes")
    return f"{heading(ax)}: {what}."


def heading(ax: Axes) -> str:
    """Title and axis labels."""
    title, x, y = (plain(t) for t in (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()))
    if not ax.get_ylabel():
        y = ""
    of_axes = f"{y} against {x}" if x and y else x or y
    return ", ".join(part for part in (title, of_axes) if part) or "Plot"


def lines(ax: Axes) -> list[str]:
    """Each named line with its first and last value."""
    named = [line for line in ax.lines if len(line.get_xdata()) > 1]
    told = [line for line in named if not line.get_label().startswith("_")]
    if bars(ax):
        return []  # then the lines are the seeds beside a bar
    told = told or named
    found = [line_words(line, alone=len(told) == 1) for line in told[:MOST]]
    bands = len(ax.collections) >= len(found) > 0
    return found + (["a band around each"] if bands else [])


def line_words(line, alone: bool) -> str:
    """One line: its name, where it begins and ends."""
    values = [float(value) for value in line.get_ydata()]
    label = line.get_label()
    name = "a line" if alone or label.startswith("_") else plain(label)
    return f"{name} from {number(values[0])} to {number(values[-1])}"


def bars(ax: Axes) -> list[str]:
    """Each bar, with the name that stands at its foot."""
    groups = [c for c in ax.containers if isinstance(c, BarContainer)]
    patches = [patch for group in groups for patch in group.patches]
    if not patches:
        return []
    if any(len(group.patches) > 1 for group in groups) and len(groups) > 1:
        return [group_words(group) for group in groups]
    lying = len({round(patch.get_height(), 6) for patch in patches}) == 1 and (
        len({round(patch.get_width(), 6) for patch in patches}) > 1 or len(patches) == 1
    )
    axis = ax.get_yticklabels() if lying else ax.get_xticklabels()
    names = [plain(label.get_text()) for label in axis]
    values = [p.get_width() if lying else p.get_height() for p in patches]
    pairs = zip(names or [""] * len(values), values, strict=False)
    told = [f"{name or 'bar'} {number(value)}" for name, value in pairs][:MOST]
    more = len(values) - len(told)
    return ["bars: " + ", ".join(told) + (f" and {more} more" if more > 0 else "")]


def group_words(group: BarContainer) -> str:
    """The heights of one of several groups of bars."""
    heights = ", ".join(number(patch.get_height()) for patch in group.patches[:MOST])
    return f"{plain(group.get_label())} bars: {heights}"


def number(value: float) -> str:
    """Three figures; what rounding left of a zero is a zero."""
    return f"{0.0 if abs(value) < 1e-9 else value:.3g}"


def pictures(ax: Axes) -> list[str]:
    """A table of colours, with its size and range."""
    return [
        f"a table of {image.get_array().shape[0]} rows and "
        f"{image.get_array().shape[1]} columns, values from "
        f"{image.get_array().min():.3g} to {image.get_array().max():.3g}"
        for image in ax.images
    ]


def plain(text: str) -> str:
    """A label without mathematics and line breaks."""
    return " ".join(text.replace("$", "").replace("\\", "").split())
