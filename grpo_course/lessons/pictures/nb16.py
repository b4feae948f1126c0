"""What notebook 16 alone draws."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    FAINT,
    GROUND,
    LINES,
    PI,
    SHADES,
    axes_grid,
    axes_row,
    cells,
    draw_arrow,
    draw_box,
    finish,
    plot_bands,
    write,
)
from grpo_course.lessons.look_ups import BOXES, right_answers


def plot_kinds(right: Tensor, adds: Tensor, stops: Sequence[int]) -> list[Axes]:
    """The share right of each kind of problem, a panel for a seed.

    `right` is a float [stop seed problem]; bool `adds` [seed problem] tells the kinds.
    """
    num_seeds = right.shape[1]
    (axes,) = axes_grid(1, num_seeds, 2.2 * num_seeds, 2.9)
    kinds = (("additions", adds, (15, 0.5)), ("subtractions", ~adds, (5, 1.1)))
    for row, (kind, chosen, place) in enumerate(kinds):
        curve = (right * chosen).sum(dim=-1) / chosen.sum(dim=-1)  # [stop seed]
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        for ax, shares in zip(axes, curve.T, strict=True):
            ax.plot(stops, shares, label=kind, marker="os"[row], ms=5, **look)
        write(axes[0], kind, *place, ha="left", color=COLOURS[row])
    for seed, ax in enumerate(axes):
        ax.set(ylim=(-0.03, 1.2), xticks=stops, yticks=(0, 0.5, 1))
        ax.tick_params(labelleft=not seed)
        finish(ax, "updates", "" if seed else "share right, held out", f"seed {seed}")
    return axes


def plot_forgotten(runs: Mapping[str, Sequence[Tensor]]) -> list[Axes]:
    """P(right) and the log of each run, [update seed] and [update seed pos], as bands.

    Hatched is the tool's part of the log. In the mean, it cannot fall below the line.
    """
    panels = {"P(right), exact": ((13, 0.82, "right"), (14, 0.64, "left"))}
    panels["logged entropy, nats"] = ((0, 0.75, "left"), (20, 1.62, "right"))
    axes = axes_row(2, width=10.0)
    for i, (ax, (title, places)) in enumerate(zip(axes, panels.items(), strict=True)):
        curves = {n: run[i].mean(dim=-1) if i else run[i] for n, run in runs.items()}
        plot_bands(curves, "", "updates so far", ax=ax).legend().remove()
        ax.set_title(title)
        for name, (x, y, side), colour in zip(curves, places, COLOURS, strict=False):
            write(ax, name, x, y, ha=side, color=colour)
    part = runs["forgotten"][1][..., 1].mean(dim=-1) / 3  # one token in three
    look: dict[str, Any] = {"fc": "none", "ec": FAINT, "hatch": "///", "lw": 0}
    axes[1].fill_between(range(len(part)), part, zorder=0, **look)
    axes[1].plot(part, color=FAINT, lw=1, zorder=0, label="the tool's part")
    level, paper = math.log(BOXES) / 3, {"fc": GROUND, "lw": 0, "pad": 1}
    axes[1].axhline(level, color="black", lw=1)
    write(axes[1], "(log 4) / 3", 39, level, (0, -9), ha="right", bbox=paper)
    write(axes[1], "the tool's part", 39, 0.8, ha="right", bbox=paper)
    return axes


def turn_names(count: int) -> list[str]:
    """The calls, and the answer behind them."""
    return [*(f"call {call}" for call in range(1, count)), "answer"]


def plot_conversations(
    asked: Tensor, read: Tensor, written: Tensor, rewards: Tensor
) -> Axes:
    """A group on one prompt, a row a conversation. [1 5], [1 trial turn], [1 trial]

    A turn that copies what it has read is framed; arrows are deltas.
    """
    turns, (prompt,) = written.shape[-1], asked.tolist()
    right, deltas = right_answers(asked, turns - 1).item(), rewards - rewards.mean()
    heading = f"boxes 0 to 3 hold {str(prompt[:4])[1:-1]}; the prompt names box "
    heading += f"{prompt[4]}; right is {right}"
    ax, texts = axes_row(width=10.6, height=4.2)[0], []
    ax.set(xlim=(-0.5, turns + 0.2), ylim=(rewards.numel() - 0.5, -0.9))
    ax.set_title(f"{heading}\nframed: the turn copies; arrows: $\\delta$")
    ax.axis("off")
    for turn, name in enumerate(turn_names(turns)):
        write(ax, name, turn - 0.12, -0.68)
    groups = (read[0].tolist(), written[0].tolist(), rewards[0], deltas[0])
    for y, (before, after, reward, delta) in enumerate(zip(*groups, strict=True)):
        pairs, up = [*zip(before, after, strict=True)], delta.item() / 1.7
        for x, (a, b) in enumerate(pairs):
            edge, fill = ("black", SHADES[1]) if a == b else (FAINT, GROUND)
            corner, size = (x - 0.42, y - 0.36), (0.6, 0.72)
            draw_box(ax, corner, size, "", edge, facecolor=fill)
            write(ax, f"reads {a}", x - 0.12, y - 0.16)
            write(ax, f"writes {b}", x - 0.12, y + 0.16, weight="bold")
            draw_arrow(ax, (x + 0.3, y + up), (x + 0.3, y - up), up, 3)
        write(ax, f"R = {reward:g}\n$\\delta$ = {delta:+.2f}", turns - 0.15, y)
        told = ", ".join(f"{a} to {b}" for a, b in pairs)
        texts.append(f"{told}, R {reward:g}, delta {delta:+.2f}")
    describe(ax.figure, f"{heading}. Read and written, by turn: {'; '.join(texts)}.")
    return ax


def plot_needed(needed: Mapping[str, Tensor], given: float) -> Axes:
    """How many conversations each turn needs, a line for a way to give credit. [turn]

    A horizontal line says how many a training run has.
    """
    ax, texts = axes_row(width=8.4, height=3.6)[0], []
    numbers: dict[tuple[int, str], float] = {}  # once where two lines meet
    calls = len(next(iter(needed.values()))) - 1
    turns = turn_names(calls + 1)
    places = ((1.5, 2.3e5), (2.0, 4.6e3), (0.5, 270), (2.1, 25))
    for row, (name, count) in enumerate(needed.items()):
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(turns, count, marker="osD^"[row], ms=6, **look)
        write(ax, name, *places[row], color=COLOURS[row])
        texts.append(f"{name}: {', '.join(f'{each:.0f}' for each in count.tolist())}")
        numbers |= {(x, f"{count[x]:.0f}"): count[x].item() for x in (0, calls)}
    for (x, number), y in numbers.items():
        write(ax, number, x, y, (9, 0) if x else (-9, 0), ha="left" if x else "right")
    ax.axhline(given, color="black", lw=1)
    write(ax, f"the run has {given:.0f}", 0.5, given, (0, 9))
    ax.set(yscale="log", xlim=(-0.5, calls + 0.5), ylim=(4, 5e5))
    finish(ax, "", "conversations needed\nat the start")
    text = f"Conversations that call 1 to {calls} and the answer need, on a log scale."
    describe(ax.figure, f"{text} {'; '.join(texts)}. The run has {given:.0f}.")
    return ax


def plot_prospects(
    copied: Tensor, needed: Tensor, ends: Tensor, left: float, updates: int
) -> list[Axes]:
    """How each seed copies after some updates and what it needs, beside its end.

    [seed turn], [seed] and [seed]. A line parts those that need more than is left.
    """
    order = needed.argsort()
    copied, needed, ends = copied[order], needed[order], ends[order]
    axes = axes_row(2, width=9.6, height=4.8)
    cells(axes[0], copied, size=11)
    names = [f"{count:.0f}" for count in needed.tolist()]
    axes[0].set_xticks(range(copied.shape[1]), turn_names(copied.shape[1]))
    axes[0].set_yticks(range(len(names)), names)
    ylabel = "conversations needed\nat the turn that needs most"
    finish(axes[0], "", ylabel, f"how often a turn copies, after {updates} updates")
    bars = axes[1].barh(range(len(ends)), ends, color=PI, height=0.7)
    axes[1].bar_label(bars, fmt="{:.2f}", padding=3)
    axes[1].set(ylim=axes[0].get_ylim(), xlim=(0, 1.15), yticks=[])
    finish(axes[1], "", "", "P(right) at the end")
    fits = (needed < left).sum().item() - 0.5
    for ax in axes:
        ax.grid(visible=False)
        ax.axhline(fits, color="black", lw=2)
    note = f"above the line, the run\nhas enough left: {left:.0f}"
    write(axes[1], note, 0.8, 10.5)
    told = "; ".join(
        f"{need}, {', '.join(f'{each:.2f}' for each in row)}, {end:.2f}"
        for need, row, end in zip(names, copied.tolist(), ends.tolist(), strict=True)
    )
    text = "A row a seed: conversations needed, how often each turn copies after"
    text += f" {updates} updates, and P(right) at the end: {told}."
    describe(axes[0].figure, f"{text} The run has {left:.0f} left.")
    plt.tight_layout()
    return axes
