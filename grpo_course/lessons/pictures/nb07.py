"""What notebook 07 alone draws."""

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    FAINT,
    LINED,
    PI,
    PI_OLD,
    SIGNS,
    axes_row,
    cells,
    draw_arrow,
    draw_fan,
    draw_group,
    finish,
    legend_above,
    legend_outside,
    plot_bands,
    write,
)
from grpo_course.formulas import EPSILON
from grpo_course.lessons.pictures.shared import CORNERS, name_corners
from grpo_course.loop import History

# Column of a history -> title of its small plot.
PANEL = {
    "mean_reward": "mean reward",
    "gradient_norm": "gradient norm",
    "tied_groups": "tied groups (share)",
    "sampled_entropy": "entropy (nats a token)",
    "clip_fraction": "clipped tokens (share)",
    "kl": "KL to the reference (nats)",
    "loss": "loss",
}


def plot_panel(runs: dict[str, History], names: Sequence[str]) -> list[Axes]:
    """A small plot for each column of PANEL that is named; a point is an epoch's mean.

    Each run is a line with its band over the seeds; of more than two, the line alone.
    """

    def measure(run: History, name: str) -> Tensor:  # [epoch seed]
        if name == "clip_fraction":
            low, high = (measure(run, f"{name}_{side}") for side in ("low", "high"))
            return low + high
        steps = [r for r in run.records if "step" in r and name in r]
        epochs = groupby(steps, itemgetter("epoch"))
        means = [History(list(each)).curve(name).mean(dim=0) for _, each in epochs]
        return torch.stack(means)

    size = (2.75 * len(names), 2.7)
    figure, grid = plt.subplots(1, len(names), figsize=size, layout="constrained")
    for ax, name in zip(grid, names):
        curves = {label: measure(run, name) for label, run in runs.items()}
        if len(runs) > 2:  # bands would hide each other in a plot so small
            curves = {k: curve.mean(-1, keepdim=True) for k, curve in curves.items()}
        plot_bands(curves, "", "", PANEL[name], ax=ax)
        if legend := ax.get_legend():
            legend.remove()  # one for the whole panel instead
        ax.set_title(PANEL[name], pad=6)
        if name == "loss":
            ax.axhline(0, color=FAINT, lw=1, zorder=1)
        if name in ("tied_groups", "clip_fraction"):
            ax.set_ylim(-0.05, 1.05)
        elif max(curve.max() - curve.min() for curve in curves.values()) < 1e-5:
            ax.set(ylim=(-0.1, 0.1), yticks=(-0.1, 0, 0.1))  # no zooming in on rounding
    figure.supxlabel("epoch")
    if len(runs) > 1:
        legend_outside(grid)
    return list(grid)


def plot_two_steps(runs: Mapping[str, History], count: int = 12) -> list[Axes]:
    """The loss of runs with two inner steps on each rollout: of the first ones, of all.

    A filled dot is the loss before the first step, a hollow one that after it; of all
    rollouts the former alone is drawn.
    """
    ax, right = axes_row(2, width=11.0, height=4.0)
    starts = {name: run.epochs("loss") for name, run in runs.items()}
    plot_bands(starts, "", "rollout, all of them", ax=right).legend().remove()
    right.set_title("before the first step alone", pad=6)
    curves = {name: run.curve("loss")[: 2 * count] for name, run in runs.items()}
    places = (torch.arange(2 * count) / 2).tolist()
    plot_bands(curves, "loss", f"rollout, the first {count}", x=places, ax=ax)
    marks: dict[str, Any] = {"ls": "", "ms": 6, "zorder": 3}
    for curve, colour in zip(curves.values(), COLOURS, strict=False):
        for step, fill in enumerate((colour, "white")):
            dots = curve[step::2].mean(dim=-1)
            ax.plot(places[step::2], dots, "o", color=colour, mfc=fill, **marks)
    for fill, label in (("black", "before the first step"), ("white", "after it")):
        ax.plot([], [], "o", color="black", mfc=fill, label=label, **marks)
    told = [
        f"{name}, before a rollout's first step from {curve[0].mean():.3f} to "
        f"{curve[-2].mean():.3f} and at last {starts[name][-1].mean():.3f}, after it "
        f"from {curve[1].mean():.3f} to {curve[-1].mean():.3f}"
        for name, curve in curves.items()
    ]
    describe(ax.figure, f"The loss over {count} rollouts: {'; '.join(told)}.")
    legend_above(ax)
    plt.tight_layout()
    return [ax, right]


# What a row of `plot_logs` shows: title, columns of the log, each with its inner step.
LOGGED = (
    ("loss", (("loss", 0), ("loss", 3))),
    ("mean reward\n(of 3 points)", (("mean_reward", 0),)),
    ("gradient norm", (("gradient_norm", 0),)),
    ("ratios, step 3\n(grey: clip range)", (("ratio_min", 3), ("ratio_max", 3))),
    ("tied groups\n(share)", (("tied_groups", 0),)),
    ("entropy\n(nats a token)", (("sampled_entropy", 0),)),
)
# How the two columns of a small plot look, and in the first row their names' height.
LOOKS = {
    "loss": (
        ({"color": PI_OLD, "lw": 5}, "step 0", 0.06),
        ({"color": PI, "lw": 2}, "step 3", -0.06),
    ),
    "ratios": (
        ({"color": PI, "lw": 2}, "smallest", 0.125),
        ({"color": PI, "lw": 2, "ls": "--"}, "largest", 5.0),
    ),
}


def plot_logs(logs: Mapping[str, History]) -> list[Axes]:
    """A row for each run, a column for each number that its log holds, over epochs.

    Means over the seeds, but of the ratios the extremes; all rows of a column share
    their scale.
    """
    size = (2.0 * len(LOGGED), 1.15 * len(logs) + 0.9)
    shape = len(logs), len(LOGGED)
    figure, grid = plt.subplots(
        *shape, sharex=True, sharey="col", figsize=size, layout="constrained"
    )
    told = []
    for row, (letter, log) in zip(grid, logs.items(), strict=True):
        frame = log.frame()
        for ax, (title, columns) in zip(row, LOGGED, strict=True):
            kind, first = title.split(",")[0], ax.get_subplotspec().is_first_row()
            looks = LOOKS.get(kind, (({"color": PI, "lw": 2}, "", 0.0),))
            for (name, step), (look, beside, height) in zip(columns, looks):
                curve = frame.xs(step, level="step")[name]
                if kind == "ratios":
                    curve = curve.clip(0.1, 10)  # a bad run leaves every scale
                ax.plot(curve, **look)
                if first:
                    place = {"color": look["color"], "ha": "right", "va": "center"}
                    ax.text(curve.index[-1], height, beside, **place)
            if kind == "loss":
                ax.set_ylim(-0.1, 0.2)  # no zooming in on rounding
            elif kind == "ratios":
                ax.axhspan(1 - EPSILON, 1 + EPSILON, **CLIP)
                ax.set(yscale="log", ylim=(0.08, 12.5))
                ax.set_yticks([0.1, 1, 10], ["≤0.1", "1", "≥10"])
                ax.minorticks_off()
            elif kind.startswith("mean reward"):
                ax.set_yticks([0, 1.5, 3])
            if first:
                ax.set_title(title, fontsize=11)
        row[0].set_ylabel(letter, rotation=0, weight="bold", labelpad=12, va="center")
        ends = frame.mean_reward.iloc[[0, -1]].tolist()
        told.append(f"{letter}, reward from {ends[0]:.2f} to {ends[1]:.2f}")
    figure.supxlabel("epoch")
    describe(figure, f"Seven numbers of six logs over the epochs: {'; '.join(told)}.")
    return list(grid.flat)


ZOOM = 2.0  # of all pushes alike: the picture tells directions, not lengths


def plot_pushes(
    probs: Tensor, rewards: Tensor, drawn: Tensor, deltas: Tensor, pushes: Tensor
) -> list[Axes]:
    """The deltas of a group with their sum; its pushes tip to tail, with theirs.

    A push sums to zero over the three answers, so a plane holds all of it.
    probs, rewards [answer]; drawn (which answer), deltas [trial]; pushes [trial answer]
    """
    left, right = axes_row(2, width=10.0, height=4.3)
    names = ["ABC"[answer] for answer in drawn.tolist()]
    rows = [f"answer {n}, $R$ = {reward:g}" for n, reward in zip(names, rewards[drawn])]
    reach, arrows = 1.6 * deltas.abs().max().item(), [*deltas, deltas.sum()]
    left.set_xlim(-reach, reach)
    draw_group(left, torch.stack(arrows), [*rows, "sum"], r"delta $\delta$", True)
    left.axhline(len(drawn) - 0.5, color="black", lw=1)
    left.set_title(f"the deltas add up to {deltas.sum() + 0.0:g}")
    for corner in CORNERS:  # where a push to this answer leads
        right.plot(*torch.stack([probs @ CORNERS, corner]).T, color=FAINT, lw=1)
    stops = (torch.cat([probs[None], ZOOM * pushes]).cumsum(dim=0) @ CORNERS).tolist()
    for ((x, y), head), delta, name in zip(pairwise(stops), deltas.tolist(), names):
        draw_arrow(right, (x, y), head, delta, 3.0)
        across, up = head[0] - x, head[1] - y
        word = f"to {name}" if delta > 0 else f"away from {name}"
        beside = x + across / 2 + 0.3 * up + 0.02, y + up / 2 - 0.3 * across
        right.text(*beside, word, va="center", path_effects=LINED)
    (x, y), (end, top) = stops[0], stops[-1]
    whole = torch.tensor([[end - x, top - y]])
    draw_fan(right, whole, "black", 0.012, foot=(x, y), zorder=3)
    beside = (x + end) / 2 - 0.04, (y + top) / 2
    right.text(*beside, "sum:\n" + r"$-\nabla L$", ha="right", va="center")
    right.plot(x, y, "o", color=PI, ms=9, mec="white", zorder=4)
    right.set(xlim=(-0.12, 1.12), ylim=(-0.1, 0.98), aspect="equal")
    right.axis("off")
    corners = [f"answer {n}, $R$ = {reward:g}" for n, reward in zip("ABC", rewards)]
    name_corners(right, corners)
    right.set_title("the pushes, end to end, do not\n(drawn twice as long)")
    told = ", ".join(f"{n} {push:+.3g}" for n, push in zip("ABC", pushes.sum(dim=0)))
    describe(right.figure, f"Deltas add up to {deltas.sum():g}, the pushes to {told}.")
    plt.tight_layout()
    return [left, right]


def plot_gradients(gradient: Tensor, deltas: Tensor, mask: Tensor) -> Axes:
    """A cell for each token: green where a step down the loss makes it likelier.

    [batch trial pos], [batch trial], bool [batch trial pos]
    """
    ax = axes_row(width=7.5, height=4.0)[0]
    values = gradient.masked_fill(~mask, torch.nan).flatten(0, 1)
    most = 1.3 * gradient.abs().max().item()  # full colours would drown the numbers
    cells(ax, values, "{:+.3f}", cmap=SIGNS.reversed(), limits=(-most, most))
    ax.set_yticks(range(len(values)), [f"δ {delta:+.2f}" for delta in deltas.flatten()])
    ax.axhline(deltas.shape[1] - 0.5, color="black", lw=2)  # between two groups
    for row, name in ((1.5, "first group"), (5.5, "second group")):
        write(ax, name, -0.5, row, (-85, 0), rotation=90)
    title = r"derivative of the loss by the $\log \pi$ of each token"
    finish(ax, "token", "", title).grid(visible=False)
    return ax


def plot_changes(
    changes: Mapping[str, tuple[float, Tensor]], deltas: Tensor
) -> list[Axes]:
    """Loss and gradient [batch trial pos] of one batch under each of six changes.

    An arrow adds up the gradients of a response's tokens, times minus the number of
    responses. With the sequence mean at ratio 1 it is the delta, here a black mark.
    """
    # Columns as wide as what they show is long: all arrows have one scale.
    columns: dict[str, Any] = {"width_ratios": (10.3, 7.5, 7.5), "sharey": True}
    figure, grid = plt.subplots(2, 3, figsize=(11, 7), layout="constrained", **columns)
    rows = [f"δ {delta:+.2f}" for delta in deltas.flatten()]
    told = []
    for ax, (name, (loss, gradient)) in zip(grid.flat, changes.items(), strict=True):
        arrows = -deltas.numel() * gradient.sum(dim=-1).flatten()
        ax.set_xlim(-3, 7.3 if ax in grid[:, 0] else 4.5)
        every = torch.cat([arrows, arrows.mean(dim=0, keepdim=True)])
        draw_group(ax, every, [*rows, "mean"], "", signed=True)
        ax.plot(deltas.flatten(), torch.arange(len(rows)) - 0.39, "kv", ms=5)
        ax.axhline(len(rows) - 0.5, color="black", lw=1)
        ax.set_title(f"{name}: loss {round(loss, 3) + 0.0:.3f}")
        told.append(f"{name} {loss:.3f}, mean arrow {arrows.mean():.3f}")
    figure.supxlabel(r"gradients of a response's tokens, added up, times $-N$")
    describe(figure, f"The loss and the mean arrow of each: {'; '.join(told)}.")
    return list(grid.flat)
