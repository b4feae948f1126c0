"""What notebook 17 alone draws."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, cells, finish, frame
from grpo_course.lessons.judges import FAMILIES, NAMES


def plot_together(correlations: Tensor, panel: Sequence[str]) -> Axes:
    """Who errs with whom: a panel, framed, then family by family. [judge judge]"""
    order = [NAMES.index(name) for name in dict.fromkeys([*panel, *"".join(FAMILIES)])]
    names = [NAMES[judge] for judge in order]
    ax = axes_row(width=6.4, height=4.6)[0]
    of_pairs = correlations[order][:, order]
    finish(ax, "framed: your panel", "", "Correlation of the errors of two judges")
    cells(ax, of_pairs.round(decimals=1) + 0.0, "{:.1f}", size=8, aspect="equal")
    middle = (len(panel) - 1) / 2
    frame(ax, middle, middle, size=len(panel))
    ax.set(xticks=range(len(names)), yticks=range(len(names)))
    ax.set(xticklabels=names, yticklabels=names)
    return ax
