"""What notebook 14 alone draws."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from torch import Tensor

from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    LINED,
    LINES,
    PI,
    UP,
    axes_grid,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    sign_colour,
    write,
)

LOST = 1e-3  # below such a solve rate, a prompt is lost
BAND = "k (band: 80 % of the seeds)"


def plot_weights(rates: Tensor, weights: Mapping[str, Tensor], laws: Tensor) -> Axes:
    """What a prompt weighs over its solve rate, a line a divisor; its law is dotted.

    rates [prompt], weights[divisor] [prompt], laws [divisor prompt]. On the axis of
    rates, p and 1 - p are mirror images.
    """
    ax = axes_row(width=7.5, height=3.6)[0]
    left = len(rates) // 9  # where the names stand
    for row, ((name, each), law) in enumerate(zip(weights.items(), laws, strict=True)):
        look: dict[str, Any] = {"color": COLOURS[row]}
        ax.plot(rates, each, ls=LINES[row], label=f"by {name}", **look)
        ax.plot(rates, law, ls=":", lw=1.2, **look)
        at = (rates[left].item(), each[left].item())
        write(ax, f"by {name}", *at, (0, 9 if row else -11), path_effects=LINED, **look)
    ax.set(xscale="logit", yscale="log", ylim=(0.5, 130))
    ticks = [0.01, 0.1, 0.5, 0.9, 0.99]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yticks([1, 2, 5, 10, 100], ["1", "2", "5", "10", "100"])
    ax.yaxis.set_minor_locator(NullLocator())
    title = "in groups of 8 (dotted: in large groups)"
    return finish(ax, "solve rate p of the prompt", "weight of the prompt", title)


def plot_pass_at_k(
    curves: Mapping[str, Mapping[str, Tensor]], ks: Tensor, crossed: Mapping[str, float]
) -> None:
    """pass@k over k, a panel a start; where the lines cross is dotted.

    curves[start][when] [k seed] are pass@k. The axis is stretched towards 0 and 1.
    """
    row = axes_grid(1, len(curves), width=10.0, height=3.2)[0]
    for ax, (start, each) in zip(row, curves.items(), strict=True):
        inside = {when: passed.clamp(max=1 - 1e-6) for when, passed in each.items()}
        ylabel = "pass@k (stretched axis)" if ax is row[0] else ""
        plot_bands(inside, ylabel, BAND, start, ks.tolist(), ax)
        ax.set(xscale="log", yscale="logit", ylim=(0.005, 0.9999))
        ticks = [0.01, 0.1, 0.5, 0.9, 0.99, 0.999]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.yaxis.set_minor_locator(NullLocator())
        if (k := crossed[start]) <= ks[-1]:
            ax.axvline(k, color="black", ls=":", lw=1)
            ax.text(k, 0.009, f"k = {k:.0f} ", ha="right")


def plot_outvoted(
    total: Tensor,
    before: Tensor,
    lost: Tensor,
    votes: Tensor,
    prompts: Tensor,
    prompt: int,
) -> None:
    """Which prompts are lost, by all votes on them and by p before; votes on one.

    total, before, lost [seed prompt]; votes [by] are those on prompts[prompt], added
    up by the number in the middle of the voter's right answer.
    """
    left, right = axes_grid(1, 2, width=10.0, height=3.6)[0]
    for which, mark, colour, name in (
        (~lost, ".", UP, "kept"),
        (lost, "x", DOWN, "lost"),
    ):
        look: dict[str, Any] = {"color": colour, "ls": "", "ms": 5, "alpha": 0.8}
        label = f"{name}: {which.sum()}"
        left.plot(total[which], before[which], mark, label=label, **look)
    left.axvline(0, color="black", lw=1)
    left.axhline(0.2, color="black", ls=":", lw=1)
    title = "left of the line: outvoted"
    finish(left, "all votes in step 1 (change of p)", "solve rate before", title)
    legend_above(left)
    middle = prompts.sort(-1).values[:, 1]
    sums = [votes[middle == number].sum().item() for number in range(5)]
    right.bar(range(5), sums, color=[sign_colour(each) for each in sums])
    right.axhline(0, color="black", lw=1)
    finish(
        right,
        "number in the middle of the voters' answers",
        "change of p (first order)",
        f"step 1: votes on {prompts[prompt].tolist()}",
    )


def plot_paths(paths: Mapping[str, Tensor], prompts: Tensor) -> None:
    """p of a prompt and of its opponent over exact steps, a panel a weight.

    paths[weight] [step prompt], of the lost prompt first; prompts [prompt number].
    """
    row = axes_grid(1, len(paths), width=10.0, height=3.2)[0]
    names = [f"{prompt.tolist()}" for prompt in prompts]
    for ax, (weight, path) in zip(row, paths.items(), strict=True):
        for name, p, colour, line in zip(
            names, path.T, (DOWN, PI), LINES, strict=False
        ):
            ax.plot(range(len(p)), p, color=colour, ls=line, label=name)
        low = int(path[:, 0].clamp(min=LOST).argmin())
        place = (low, path[low, 0].item())
        write(ax, names[0], *place, (8, 10), ha="left", color=DOWN)
        write(ax, names[1], len(path) // 2, path[-1, 1].item(), (0, 9), color=PI)
        ax.axhline(LOST, color="black", ls=":", lw=1)
        write(ax, "lost", len(path) - 1, LOST, (0, -9), ha="right")
        ax.set(yscale="log", ylim=(1e-4, 3))
        ticks = [0.001, 0.01, 0.1, 1]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        finish(ax, "exact step", "solve rate p" if ax is row[0] else "", weight)
