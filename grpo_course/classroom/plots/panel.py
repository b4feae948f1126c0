"""The panel: what to look at while the loss says nothing."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.checks import unknown_name
from grpo_course.classroom.plots import plot_bands
from grpo_course.loop import History

# Column of a history -> title of its small plot, in the order to read them in.
PANEL = {
    "mean_reward": "mean reward",
    "gradient_norm": "gradient norm",
    "tied_groups": "tied groups (share)",
    "sampled_entropy": "entropy (nats a token)",
    "clip_fraction": "clipped tokens (share)",
    "kl": "KL to the reference (nats)",
    "mean_length": "length (tokens)",
    "loss": "loss",
}
# Why groups are tied, in a task of texts: drawn where they are asked for by name, and
# beside the share of all tied groups where a panel is of one run.
TIES = {
    "tied_right": "tied, all right (share)",
    "tied_wrong": "tied, all wrong (share)",
}
TITLES = PANEL | TIES
SHARES = {"tied_groups", "clip_fraction", *TIES}
ROUNDING = 1e-5  # a measure that varies by less is drawn as flat
COLUMNS = 4
WIDTH, ROW_HEIGHT = 11.0, 2.3  # inches; two rows and the legend fit a slide


def plot_panel(
    runs: dict[str, History], names: Sequence[str] = tuple(PANEL)
) -> list[Axes]:
    """A small plot for each measure; each run is a line with its band over the seeds.
    With more than two runs, their lines alone are drawn.

    A measure that no run recorded is left out. Names are those of TITLES. Where an
    epoch has several inner steps, a point is their mean. The tied groups of a single
    run are split by kind: all right, all wrong.

    Raises ValueError for an unknown name, and if there is nothing to draw.
    """
    for name in names:
        if name not in TITLES:
            raise unknown_name("names", name, TITLES)
    shown = [name for name in names if any(has(run, name) for run in runs.values())]
    if not shown:
        raise ValueError(
            f"names={tuple(names)}: none of the runs recorded any of them. The KL, "
            "for one, is recorded where kl_penalty is above 0."
        )
    axes = panel_axes(len(shown))
    for ax, name in zip(axes, shown, strict=True):
        draw_measure(ax, runs, name)
    legends = [ax.get_legend_handles_labels() for ax in axes]
    handles, labels = max(legends, key=lambda legend: len(legend[1]))
    figure = axes[0].figure
    figure.supxlabel("epoch")
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return axes


def panel_axes(count: int) -> list[Axes]:
    """`count` small axes in rows of four, with room for one legend above."""
    columns = min(count, COLUMNS)
    rows = -(-count // COLUMNS)
    size = (WIDTH * columns / COLUMNS, ROW_HEIGHT * rows + 0.4)
    _, grid = plt.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )
    for ax in grid.flat[count:]:
        ax.set_visible(False)
    return list(grid.flat[:count])


def draw_measure(ax: Axes, runs: dict[str, History], name: str) -> None:
    """One measure of all runs that recorded it."""
    # A run without the measure keeps its place, so that colours stay the same.
    curves = {label: curve_or_gap(run, name) for label, run in runs.items()}
    if name == "tied_groups" and len(runs) == 1:
        curves |= kinds_of_ties(*runs.values())
    # Bands or seeds of more than two runs would hide each other in a plot so small.
    shown = curves if len(runs) <= 2 else means(curves)
    plot_bands(shown, "", xlabel="", title=TITLES[name], ax=ax)
    if legend := ax.get_legend():
        legend.remove()  # one for the whole panel instead
    ax.set_title(TITLES[name], pad=6)
    if name in SHARES:
        ax.set_ylim(-0.05, 1.05)
    else:
        ax.set_ylim(*limits(list(curves.values()), list(shown.values())))


def means(curves: dict[str, Tensor]) -> dict[str, Tensor]:
    """The mean over the seeds, as one seed. [epoch seed] -> [epoch 1]"""
    return {label: curve.mean(dim=-1, keepdim=True) for label, curve in curves.items()}


def kinds_of_ties(run: History) -> dict[str, Tensor]:
    """Label -> the share of the groups that are tied for one reason."""
    labels = {kind: title.removesuffix(" (share)") for kind, title in TIES.items()}
    return {labels[kind]: measure(run, kind) for kind in TIES if has(run, kind)}


def limits(curves: list[Tensor], shown: list[Tensor]) -> tuple[float, float]:
    """The range of the bands, as far as it is drawn in.

    One seed's spike may leave it, or all else were flat.
    """
    bands = torch.cat([c.quantile(torch.tensor([0.1, 0.9]), -1) for c in curves], 1)
    drawn = torch.cat([curve.flatten() for curve in shown])
    bands, drawn = bands[bands.isfinite()], drawn[drawn.isfinite()]
    low = max(bands.min().item(), drawn.min().item())
    high = min(bands.max().item(), drawn.max().item())
    if high - low < ROUNDING:  # nothing happens: no zooming in on rounding errors
        return low - 0.1, high + 0.1
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def curve_or_gap(run: History, name: str) -> Tensor:
    """The measure epoch by epoch; not-a-number, which is not drawn, without it."""
    if has(run, name):
        return measure(run, name)
    return measure(run, "loss") * float("nan")


def measure(run: History, name: str) -> Tensor:
    """A column epoch by epoch, the mean over the inner steps. -> [epoch seed]"""
    if name == "clip_fraction":
        return measure(run, "clip_fraction_low") + measure(run, "clip_fraction_high")
    steps = [record for record in run.records if "step" in record]
    # One by one: with an early stop, epochs have different numbers of steps.
    epochs = [
        History(list(e)).curve(name) for _, e in groupby(steps, itemgetter("epoch"))
    ]
    return torch.stack([e.reshape(len(e), -1).float().mean(dim=0) for e in epochs])


def has(run: History, name: str) -> bool:
    """Whether a run recorded a measure."""
    column = "clip_fraction_low" if name == "clip_fraction" else name
    return any(column in record for record in run.records)
