"""What notebook 06 alone draws."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    GROUND,
    NO_POLICY,
    PI,
    PI_OLD,
    PI_REF,
    axes_grid,
    axes_row,
    cells,
    draw_box,
    finish,
    plot_lines,
    write,
)

# Of each stage of the loop, its boxes: left, bottom, width, the colour of the policy
# that the box reads or writes, text. The first five are the outer loop's.
STAGES = (
    [(2.0, 26.0, 16.0, PI_REF, "copy, at times\n" r"$\pi_{ref} \leftarrow \pi$")],
    [(21.5, 26.0, 16.0, PI, "sample\n" r"$G$ responses of $\pi$")],
    [(41.0, 26.0, 16.0, NO_POLICY, "judge\n" r"rewards $R$")],
    [(60.5, 26.0, 16.0, NO_POLICY, "compare\n" r"deltas $\delta$")],
    [
        (80.0, 26.0, 7.6, PI_OLD, "note\n" r"$\log\pi_{old}$"),
        (88.4, 26.0, 7.6, PI_REF, "note\n" r"$\log\pi_{ref}$"),
    ],
    [(80.0, 5.0, 16.0, PI, "score again\n" r"$\log\pi$")],
    [(60.5, 5.0, 16.0, PI_OLD, "loss\n" r"$r = \pi / \pi_{old}$, $\delta$")],
    [(41.0, 5.0, 16.0, PI_REF, "add the KL\n" r"$\beta$ KL($\pi$, $\pi_{ref}$)")],
    [(21.5, 5.0, 16.0, PI, "optimizer step\n" r"$\pi$ changes")],
)
# From, to, bend: straight lines between boxes, bent ones back to a start.
ARROWS = (
    *[((x, 31), (x + 3.5, 31), 0) for x in (18.0, 37.5, 57.0, 76.5)],
    ((88, 26), (88, 15), 0),
    *[((x, 10), (x - 3.5, 10), 0) for x in (80.0, 60.5, 41.0)],
    ((30, 5), (88, 5), 0.12),
    ((21.5, 10), (10, 26), -0.25),
)


def draw_loop(active: int | None = None) -> Axes:
    """The two loops as boxes; the colour says which policy a box needs or changes.

    The boxes of the active one of STAGES are filled.
    """
    ax = axes_row(width=10.0, height=4.2)[0]
    ax.set(xlim=(-1, 99.5), ylim=(-5.5, 42.5), position=(0, 0, 1, 1))
    stays = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
    plt.gcf().set_layout_engine(stays)  # a film's frame would be laid out anew
    ax.axis("off")
    ax.add_patch(Rectangle((0, -4.5), 98.5, 46, fc="#f6f6f6", ec="#bbbbbb", zorder=0))
    ax.add_patch(
        Rectangle((19.5, -3.2), 78, 23.2, fc="#e9e9e9", ec="#bbbbbb", zorder=0)
    )
    for number, boxes in enumerate(STAGES):
        for left, bottom, width, colour, text in boxes:
            fill = colour if number == active else "white"
            size = (width, 10.0)
            draw_box(ax, (left, bottom), size, text, colour, facecolor=fill, lw=2.2)
    for start, end, bend in ARROWS:
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 14}
        style |= {"connectionstyle": f"arc3,rad={bend}", "color": "grey"}
        ax.add_patch(FancyArrowPatch(start, end, **style))
    for x, y, text, side in (
        (2, 37.2, "outer loop: once an epoch, new responses", "left"),
        (85, 16.2, r"inner loop: $\mu$ steps, the same responses", "right"),
        (59, -1.2, r"the next of $\mu$ steps", "center"),
        (1, 15.5, "the next\nepoch", "left"),
    ):
        look: dict[str, Any] = {"ha": side, "va": "bottom", "style": "italic"}
        ax.text(x, y, text, color="#555555", **look)
    told = (
        "Once an epoch: copy the reference at times, sample, judge, compare, note two"
    )
    told += " policies; then mu times: score again, loss, KL, optimizer step"
    now = "" if active is None else f"; box {active + 1} of {len(STAGES)} is filled"
    describe(ax.figure, f"Two loops of boxes. {told}{now}.")
    return ax


def walk_through(num_epochs: int, num_steps: int, period: int) -> list[tuple]:
    """The moments in the order in which they run: (box, what to say, steps taken).

    The steps are those that pi, pi_old and pi_ref had taken; None before a first note.
    """
    walk, steps, old, ref = [], 0, None, 0
    for epoch in range(num_epochs):
        for box in range(0 if epoch % period == 0 else 1, 5):
            place = "outer loop" if box else "outer loop, with a new reference"
            ref, old = steps if box == 0 else ref, steps if box == 4 else old
            walk.append((box, epoch, place, (steps, old, ref)))
        for step in range(num_steps):
            for box in range(5, 9):
                steps += box == 8
                walk.append((box, epoch, f"inner step {step}", (steps, old, ref)))
    told = "Epoch {}, {}. Optimizer steps so far: {}."
    return [(box, told.format(*at, taken[0]), taken) for box, *at, taken in walk]


def draw_moment(box: int, told: str, taken: tuple[int, int | None, int]) -> str:
    """One moment of `walk_through`, for a film; -> the sentence below it.

    Each policy stands at the steps that it has taken, with a bar from there to pi.
    """
    ax = draw_loop(box)
    plt.gcf().set_size_inches(10.0, 5.7)
    ax.set_position((0, 0.27, 1, 0.73))
    below = plt.gcf().add_axes((0.13, 0.09, 0.84, 0.16))
    for row, (at, colour) in enumerate(zip(taken, (PI, PI_OLD, PI_REF), strict=True)):
        if at is not None:
            below.barh(row, taken[0] - at, 0.3, at, color=colour, alpha=0.45)
            below.plot(at, row, "o", color=colour, ms=11)
    below.set_yticks(range(3), [r"$\pi$", r"$\pi_{old}$", r"$\pi_{ref}$"])
    below.set(xlim=(-0.2, 5.2), ylim=(2.6, -0.6))
    finish(below, "optimizer steps that each policy has taken", "")
    text = f"{plt.gcf().get_label()} Steps taken by pi, pi old and pi ref: {taken}."
    describe(plt.gcf(), text)
    return told


def plot_loops(
    curves: dict[str, Tensor],
    ylabel: str = "P(sorted), mean of 64 starts",
    ax: Axes | None = None,
) -> Axes:
    """Curves [step] of a right loop, the first, and of others, named at their ends.

    Curves that end close to each other have their names in one line.
    """
    ax = ax or axes_grid(1, 1, width=8.5, height=4.0)[0][0]
    look: dict[str, Any] = {"color": "black", "lw": 1.5, "zorder": 3}
    names: dict[float, list[str]] = {}
    place = 0.0
    for name, curve in curves.items():
        ax.plot(curve, label=name, **look)
        look = {"color": COLOURS[3], "ls": "--", "lw": 2.4}
        names.setdefault(round(curve[-1].item(), 1), []).append(name)
    for close in sorted(names):
        ends = [curves[name][-1].item() for name in names[close]]
        place = max(place + 0.08, sum(ends) / len(ends))  # not on the name below
        write(ax, ", ".join(names[close]), len(curve) - 1, place, (6, 0), ha="left")
    finish(ax, "optimizer step", ylabel)
    ax.set(ylim=(0, 1), xlim=(-4, len(curve) - 1), xticks=range(0, len(curve) + 1, 40))
    return ax


def plot_stairs(
    curves: dict[str, Tensor], clipped: dict[str, Tensor], every: int
) -> None:
    """P(sorted), and below it the share of the tokens that are clipped. [step] each"""
    (top,), (below,) = axes_grid(2, 1, width=8.5, height=5.4)
    plot_loops(curves, "P(sorted)", top).set_xlabel("")
    plot_loops(clipped, "clipped tokens\n(share)", below)
    top.set_title(r"dotted: new $\pi_{ref}$", color=PI_REF)
    for step in range(0, 200, every):
        for ax in (top, below):
            ax.axvline(step, color=PI_REF, ls=":", lw=1.5)


def plot_facts(
    seen: dict[str, Tensor], broken: dict[str, Tensor], num_steps: int, period: int
) -> None:
    """How far pi is from pi_old, left, and from pi_ref, right, in a right loop.

    Below, each loop has a row, filled where the two policies differ, with a frame where
    a fact is broken. The first is right. `seen` are [3 step], `broken` [2 step].
    """
    panels = (
        ("largest |ratio - 1|", "old", PI_OLD, num_steps, "a ratio is not 1"),
        ("KL (nats)", "ref", PI_REF, num_steps * period, "the KL is not 0"),
    )
    columns = zip(*axes_grid(2, 2, width=11.0, height=5.4), strict=True)
    steps = range(seen["right"].shape[-1])
    for part, ((top, below), panel) in enumerate(zip(columns, panels, strict=True)):
        label, other, colour, every, filled = panel
        title = rf"a right loop, with a new $\pi_{{{other}}}$ every {every} steps"
        plot_lines({"": seen["right"][part]}, steps, "", label, title, top, [colour])
        away = torch.stack([each[part] > 1e-4 for each in seen.values()]).float()
        frames = torch.stack([each[part] for each in broken.values()]).nonzero()
        cells(below, away, "", frames.tolist(), ListedColormap([GROUND, colour]))
        title = f"filled: {filled}; framed: a fact is broken"
        finish(below, "optimizer step", "", title).grid(visible=False)
        below.set_yticks(range(len(seen)), list(seen))
        for row in range(len(seen)):
            below.axhline(row + 0.5, color=GROUND, lw=2)
        for ax in (top, below):
            ax.set(xlim=(-0.5, len(steps) - 0.5), xticks=steps[::num_steps])
    counts = ", ".join(f"{name} {b.sum(dim=-1).tolist()}" for name, b in broken.items())
    text = "In a right loop the ratios are 1 at first, the KL after a copy."
    describe(top.figure, f"{text} Broken at steps, ratio and KL: {counts}.")
