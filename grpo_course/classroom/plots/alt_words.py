"""The words of an alternative text: numbers, ranges and labels as one says them."""

import re

import numpy as np


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
