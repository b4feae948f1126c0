"""The log of one run over the range of healthy runs."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from grpo_course.classroom.plots import COLOURS
from grpo_course.classroom.plots.alt_text import describe

Log = Sequence[dict[str, float]]
# Title of a small plot -> what it draws of the log.
PANEL = {
    "reward": ("reward",),
    "length (tokens)": ("length",),
    "entropy (nats a token)": ("entropy",),
    "KL (nats a token)": ("kl",),
    "ratio, lowest and highest": ("ratio_low", "ratio_high"),
    "clipped tokens (share)": ("clip_fraction",),
    "gradient norm": ("gradient_norm",),
    "learning rate": ("learning_rate",),
}
WIDE = 8.0  # a range this many times that of the healthy runs is drawn by powers of ten


def plot_log_panel(log: Log, healthy: Sequence[Log]) -> list[Axes]:
    """A small plot for each measure: the range of healthy runs, this run over it."""
    figure, grid = plt.subplots(2, 4, figsize=(11, 4.2), layout="constrained")
    for ax, title in zip(grid.flat, PANEL, strict=True):
        draw_measure(ax, log, healthy, title)
        ax.set_title(ax.get_title())
        ax.tick_params(labelsize=11)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.supxlabel("rollout")
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    describe(figure, words(log, healthy))
    return list(grid.flat)


def draw_measure(ax: Axes, log: Log, healthy: Sequence[Log], title: str) -> None:
    """One small plot: a band for the healthy runs, this run over it."""
    names = PANEL[title]
    for name in names:
        draw_range(ax, [[row[name] for row in run] for run in healthy])
        label = "this run" if name == names[0] else None
        curve = [row[name] for row in log]
        ax.plot(curve, color=COLOURS[1], lw=1.8, label=label)
    is_far = fit_scale(ax, log, healthy, names)
    ax.set_title(f"{title}, log scale" if is_far else title)
    ax.grid(alpha=0.3)


def draw_range(ax: Axes, curves: list[list[float]]) -> None:
    """A grey band from the lowest to the highest curve at each rollout."""
    if curves:
        low, high = (list(map(each, zip(*curves, strict=True))) for each in (min, max))
        drawn = ax.get_legend_handles_labels()[1]
        label = None if drawn else "from the lowest to the highest of the healthy runs"
        ax.fill_between(range(len(low)), low, high, color="0.8", lw=1.5, label=label)


def fit_scale(
    ax: Axes, log: Log, healthy: Sequence[Log], names: tuple[str, ...]
) -> bool:
    """Whether the run leaves the healthy range far behind; then powers of ten."""
    usual = [abs(row[name]) for run in healthy for row in run for name in names]
    here = [abs(row[name]) for row in log for name in names]
    is_far = bool(usual) and max(here) > WIDE * max(usual)
    if is_far:
        if min(usual + here) > 0:
            ax.set_yscale("log")
        else:  # a KL begins at zero
            ax.set_yscale("symlog", linthresh=max(usual))
    return is_far


def words(log: Log, healthy: Sequence[Log]) -> str:
    """The panel for readers who cannot see it: where each measure starts and ends."""
    told = []
    for names in PANEL.values():
        for name in names:
            ends = [f"{log[i][name]:.3g}" for i in (0, -1)]
            usual = [run[-1][name] for run in healthy] or [float("nan")]
            told.append(
                f"{name} goes from {ends[0]} to {ends[1]}, in healthy runs it ends "
                f"between {min(usual):.3g} and {max(usual):.3g}"
            )
    return f"The log of a run beside healthy ones: {'; '.join(told)}."
