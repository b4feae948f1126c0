"""What notebook 13 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    FAINT,
    LINES,
    PI,
    axes_row,
    finish,
    legend_above,
    legend_below,
    plot_seeds,
)
from grpo_course.loop import mean_and_error


def plot_ratios(ratio: Tensor, is_one: Tensor) -> Axes:
    """How far the tokens of good responses have moved, ones and others; log axes.

    `ratio` and `is_one` are [response pos]; the clip range is a grey band.
    """
    ax = axes_row(height=2.9)[0]
    edges = torch.logspace(-1, 1, 41, base=4.0)  # ratios of 1/4 to 4
    kinds = {"ones": (is_one, PI), "other tokens": (~is_one, FAINT)}
    parts = [ratio[kind].clamp(0.26, 3.9) for kind, _ in kinds.values()]
    ax.hist(
        [part.numpy() for part in parts],
        bins=edges.tolist(),
        stacked=True,
        color=[colour for _, colour in kinds.values()],
        label=list(kinds),
    )
    ax.axvspan(0.8, 1.2, **CLIP)
    ax.set_xscale("log", base=2)
    ax.set_xticks([0.25, 0.5, 0.8, 1.2, 2, 4], ["0.25", "0.5", "0.8", "1.2", "2", "4"])
    top: dict[str, Any] = {
        "ha": "center",
        "va": "top",
        "transform": ax.get_xaxis_transform(),
    }
    ax.text(0.45, 0.97, "the clip still pushes\nthese up", **top)
    ax.text(2.3, 0.97, "the clip has\ndropped these", **top)
    finish(ax, "ratio after three steps", "tokens of good responses")
    return legend_above(ax)


def plot_rising(chances: Mapping[float, Mapping[str, Tensor]]) -> list[Axes]:
    """The mean probability of a rare token by rollout, a panel a rate; log axis.

    chances[rate][loss] is [rollout seed].
    """
    axes = axes_row(len(chances), width=9.0, height=3.2)
    for ax, (rate, arms) in zip(axes, chances.items(), strict=True):
        for row, (name, chance) in enumerate(arms.items()):
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(chance.mean(dim=-1), label=name, **look)
        ax.set(yscale="log", ylim=(0.008, 1.2))
        ax.set_xticks(range(0, 20, 5))
        ylabel = "chance of the rare token" if ax is axes[0] else ""
        finish(ax, "rollout", ylabel, f"rate {rate:g}")
    legend_below(axes)
    return axes


def plot_writers(
    reached: Mapping[str, Mapping[str, Tensor]],
    itself: Tensor,
) -> list[Axes]:
    """The reward of each way to learn from another writer, a panel a writer.

    reached[writer][way] and `itself`, of a policy that writes its own responses, are
    [seed].
    """
    axes = axes_row(len(reached), width=9.5, height=2.9)
    for ax, (writer, ways) in zip(axes, reached.items(), strict=True):
        plot_seeds(dict(ways), "reward on all prompts", ax)
        ax.axvline(
            itself.mean().item(),
            color="black",
            ls=":",
            label="written by the policy itself",
        )
        ax.set(xlim=(0, 0.72), title=f"responses {writer}")
        if ax is not axes[0]:
            ax.set_yticklabels([])
    legend_below(axes)
    return axes


def plot_tasks(
    results: Mapping[str, Mapping[str, Sequence[Tensor]]], rates: Sequence[float]
) -> list[Axes]:
    """The reward of each variant by rate, a panel a task; bars hold one error.

    results[task][variant] has one [seed] for each rate; rates are evenly spaced.
    """
    axes = axes_row(len(results), width=9.0, height=3.4)
    for ax, (task, variants) in zip(axes, results.items(), strict=True):
        for row, (name, rewards) in enumerate(variants.items()):
            means, errors = zip(*map(mean_and_error, rewards), strict=True)
            spots = [place + 0.05 * (row - 2) for place in range(len(rates))]
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(spots, means, marker="o", ms=4, label=name, **look)
            ax.errorbar(spots, means, errors, ls="", ecolor=COLOURS[row])
        ax.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        finish(ax, "learning rate", "reward", task)
    legend_below(axes)
    return axes
