"""Pictures of word problems: splits, orders, what is paid, how a run's groups tie."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row, fill_cells, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.mechanism import draw_arrow
from grpo_course.classroom.plots.palette import COLOURS, DOWN, GROUND, PI, UP
from grpo_course.classroom.plots.reward_parts import LOOKS, listed
from grpo_course.classroom.plots.token_rows import INK, canvas, cell, name_row

Span = tuple[int, int]  # where a search starts, where it ends
PAPERS = ("#cfe6f5", "#f7e0a8", "#bfe6d8", "#eed3e2")  # of the questions A, B, C, D
LAYERS: tuple[dict[str, Any], ...] = (
    {"facecolor": UP, "lw": 0},
    {"facecolor": COLOURS[5], "lw": 0},
    {"facecolor": DOWN, "edgecolor": GROUND, "hatch": "//", "lw": 0},
)


def plot_shares(shares: Mapping[str, Tensor], names: Sequence[str]) -> Axes:
    """What each split is made of: shares that add up to 1, by kind; [split]."""
    ax = axes_row(width=7.5, height=1.3 + 0.34 * len(names))[0]
    rows, start = range(len(names)), torch.zeros(len(names))
    for (kind, values), look in zip(shares.items(), LOOKS, strict=False):
        bars = ax.barh(rows, values, 0.62, left=start, label=kind, **look)
        if not start.any():  # the kind to be compared
            told = [f"{v:.2f}" if v > 0.05 else "" for v in values]  # where it fits
            ax.bar_label(bars, told, label_type="center", color="white")
        start = start + values
    ax.set_yticks(rows, names)
    ax.invert_yaxis()
    ax.figure.legend(*ax.get_legend_handles_labels(), loc="upper center", ncols=3)
    finish(ax, "share of the problems held out", "").grid(visible=False)
    plt.tight_layout(rect=(0, 0, 1, 0.9))
    told = [f"{kind} {listed(values)}" for kind, values in shares.items()]
    describe(ax.figure, f"Stacked bars of {', '.join(names)}. {'; '.join(told)}.")
    return ax


def plot_orders(
    orders: Mapping[str, str], pays: Mapping[str, float], deltas: Mapping[str, Tensor]
) -> Axes:
    """Copies of questions in an order; two that form a group share a frame.

    Below each stand its pay and its delta, an arrow.
    """
    longest = max(map(len, orders.values()))
    ax = canvas(longest, 3.4 * len(orders), names=3.4)
    letters = sorted(set("".join(orders.values())))
    for row, (name, asked) in enumerate(orders.items()):
        y = 3.4 * row + 0.2
        for below, words in enumerate((name, "pays", r"$\delta$")):
            name_row(ax, y + 0.95 * below, words)
        for x, (letter, delta) in enumerate(zip(asked, deltas[name], strict=True)):
            cell(ax, x, y, letter, colour=PAPERS[letters.index(letter) % len(PAPERS)])
            draw_paid(ax, x + 0.5, y + 1.55, pays[letter], delta.item())
            if x % 2 == 0:
                edge = Rectangle((x, y), 2, 1, fill=False, edgecolor="black", lw=2.5)
                ax.add_patch(edge)
    told = [f"{n}: {o}, deltas {listed(deltas[n])}" for n, o in orders.items()]
    describe(ax.figure, f"Questions framed in groups of two. {'; '.join(told)}.")
    return ax


def draw_paid(ax: Axes, x: float, y: float, pay: float, delta: float) -> None:
    """What a response is paid, and below it its delta: an arrow, or a zero."""
    look: dict[str, Any] = {"ha": "center", "color": INK}
    ax.text(x, y, f"{pay:g}", **look)
    if delta:
        draw_arrow(ax, (x, y + 0.85 + delta), (x, y + 0.85 - delta), delta, 2.5)
    else:
        ax.text(x, y + 0.95, "0", **look)


def plot_paid(paid: Mapping[str, Sequence[float]], rewards: Sequence[str]) -> Axes:
    """What each way to respond earns under each reward; the best ones are framed."""
    ax = axes_row(width=7.5, height=1.0 + 0.45 * len(paid))[0]
    values = torch.tensor([list(row) for row in paid.values()])
    fill_cells(finish(ax, "", ""), values)
    ax.set_xticks(range(len(rewards)), rewards)
    ax.set_yticks(range(len(paid)), list(paid))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for row, column in (values == values.amax(0)).nonzero().tolist():
        corner = (column - 0.47, row - 0.45)
        look: dict[str, Any] = {"fill": False, "edgecolor": COLOURS[1], "lw": 3.5}
        ax.add_patch(Rectangle(corner, 0.94, 0.9, **look))
    plt.tight_layout()
    told = [f"{name} {listed(torch.tensor(row))}" for name, row in paid.items()]
    describe(ax.figure, f"Paid under {', '.join(rewards)}. {'; '.join(told)}.")
    return ax


def plot_searches(texts: Mapping[str, Mapping[str, Sequence[Span]]]) -> list[Axes]:
    """A picture for each text, and in it a bar for each search, from start to end.

    `texts[name][who]` are the searches of one who looks; the title has their sums.
    """
    axes, told = axes_row(len(texts), width=10.0, height=3.4), []
    most = max(sum(map(len, work.values())) for work in texts.values())
    for ax, (name, work) in zip(axes, texts.items(), strict=True):
        sums: list[int] = []
        top = 0.0
        for (who, spans), colour in zip(work.items(), COLOURS, strict=False):
            starts, widths = [a for a, _ in spans], [b - a for a, b in spans]
            rows = [top + row for row in range(len(spans))]
            ax.barh(rows, widths, 0.75, left=starts, color=colour, label=who)
            sums.append(sum(widths))
            top = rows[-1] + 1.6
            told.append(f"{name}: {len(spans)} of {who}, {sum(widths)} characters")
        counted = zip(work, sums, strict=True)
        title = f"{name}\n{', '.join(f'{who} {looks}' for who, looks in counted)}"
        finish(ax, "character of the text", "", title).sharex(axes[0])
        ax.set(ylim=(most + 0.4, -0.8), yticks=[])
    legend_below(axes)
    describe(axes[0].figure, f"A bar for each search. {'; '.join(told)}.")
    return axes


def legend_below(row: Sequence[Axes]) -> None:
    """One legend for a row of pictures that show the same."""
    figure, handles = row[0].figure, row[0].get_legend_handles_labels()
    figure.legend(*handles, loc="lower center", ncols=len(handles[1]), frameon=False)
    plt.tight_layout(rect=(0, 0.1, 1, 1))


def plot_choices(
    runs: Mapping[str, Tensor], ways: Sequence[str], averages: Mapping[str, Tensor]
) -> list[Axes]:
    """Which way a policy chooses, step by step, a picture for each reward; [step way].

    Earlier lines are the thicker ones, so that no line hides another; what the policy
    earns on average, [step], is dashed.
    """
    look: dict[str, Any] = {"figsize": (11.0, 4.0), "sharey": True, "squeeze": False}
    row = plt.subplots(1, len(runs), **look)[1][0]
    for ax, (name, run) in zip(row, runs.items(), strict=True):
        for place, (way, chances) in enumerate(zip(ways, run.T, strict=True)):
            colour, wide = COLOURS[place % len(COLOURS)], max(1.5, 8.0 - 1.6 * place)
            ax.plot(chances, lw=wide, label=way, color=colour)
        ax.plot(averages[name], "k--", lw=1.5, label="average reward")
        finish(ax, "step", "chance, reward" if ax is row[0] else "", name)
        ax.set(xlim=(0, len(run) - 1), ylim=(0, 1.05))
        ax.locator_params(axis="x", nbins=4, integer=True)
    legend_below(row)
    return list(row)


def mark_level(ax: Axes, height: float, words: str) -> None:
    """A dotted line across a picture, its words below it, both in the first colour."""
    start, end = ax.get_xlim()
    ax.plot((start, end), (height, height), ":", lw=1.5, color=COLOURS[0], label=words)
    ax.text(end, height - 0.02, words, ha="right", va="top", color=COLOURS[0])


def plot_errors(errors: Mapping[str, Mapping[str, float]], unit: str) -> list[Axes]:
    """A picture for each model: a bar for each way, with its number; 0 is one too."""
    axes = axes_row(len(errors), width=11.0, height=2.9)
    most = max(max(each.values()) for each in errors.values())
    for ax, (model, each) in zip(axes, errors.items(), strict=True):
        bars = ax.barh(range(len(each)), list(each.values()), 0.62, color=PI)
        ax.bar_label(bars, fmt="{:.3f}", padding=4)
        ax.set_yticks(range(len(each)), list(each) if ax is axes[0] else [])
        ax.invert_yaxis()
        finish(ax, unit, "", model).set_xlim(0, 1.25 * most)
    plt.tight_layout()
    told = [f"{m}, {way}: {x:.3f}" for m, e in errors.items() for way, x in e.items()]
    describe(axes[0].figure, f"Bars of {unit}. {'; '.join(told)}.")
    return axes


def plot_layers(
    layers: Mapping[str, Tensor], x: Sequence[float], xlabel: str, ylabel: str
) -> Axes:
    """Three shares that add up to 1, as bands on each other, the first below; [step].

    Each bears its name where it is widest.
    """
    ax = axes_row(width=8.0)[0]
    bottom = torch.zeros(len(x))
    for (name, share), look in zip(layers.items(), LAYERS, strict=True):
        ax.fill_between(x, bottom, bottom + share, **look)
        edge = max(1, len(x) // 8)  # no name sticks out at an end
        at = int(share[edge:-edge].argmax()) + edge
        paper: dict[str, Any] = {"facecolor": GROUND, "lw": 0, "pad": 2.5}
        middle = (bottom + share / 2)[at].item()
        ax.text(x[at], middle, name, ha="center", va="center", bbox=paper)
        bottom = bottom + share
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1))
    told = [f"{name} from {s[0]:.2f} to {s[-1]:.2f}" for name, s in layers.items()]
    describe(ax.figure, f"Bands on each other, together 1: {'; '.join(told)}.")
    return finish(ax, xlabel, ylabel)
