"""What notebook 16 alone draws."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    FAINT,
    LINES,
    UP,
    axes_row,
    finish,
    legend_below,
    write,
)
from grpo_course.lessons.look_ups import BOXES, right_answers
from grpo_course.lessons.pictures.shared import plot_beside


def plot_kinds(right: Tensor, adds: Tensor, stops: Sequence[int]) -> list[Axes]:
    """The share right of each kind of problem, a panel for a seed.

    `right` is a float [stop seed problem]; bool `adds` [seed problem] tells the kinds.
    """
    num_seeds = right.shape[1]
    axes = axes_row(num_seeds, width=2.2 * num_seeds)
    curves = {  # [stop seed]
        kind: (right * chosen).sum(dim=-1) / chosen.sum(dim=-1)
        for kind, chosen in (("additions", adds), ("subtractions", ~adds))
    }
    for seed, ax in enumerate(axes):
        for row, (kind, curve) in enumerate(curves.items()):
            look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
            ax.plot(stops, curve[:, seed], label=kind, marker="os"[row], ms=5, **look)
        ax.set(ylim=(-0.03, 1.03), xticks=(0, 8, 16, 32), yticks=(0, 0.5, 1))
        finish(ax, "updates", "" if seed else "share right, held out", f"seed {seed}")
    legend_below(axes)
    return axes


def plot_forgotten(runs: Mapping[str, Sequence[Tensor]]) -> list[Axes]:
    """P(right) and the logged entropy of each run, as bands.

    Of each, the two are [update seed]. A black line says below what the entropy cannot
    stay where the tool's token counts.
    """
    titles = ("P(right), exact", "logged entropy, nats")
    panels = {
        title: {n: run[i] for n, run in runs.items()} for i, title in enumerate(titles)
    }
    axes = plot_beside(panels, xlabel="updates so far")
    level = math.log(BOXES) / 3
    axes[1].axhline(level, color="black", lw=1)
    write(axes[1], "(log 4) / 3", 39, level, (0, 9), ha="right")
    return axes


def plot_conversations(
    asked: Tensor, read: Tensor, written: Tensor, rewards: Tensor
) -> Axes:
    """What the policy reads and writes, a row a conversation. [batch trial turn]

    A turn of the policy is an arrow from what it has read to what it writes.
    """
    turns, texts = written.shape[-1], []
    ax = axes_row(width=10.6, height=0.6 * rewards.numel() + 0.6)[0]
    ax.set(xlim=(-3.4, 3 * turns + 2.3), ylim=(rewards.numel() - 0.5, -1.2))
    ax.axis("off")
    for turn in range(turns):
        name = f"call {turn + 1}" if turn < turns - 1 else "answer"
        write(ax, name, 3 * turn + 0.9, -0.9)
    rows = zip(
        asked.repeat_interleave(rewards.shape[1], dim=0).tolist(),
        read.flatten(0, 1).tolist(),
        written.flatten(0, 1).tolist(),
        rewards.flatten().tolist(),
        strict=True,
    )
    for y, (prompt, numbers, said, reward) in enumerate(rows):
        right = right_answers(torch.tensor([prompt]), turns - 1).item()
        write(ax, f"boxes {prompt[:4]}", -3.4, y, ha="left")
        pairs = [f"{a} to {b}" for a, b in zip(numbers, said, strict=True)]
        texts.append(f"boxes {prompt[:4]}: {', '.join(pairs)}, right {right}")
        for turn, (before, after) in enumerate(zip(numbers, said, strict=True)):
            x, copied = 3 * turn, before == after
            look = {"color": UP if copied else DOWN, "ls": "-" if copied else "--"}
            style = {"arrowstyle": "->", "lw": 2, "mutation_scale": 14}
            ax.annotate("", (x + 1.5, y), (x + 0.3, y), arrowprops=style | look)
            write(ax, str(before), x, y)
            write(ax, str(after), x + 1.8, y, weight="bold")
            if turn < turns - 1:
                style = {"arrowstyle": "->", "color": FAINT, "ls": ":"}
                ax.annotate("", (x + 2.7, y), (x + 2.1, y), arrowprops=style)
        write(ax, f"right: {right}    R = {reward:.0f}", 3 * turns + 0.6, y)
    kinds = {"the policy copies": (UP, "-"), "makes up": (DOWN, "--")}
    for name, (colour, line) in (kinds | {"the tool": (FAINT, ":")}).items():
        ax.plot([], [], color=colour, ls=line, label=name)
    legend_below([ax])
    text = f"From what is read to what is written, turn by turn. {'; '.join(texts)}."
    describe(ax.figure, text)
    return ax


def plot_needed(needed: Mapping[str, Tensor], given: float) -> Axes:
    """How many conversations each turn needs, a line for a way to give credit. [turn]

    A horizontal line says how many a training run has.
    """
    ax, texts = axes_row(width=7.4, height=3.6)[0], []
    labelled: set[tuple[int, str]] = set()  # where a number stands already
    calls = len(next(iter(needed.values()))) - 1
    names = [*(f"call {call + 1}" for call in range(calls)), "answer"]
    for row, (name, count) in enumerate(needed.items()):
        look: dict[str, Any] = {"color": COLOURS[row], "ls": LINES[row]}
        ax.plot(names, count, label=name, marker="osD^"[row], ms=6, **look)
        numbers = [f"{number:.0f}" for number in count.tolist()]
        texts.append(f"{name}: {', '.join(numbers)}")
        for place in {(0, numbers[0]), (calls, numbers[-1])} - labelled:
            write(ax, place[1], place[0], count[place[0]].item(), (0, 10))
            labelled.add(place)
    ax.axhline(given, color="black", lw=1)
    write(ax, f"one run has {given:.0f}", calls / 2, given, (0, 9))
    ax.set(yscale="log", xlim=(-0.3, calls + 0.3), ylim=(4, 4e5))
    finish(ax, "", "conversations needed")
    legend_below([ax])
    text = f"Conversations that call 1 to {calls} and the answer need, on a log scale."
    describe(ax.figure, f"{text} {'; '.join(texts)}. One run has {given:.0f}.")
    return ax


def plot_prospects(needed: Tensor, ends: Tensor, left: float, updates: int) -> Axes:
    """What each seed needs after some updates, and has learned at the end. [seed] each

    A vertical line says how many conversations the run then has left.
    """
    ax = axes_row(width=7.4, height=3.6)[0]
    ax.plot(needed, ends, "o", color=COLOURS[0], ms=7, alpha=0.8)
    ax.axvline(left, color="black", lw=1)
    write(ax, f"the run has {left:.0f} left", left, 0.9, (6, 0), ha="left")
    ax.set(xscale="log", ylim=(0.2, 1.04))
    axis, after = "conversations needed", f"after {updates} updates"
    finish(ax, f"{axis} at the turn that needs most, {after}", "P(right) at the end")
    pairs = zip(needed.tolist(), ends.tolist(), strict=True)
    told = ", ".join(f"{need:.0f} and {end:.2f}" for need, end in sorted(pairs))
    text = f"Conversations needed {after} and P(right) at the end, a point a seed"
    describe(ax.figure, f"{text}: {told}. The run has {left:.0f} left.")
    return ax
