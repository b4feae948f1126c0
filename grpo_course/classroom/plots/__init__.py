"""One function for each kind of picture. Colours are safe for colour-blind readers.

Here are the kinds that many notebooks draw. The others, and the words:

    palette         the visual language: one colour and one sign for one thing
    mechanism       a policy before and after, an update as arrows, a group, the clip
    moment          a policy and its group, with the sign of each delta
    groups          groups in rows, deltas as arrows; the groups of a batch
    simplex         three answers: policies in a triangle; estimates as a fan of arrows
    pushes          deltas that cancel beside pushes that do not, in that triangle
    moving          a film or a picture with sliders, which needs no kernel
    then_and_now    each sampled token, when it was drawn and after some steps
    reweighing      old samples, counted as often as the new policy draws them
    clipping        one token's objective by its ratio; a rollout's tokens and the clip
    price_of_kl     how far each rollout went, and the price that follows
    mean_weights    three means over a batch, a block for the weight of each token
    kl_estimators   two policies, and what k1, k2 and k3 say of them
    loop_diagram    the training loop as boxes, its three policies, its passes
    landings        reward over KL: where runs end, and the best there is
    panel           what to look at while the loss says nothing
    log_panel       the log of one run over the range of healthy runs
    trainer_flow    the stages of the hunt's trainer, and where a defect was
    case_mechanisms  what goes wrong inside a trainer, for each guided case
    probe_matrix    what probes say of trainers
    sweeps          how wrong an update is as a setting moves; what defects cost
    comparisons     gaps to a baseline; means and the gap of two; before and after
    trades          where updates point; what is won against what is kept
    stretch         what a mode makes of two gradients: lengths around a line
    beyond          a batch's deltas under two spreads; an engine's samples; stairs
    waiting         when writers write and the learner learns, as bars in time
    token_rows      texts as coloured cells, with what belongs to each token below it
    token_writing   what a model says before each token; what its answers earn
    token_places    the shift by one; the side of padding; places counted in two ways
    token_push      how hard each token pushes, under each mean over a batch
    token_gradients  the gradient of each token; how a token mean counts responses
    kl_area         the KL as an area, and where a price for it ends
    text_pieces     texts in coloured pieces: what a grader reads, what is scored
    word_problems   splits, orders of copies, what is paid, errors, how groups tie
    forks           answers token by token: what one step moved, and how far
    reward_parts    a group's rewards, part by part, and its deltas
    ratio_levels    ratios of tokens and of responses; how hard each token pulls
    gae_light       how each TD error travels back to the tokens before it
    value_steps     a critic's values as a stair, TD errors as its steps
    critic_reads    which tokens move each of a critic's values
    value_clip      the critic's losses, and where the clipped one lets go
    token_pay       KL in the reward: what a token is paid, and its return
    entropy_push    what an entropy bonus does to one row of a policy
    answer_tree     all responses of a small world as a tree; how hard each is blamed
    overrated       every response by its true and its learned reward; what beta saves
    memory_blocks   what stays in memory, as blocks drawn to scale
    reward_map      what a reward pays every response; groups that tie
    prompt_map      what a policy writes to every prompt there is
    learned_counts  bars of shares: prompts that each seed has learned; that push
    run_rows        runs in rows, the healthy one behind; training beside held out
    ways            what each seed gained, for each way to answer
    rates           what a learning rate makes of a run, and why groups tie
    while_it_moves  frames of films: a policy while its loss or entropy says little
    alt_text        what a plot shows, for readers who cannot see it
    alt_words       numbers, ranges and labels as one says them
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots.palette import COLOURS, LINES

MOST_DOTS = 20  # on a line


def axes_row(count: int = 1, width: float = 7.0, height: float = 3.2) -> list[Axes]:
    """A row of empty axes, sized for a slide."""
    _, axes = plt.subplots(1, count, figsize=(width, height), squeeze=False)
    return list(axes[0])


def finish(ax: Axes, xlabel: str, ylabel: str, title: str = "") -> Axes:
    """Labels, a title and a light grid; returns the axes."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_title(title)
    ax.grid(alpha=0.3)
    return ax


def plot_bands(
    curves: dict[str, Tensor],
    ylabel: str,
    xlabel: str = "epoch",
    title: str = "",
    x: Sequence[float] | None = None,
    ax: Axes | None = None,
    colours: Sequence[str] = COLOURS,
) -> Axes:
    """Curves [step seed]: the line is the mean, the band holds 80 % of the seeds.

    More than two bands would mix: each seed is then a thin line instead.
    """
    ax = ax or axes_row()[0]
    spread = [label for label, curve in curves.items() if curve.shape[-1] > 1]
    for (label, curve), colour, line in zip(
        curves.items(), colours, LINES, strict=False
    ):
        steps = range(len(curve)) if x is None else x
        low, high = (curve.float().quantile(q, dim=-1) for q in (0.1, 0.9))
        ax.plot(steps, curve.float().mean(dim=-1), color=colour, ls=line, label=label)
        if len(spread) <= 2:
            ax.fill_between(steps, low, high, color=colour, alpha=0.18, lw=0)
        elif label in spread:
            ax.plot(steps, curve, color=colour, alpha=0.25, lw=0.6, zorder=1)
    finish(ax, xlabel, ylabel, title)
    return legend_above(ax) if len(curves) > 1 else ax


def legend_above(ax: Axes) -> Axes:
    """A legend over the axes, where no curve runs; a title moves up to make room."""
    count = len(ax.get_legend_handles_labels()[1])
    columns = 2 if count in (2, 4) else 3
    place: dict = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
    ax.legend(ncols=columns, borderpad=0.2, columnspacing=1.2, **place)
    ax.set_title(ax.get_title(), pad=6 + 20 * -(-count // columns))
    return ax


def plot_threads(
    curve: Tensor, ylabel: str, xlabel: str = "epoch", ax: Axes | None = None
) -> Axes:
    """A thin line for each seed, and a thick one for their median. [step seed]"""
    ax = ax or axes_row(height=2.8)[0]
    ax.plot(curve, color=COLOURS[5], lw=1)
    middle = curve.float().quantile(0.5, dim=-1)
    ax.plot(middle, color=COLOURS[0], lw=3, label="median of the seeds")
    return finish(ax, xlabel, ylabel)


def plot_seeds(
    values: dict[str, Tensor], xlabel: str, title: str = "", ax: Axes | None = None
) -> Axes:
    """One row a setting: a dot for each seed, a bar for the mean. Values are [seed]."""
    ax = ax or axes_row(height=0.7 + 0.36 * len(values))[0]
    for row, value in enumerate(values.values()):
        jitter = torch.linspace(-0.22, 0.22, len(value))
        ax.barh(row, value.mean(), color=COLOURS[5], alpha=0.45, height=0.7)
        ax.plot(value, row + jitter, "o", ms=3.5, color=COLOURS[0], alpha=0.8)
    ax.set_yticks(range(len(values)), list(values))
    ax.invert_yaxis()
    return finish(ax, xlabel, "", title)


def plot_policy(probs: Tensor, title: str = "", ax: Axes | None = None) -> Axes:
    """The probability of each number at each position. [pos vocab]"""
    ax = ax or axes_row(width=4.5)[0]
    ax.set_xticks(range(probs.shape[1]))
    ax.set_yticks(range(probs.shape[0]))
    return fill_cells(finish(ax, "number", "position", title), probs)


def fill_cells(ax: Axes, values: Tensor) -> Axes:
    """Numbers between 0 and 1, each in a cell of its colour. [row column]"""
    ax.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, cells in enumerate(values.tolist()):
        for column, value in enumerate(cells):
            ink = "white" if value > 0.6 else "black"
            text = f"{value:.2f}"
            ax.text(column, row, text, ha="center", va="center", color=ink)
    ax.grid(visible=False)
    return ax


def plot_counts(counts: dict[str, Tensor], xlabel: str, ylabel: str) -> list[Axes]:
    """A small histogram for each entry; counts[name][k] is how many have value k."""
    axes = axes_row(len(counts), width=2.6 * len(counts), height=2.6)
    for ax, (name, count), colour in zip(axes, counts.items(), COLOURS, strict=False):
        ax.bar(range(len(count)), count, color=colour)
        for value, height in enumerate(count.tolist()):
            ax.text(value, height, f"{height:g}", ha="center", va="bottom")
        ax.set_xticks(range(len(count)))
        finish(ax, xlabel, ylabel if ax is axes[0] else "", name).margins(y=0.15)
    return axes


def plot_lines(
    lines: dict[str, Tensor],
    x: Sequence[float],
    xlabel: str,
    ylabel: str,
    title: str = "",
    ax: Axes | None = None,
    colours: Sequence[str] = COLOURS,
) -> Axes:
    """Exact curves, one line each; with dots, unless so many would hide the dashes."""
    ax = ax or axes_row()[0]
    dot = "o" if len(x) <= MOST_DOTS else ""
    for (label, y), colour, line in zip(lines.items(), colours, LINES, strict=False):
        ax.plot(x, y, color=colour, ls=line, marker=dot, ms=3, label=label)
    finish(ax, xlabel, ylabel, title)
    return legend_above(ax) if len(lines) > 1 else ax
