"""How wrong an update is as a setting moves; what defects cost."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import COLOURS, axes_row, finish


def plot_sweep(
    setting: str,
    values: Sequence[float],
    errors: Tensor,
    title: str = "",
) -> Axes:
    """The error of an update at each value of a setting, a line a seed; [value seed].

    At 1 the update is as wrong as none.
    """
    ax = axes_row(width=6.0, height=3.0)[0]
    places = range(len(values))
    ax.plot(places, errors, color=COLOURS[5], lw=1)
    ax.plot(places, errors.mean(dim=1), "o-", color=COLOURS[0], label="mean of seeds")
    ax.axhline(1, color="grey", ls=":", label="as wrong as no update")
    ax.set_xticks(places, [f"{value:g}" for value in values])
    ax.set_ylim(bottom=0)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    return finish(ax, setting, "error of the update", title)


def plot_costs(costs: dict[str, tuple[float, float]], title: str = "") -> Axes:
    """Mean and standard error of what each costs, one row each, in the order given."""
    ax = axes_row(width=7.5, height=1.0 + 0.22 * len(costs))[0]
    means, errors = zip(*costs.values(), strict=True)
    rows = range(len(costs))
    doubled = [2 * error for error in errors]
    ax.errorbar(means, rows, xerr=doubled, fmt="o", color=COLOURS[0], ms=4, capsize=2)
    ax.axvline(0, color="grey", lw=1)
    ax.set_yticks(rows, list(costs), fontsize=8)
    ax.invert_yaxis()
    return finish(ax, "reward with it minus without (two standard errors)", "", title)
