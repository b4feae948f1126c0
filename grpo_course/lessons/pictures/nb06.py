"""What notebook 06 alone draws."""

from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    DOWN,
    GROUND,
    LINES,
    NO_POLICY,
    PI,
    PI_OLD,
    PI_REF,
    UP,
    axes_row,
    draw_clip_plane,
    draw_group,
    finish,
    legend_above,
)
from grpo_course.loop import Batch, History

# Groups as bars and arrows: what each response earned, and how it is pushed.


def plot_batch(batch: Batch) -> list[Axes]:
    """A panel for each prompt, in it each response with its reward and its delta."""
    prompts, deltas = batch.rollout.prompts.tolist(), batch.deltas
    axes, told = axes_row(len(prompts), width=3.6 * len(prompts), height=2.6), []
    reach = 1.6 * max(1e-6, deltas.abs().max().item())
    for i, (ax, prompt) in enumerate(zip(axes, prompts, strict=True)):
        rows = zip(batch.rollout.responses[i], batch.rewards[i], strict=True)
        names = [
            f"{' '.join(map(str, r.tolist()))}   R {reward:g}" for r, reward in rows
        ]
        ax.set_xlim(-reach, reach)
        draw_group(ax, deltas[i], names, r"delta $\delta$", signed=True)
        ax.set_title(f"prompt {prompt}")
        listed = ", ".join(f"{delta + 0.0:+.2f}" for delta in deltas[i].tolist())
        told.append(f"prompt {prompt} {listed}")
    plt.tight_layout()
    describe(axes[0].figure, f"Deltas as arrows, group by group: {'; '.join(told)}.")
    return axes


# Pictures of the training loop: its boxes, its three policies, its passes.


WIDTH, HALF, HEIGHT = 16.0, 7.6, 10.0


NOTE = 4  # the last of the outer boxes, counted from 0


# (left, bottom, width, height, fill) of a loop: the inner one lies in the outer one
FRAMES = ((0.0, -4.5, 98.5, 46.0, "#f6f6f6"), (19.5, -3.2, 78.0, 23.2, "#e9e9e9"))


# (left, bottom, colour of the policy that the box reads or writes, text)
OUTER = (
    (2.0, 26.0, PI_REF, "copy, at times\n" r"$\pi_{ref} \leftarrow \pi$"),
    (21.5, 26.0, PI, "sample\n" r"$G$ answers of $\pi$"),
    (41.0, 26.0, NO_POLICY, "judge\n" r"rewards $R$"),
    (60.5, 26.0, NO_POLICY, "compare\n" r"deltas $\delta$"),
)


HALVES = (  # one step, two policies
    (80.0, 26.0, PI_OLD, "note\n" r"$\log\pi_{old}$"),
    (88.4, 26.0, PI_REF, "note\n" r"$\log\pi_{ref}$"),
)


INNER = (
    (80.0, 5.0, PI, "score again\n" r"$\log\pi$"),
    (60.5, 5.0, PI_OLD, "loss\n" r"$r = \pi / \pi_{old}$, $\delta$"),
    (41.0, 5.0, PI_REF, "add the KL\n" r"$\beta$ KL($\pi$, $\pi_{ref}$)"),
    (21.5, 5.0, PI, "optimizer step\n" r"$\pi$ changes"),
)


# (from, to, bend): straight lines between boxes, bent ones back to a start
ARROWS = (
    *[((x, 31), (x + 3.5, 31), 0) for x in (18.0, 37.5, 57.0, 76.5)],
    ((88, 26), (88, 15), 0),
    *[((x, 10), (x - 3.5, 10), 0) for x in (80.0, 60.5, 41.0)],
    ((30, 5), (88, 5), 0.12),
    ((21.5, 10), (10, 26), -0.25),
)


WORDS = (
    (2, 37.2, "outer loop: once an epoch, new responses", "left"),
    (85, 16.2, r"inner loop: $\mu$ steps, the same responses", "right"),
    (59, -1.2, r"the next of $\mu$ steps", "center"),
    (1, 15.5, "the next\nepoch", "left"),
)


WORDS_LOOK: dict[str, Any] = {"style": "italic", "color": "#555555"}


LOOP_IN_WORDS = (
    "Two loops drawn as boxes, the inner one in the outer one. The outer one runs "
    "once an epoch: copy the reference at times, sample G answers, judge them, compare "
    "them within the group, note the log-probabilities of two policies. The inner one "
    "takes mu steps on the same answers: score again, loss, KL penalty, "
    "optimizer step. Then the next epoch begins."
)


def walk_loop(num_epochs: int, num_steps: int, period: int) -> list[tuple[int, str]]:
    """Which box runs, moment by moment: its place from `copy` on, and what to say."""
    moments, taken = [], 0
    for epoch in range(num_epochs):
        renewed = epoch % period == 0
        places = [("outer work", range(0 if renewed else 1, NOTE + 1))]
        inner = range(NOTE + 1, NOTE + 5)
        places += [(f"inner step {step}", inner) for step in range(num_steps)]
        for place, boxes in places:
            for box in boxes:
                taken += box == inner[-1]
                told = f"Epoch {epoch}, {place}. Optimizer steps so far: {taken}."
                moments.append((box, told))
    return moments


def draw_loop(active: int | None = None) -> Axes:
    """The two loops as boxes; the colour says which policy a box needs or changes.

    The box that runs is filled; its number is that of `walk_loop`.
    """
    ax = axes_row(width=10.0, height=4.2)[0]
    ax.set(xlim=(-1, 99.5), ylim=(-5.5, 42.5), position=(0, 0, 1, 1))
    stays = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
    plt.gcf().set_layout_engine(stays)  # a film's frame would be laid out anew
    ax.axis("off")
    for left, bottom, width, height, fill in FRAMES:
        look: dict[str, Any] = {"facecolor": fill, "edgecolor": "#bbbbbb", "zorder": 0}
        ax.add_patch(Rectangle((left, bottom), width, height, **look))
    stages = [*((box,) for box in OUTER), HALVES, *((box,) for box in INNER)]
    for number, boxes in enumerate(stages):
        for box in boxes:
            width = HALF if boxes == HALVES else WIDTH
            draw_box(ax, *box, width, filled=number == active)
    for start, end, bend in ARROWS:
        style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 14}
        style |= {"connectionstyle": f"arc3,rad={bend}", "color": "grey"}
        ax.add_patch(FancyArrowPatch(start, end, **style))
    for x, y, text, align in WORDS:
        ax.text(x, y, text, ha=align, va="bottom", **WORDS_LOOK)
    now = "" if active is None else f" Box {active + 1} of {len(stages)} is filled."
    describe(ax.figure, LOOP_IN_WORDS + now)
    return ax


def draw_box(
    ax: Axes,
    left: float,
    bottom: float,
    colour: str,
    text: str,
    width: float,
    filled: bool,
) -> None:
    """One step of the loop."""
    style: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=1.2", "lw": 2.2}
    style |= {"facecolor": colour if filled else "white", "edgecolor": colour}
    ax.add_patch(FancyBboxPatch((left, bottom), width, HEIGHT, **style))
    centre = (left + width / 2, bottom + HEIGHT / 2)
    ink = "white" if filled else colour
    ax.text(*centre, text, ha="center", va="center", color=ink)


def plot_versions(num_epochs: int, num_steps: int, period: int) -> Axes:
    """Which weights each policy stands for, step by step.

    num_steps is mu; the reference is copied every `period` epochs. The height is how
    many optimizer steps the weights behind a name have seen.
    """
    ax = axes_row(height=3.0)[0]
    steps = torch.arange(num_epochs * num_steps)
    # (name, colour, how many steps its weights last)
    policies = (
        (r"$\pi$", PI, 1),
        (r"$\pi_{old}$", PI_OLD, num_steps),
        (r"$\pi_{ref}$", PI_REF, num_steps * period),
    )
    for (name, colour, lasts), line in zip(policies, LINES, strict=False):
        version = steps // lasts * lasts
        ax.step(steps, version, where="post", color=colour, ls=line, lw=2, label=name)
    ax.legend(loc="upper left")
    ax.set_xticks(range(0, len(steps), num_steps))  # where an epoch begins
    return finish(ax, "optimizer step", "steps its weights have taken")


def plot_passes(num_tokens: int, num_steps: int) -> Axes:
    """Which tokens of a response each forward pass goes through, in order of time.

    A pass that samples goes through one token; one that scores goes through all.
    """
    ax, start = axes_row(width=7.6, height=3.2)[0], num_tokens
    look: dict[str, Any] = {"width": 1, "align": "edge", "ec": GROUND, "lw": 0.6}
    name = f"sampling: {num_tokens} passes"
    ax.bar(range(start), 1, bottom=range(start), color=PI, label=name, **look)
    for name, passes, colour, hatch in (
        (r"$\pi_{old}$ scores", 1, PI_OLD, ""),
        (r"$\pi_{ref}$ scores", 1, PI_REF, ""),
        ("inner steps", num_steps, PI, "//"),
    ):
        look |= {"label": f"{name}: {passes} pass{'es' if passes > 1 else ''}"}
        at = range(start, start + passes)
        ax.bar(at, num_tokens, color=colour, hatch=hatch, **look)
        start += passes
    ax.locator_params(integer=True)
    ax.set(xlim=(0, start), ylim=(num_tokens, 0))
    legend_above(finish(ax, "forward pass", "token")).grid(visible=False)
    text = f"A stair of {num_tokens} sampling passes with a token each, then"
    whole = f"{start - num_tokens} passes over all tokens"
    describe(ax.figure, f"{text} {whole}.")
    return ax


# What a learning rate makes of a run: why groups tie, and what is sorted.


def draw_rate(run: History, learning_rate: float) -> str:
    """The picture for a slider: why groups tie, what is sorted. -> the sentence."""
    axes = axes_row(2, width=9.0, height=3.1)
    right, wrong = (
        run.epochs(kind).mean(dim=-1) for kind in ("tied_right", "tied_wrong")
    )
    draw_ties(axes[0], right, wrong)
    draw_seeds(axes[1], run.epochs("sorted_probability"), PI, "P(sorted)")
    axes[1].set_title(f"learning rate {learning_rate:g}")
    sorts = run.final("sorted_probability").mean()
    describe(
        axes[0].figure,
        f"Shares of the groups that are tied, stacked: all sorted from {right[0]:.2f} "
        f"to {right[-1]:.2f}, none sorted from {wrong[0]:.2f} to {wrong[-1]:.2f}. "
        f"Beside it P(sorted), a line for each seed; their mean ends at {sorts:.2f}.",
    )
    return (
        f"learning rate {learning_rate:g}: at the end {right[-1]:.2f} of the groups "
        f"are tied, all sorted, and {wrong[-1]:.2f} tied, none sorted; P(sorted) is "
        f"{sorts:.2f}."
    )


def draw_ties(ax: Axes, right: Tensor, wrong: Tensor) -> None:
    """The shares of two kinds of tied groups, stacked. [epoch] each"""
    hatched: dict[str, Any] = {"facecolor": DOWN, "edgecolor": GROUND, "hatch": "//"}
    epochs, both = range(len(right)), right + wrong
    ax.fill_between(epochs, right, color=UP, label="tied, all sorted", lw=0)
    ax.fill_between(epochs, right, both, label="tied, none sorted", lw=0, **hatched)
    ax.set_ylim(-0.04, 1.04)
    legend_above(finish(ax, "epoch", "share of the groups"))


def draw_seeds(ax: Axes, curves: Tensor, colour: str, ylabel: str) -> None:
    """Curves [epoch seed] of shares, and their mean."""
    ax.plot(curves, color=colour, alpha=0.35, lw=0.8)
    ax.plot(curves.mean(dim=-1), color=colour, lw=3, label="mean")
    ax.set_ylim(-0.04, 1.04)
    finish(ax, "epoch", ylabel)


# Each sampled token: how likely it was when it was drawn, and is now; its push.


WHAT_THE_LOSS_DOES = (  # in which part of the clip's plane, in shares of its sides
    (0.02, 0.92, "pushed up"),
    (0.98, 0.92, "clipped: no push"),
    (0.02, 0.565, r"$\delta = 0$: no push"),
    (0.02, 0.08, "clipped: no push"),
    (0.98, 0.08, "pushed down"),
)


def draw_tokens(ratio: Tensor, deltas: Tensor, epsilon: float = 0.2) -> str:
    """The tokens of a batch and the clip, for a slider; -> the sentence below them.

    ratio [batch trial pos], deltas [batch trial]. The reference is the policy that
    sampled, as in epoch 0: where every ratio is 1, the KL has no gradient.
    """
    each = deltas[..., None].expand_as(ratio).flatten()
    ax = axes_row(width=7.0)[0]
    gone = int(draw_clip_plane(ax, ratio.flatten(), each, epsilon).sum())
    ground: dict[str, Any] = {"facecolor": GROUND, "lw": 0, "pad": 2}
    for x, y, words in WHAT_THE_LOSS_DOES:
        place: dict[str, Any] = {"ha": "right" if x > 0.5 else "left", "va": "center"}
        ax.text(x, y, words, transform=ax.transAxes, bbox=ground, **place)
    none = int((each == 0).sum())
    pull = "pulls none of them yet" if bool((ratio == 1).all()) else "pulls them all"
    return (
        f"{len(each)} tokens: {gone} get nothing from the clipped loss any more "
        f"(hollow), {none} have a delta of 0. The KL {pull}."
    )
