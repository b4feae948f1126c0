"""What notebook 06 alone draws."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    NO_POLICY,
    PI,
    PI_OLD,
    PI_REF,
    axes_grid,
    axes_row,
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
    """The boxes in the order in which they run: (box, what to say of it)."""
    walk, steps = [], 0
    for epoch in range(num_epochs):
        for box in range(0 if epoch % period == 0 else 1, 5):
            place = "outer loop" if box else "outer loop, with a new reference"
            walk.append((box, epoch, place, steps))
        for step in range(num_steps):
            for box in range(5, 9):
                steps += box == 8
                walk.append((box, epoch, f"inner step {step}", steps))
    told = "Epoch {}, {}. Optimizer steps so far: {}."
    return [(box, told.format(*where)) for box, *where in walk]


def draw_moment(box: int, told: str) -> str:
    """One moment of `walk_through`, for a film; -> the sentence below it."""
    draw_loop(box)
    return told


def plot_loops(curves: dict[str, Tensor], mark: float = 0.7) -> list[Axes]:
    """Learning curves [step seed], as their means: the first beside each of the others.

    A dotted line stands at `mark`.
    """
    right, *others = (curve.mean(dim=-1) for curve in curves.values())
    letters = [*curves][1:]
    (axes,) = axes_grid(1, len(others), width=11.0, height=2.6)
    for ax, other, letter in zip(axes, others, letters):
        ax.plot(right, color="black", lw=1.2, label="a right loop")
        look: dict[str, Any] = {"color": COLOURS[3], "ls": "--", "lw": 2.6}
        ax.plot(other, label="a loop with a wrong line", zorder=1.9, **look)
        ax.axhline(mark, color=NO_POLICY, ls=":", lw=1)
        finish(ax, "step", "P(sorted)" if ax is axes[0] else "", letter)
        ax.set(ylim=(0, 1), xticks=(0, len(other) - 1))
        ax.grid(visible=False)
        if ax is not axes[0]:
            ax.set_yticklabels([])
    place: dict[str, Any] = {"loc": "outside upper center", "ncols": 2}
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), **place)
    ends = [f"{letter} {curve[-1]:.2f}" for letter, curve in zip(letters, others)]
    text = f"P(sorted) of a right loop, at the end {right[-1]:.2f}"
    text += ", beside that of each other"
    describe(axes[0].figure, f"{text}: {', '.join(ends)}.")
    return axes


def plot_two_saws(
    ratios: Tensor, kl: Tensor, num_steps: int, period: int
) -> list[Axes]:
    """How far pi is from pi_old, above, and from pi_ref. [step] twice

    A dotted line is where the other policy is new.
    """
    panels = (
        (ratios, "largest\n|ratio - 1|", "old", PI_OLD, num_steps),
        (kl, "KL (nats)", "ref", PI_REF, num_steps * period),
    )
    rows, x = axes_grid(2, 1, width=8.0, height=4.2), range(len(kl))
    for (ax,), (values, label, other, colour, last) in zip(rows, panels, strict=True):
        name = rf"$\pi_{{{other}}}$"
        xlabel = "optimizer step" if ax is rows[-1][0] else ""
        means = {"": values}
        plot_lines(means, x, xlabel, label, rf"$\pi$ against {name}", ax, [colour])
        ax.set(xticks=range(0, len(kl), num_steps))  # where an epoch begins
        ax.margins(y=0.2)
        for step in range(0, len(kl), last):
            ax.axvline(step, color=colour, ls=":", lw=1.5)
            look: dict[str, Any] = {"color": colour, "ha": "left"}
            write(ax, f"new {name}", step, ax.get_ylim()[1], (3, -6), **look)
    return [ax for (ax,) in rows]
