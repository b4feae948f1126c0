"""What notebook 14 alone draws."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    GROUND,
    LEVEL,
    LINES,
    UP,
    axes_grid,
    axes_row,
    finish,
    legend_above,
    plot_bands,
    sign_colour,
)
from grpo_course.lessons.answer_tree import AnswerTree

LOST = 1e-3  # below such a solve rate, a prompt is lost
BAND = "k (band: 80 % of the seeds)"


def plot_tree(world: AnswerTree, reward: Tensor) -> Axes:
    """All responses, the path of those with a reward green. reward [all].

    A square is the end, and a filled mark is a complete response.
    """
    rows = zip(world.responses.tolist(), world.lengths.int().tolist(), strict=True)
    answers = [tuple(row[:length]) for row, length in rows]
    rights = {a for a, r in zip(answers, reward.tolist(), strict=True) if r > 0}
    paid = {answer[:length] for answer in rights for length in range(1, 99)}
    below = defaultdict(list)  # what was written so far stands over all it can become
    for place, answer in enumerate(sorted(answers)):
        for length in range(len(answer) + 1):
            below[answer[:length]].append(place)
    places = {node: (sum(xs) / len(xs), -1.0 * len(node)) for node, xs in below.items()}

    ax = axes_row(width=10.0, height=3.0)[0]
    for node, (x, y) in places.items():
        if node:
            start, rise = places[node[:-1]]
            colour, width = (UP, 4) if node in paid else (LEVEL, 0.7)
            ax.plot([start, x], [rise, y], color=colour, lw=width, zorder=1)
        is_end = node[-1:] == (world.end,)
        fill = "#d0d0d0" if node in answers else GROUND
        fill = UP if node in rights else fill
        ax.plot(x, y, "s" if is_end else "o", ms=13, mfc=fill, mec=LEVEL, mew=0.8)
        word = "" if is_end else f"{node[-1]}" if node else "·"
        ax.text(x, y, word, ha="center", va="center_baseline")
    for length in {len(answer) for answer in answers}:
        words = f"{length} token" + "s" * (length > 1)
        ax.text(-1.3, -length, words, ha="right", va="center")
    ax.margins(x=0.03, y=0.1)
    ax.axis("off")
    text = f"A tree of {len(answers)} responses, {len(rights)} with a reward."
    describe(ax.figure, text)
    return ax


def plot_weights(rates: Tensor, weights: Mapping[str, Tensor], laws: Tensor) -> Axes:
    """What a prompt weighs over its solve rate, a line a divisor; its law is dotted.

    rates [prompt], weights[divisor] [prompt], laws [divisor prompt]. On the axis of
    rates, p and 1 - p are mirror images.
    """
    ax = axes_row(width=7.5, height=3.6)[0]
    for row, ((name, each), law) in enumerate(zip(weights.items(), laws, strict=True)):
        look: dict[str, Any] = {"color": COLOURS[row]}
        ax.plot(rates, each, ls=LINES[row], label=f"by {name}, G = 8", **look)
        ax.plot(rates, law, ls=":", lw=1.2, **look)
    ax.set(xscale="logit", yscale="log", ylim=(0.5, 60))
    ticks = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yticks([1, 10], ["1", "10"])
    ax.plot([], [], ls=":", lw=1.2, color=LEVEL, label="dotted: large groups")
    legend_above(finish(ax, "solve rate p of the prompt", "weight of the prompt"))
    return ax


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
