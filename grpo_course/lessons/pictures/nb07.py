"""What notebook 07 alone draws."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.checks import unknown_name
from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    CORNERS,
    LINED,
    LINES,
    NO_POLICY,
    PI,
    SIGNS,
    axes_row,
    corner_names,
    draw_arrow,
    draw_group,
    draw_policy,
    finish,
    name_corners,
    plot_bands,
    sign_colour,
)
from grpo_course.loop import History
from grpo_course.sort import push_of

# Ways to do one thing beside each other: gaps, means, before and after.


def plot_agreement(one: Tensor, other: Tensor, xlabel: str, ylabel: str) -> Axes:
    """Two ways to one number, a dot a case: on the diagonal they agree. [case] each"""
    ax = axes_row(width=5.5, height=3.6)[0]
    ax.axhline(0, color="black", lw=0.8)
    ax.axline((0, 0), slope=1, color=NO_POLICY, lw=1)
    ax.plot(one, other, "o", ms=5, color=COLOURS[0], alpha=0.5)
    above, count = int((other > 0).sum()), len(other)
    title = f"{above} of {count} above zero; between {other.min():.3f} and "
    finish(ax, xlabel, ylabel, f"{title}{other.max():+.3f}")
    describe(
        ax.figure,
        f"{count} dots by {xlabel} and {ylabel}, at most "
        f"{(one - other).abs().max():.5f} away from the diagonal. {ax.get_title()}.",
    )
    return ax


# The panel: what to look at while the loss says nothing.


# Column of a history -> title of its small plot, in the order to read them in.
PANEL = {
    "mean_reward": "mean reward",
    "gradient_norm": "gradient norm",
    "tied_groups": "tied groups (share)",
    "sampled_entropy": "entropy (nats a token)",
    "clip_fraction": "clipped tokens (share)",
    "kl": "KL to the reference (nats)",
    "mean_length": "length (tokens)",
    "loss": "loss",
}


# Why groups are tied, in a task of texts: drawn where they are asked for by name, and
# beside the share of all tied groups where a panel is of one run.
TIES = {
    "tied_right": "tied, all right (share)",
    "tied_wrong": "tied, all wrong (share)",
}


TITLES = PANEL | TIES


SHARES = {"tied_groups", "clip_fraction", *TIES}


ROUNDING = 1e-5  # a measure that varies by less is drawn as flat


COLUMNS = 4


WIDTH, ROW_HEIGHT = 11.0, 2.3  # inches; two rows and the legend fit a slide


def plot_panel(
    runs: dict[str, History], names: Sequence[str] = tuple(PANEL)
) -> list[Axes]:
    """A small plot for each measure; each run is a line with its band over the seeds.
    With more than two runs, their lines alone are drawn.

    A measure that no run recorded is left out. Names are those of TITLES. Where an
    epoch has several inner steps, a point is their mean. The tied groups of a single
    run are split by kind: all right, all wrong.

    Raises ValueError for an unknown name, and if there is nothing to draw.
    """
    for name in names:
        if name not in TITLES:
            raise unknown_name("names", name, TITLES)
    shown = [name for name in names if any(has(run, name) for run in runs.values())]
    if not shown:
        raise ValueError(
            f"names={tuple(names)}: none of the runs recorded any of them. The KL, "
            "for one, is recorded where kl_penalty is above 0."
        )
    axes = panel_axes(len(shown))
    for ax, name in zip(axes, shown, strict=True):
        draw_measure(ax, runs, name)
    legends = [ax.get_legend_handles_labels() for ax in axes]
    handles, labels = max(legends, key=lambda legend: len(legend[1]))
    figure = axes[0].figure
    figure.supxlabel("epoch")
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return axes


def panel_axes(count: int) -> list[Axes]:
    """`count` small axes in rows of four, with room for one legend above."""
    columns = min(count, COLUMNS)
    rows = -(-count // COLUMNS)
    size = (WIDTH * columns / COLUMNS, ROW_HEIGHT * rows + 0.4)
    _, grid = plt.subplots(
        rows, columns, figsize=size, squeeze=False, layout="constrained"
    )
    for ax in grid.flat[count:]:
        ax.set_visible(False)
    return list(grid.flat[:count])


def draw_measure(ax: Axes, runs: dict[str, History], name: str) -> None:
    """One measure of all runs that recorded it."""
    # A run without the measure keeps its place, so that colours stay the same.
    curves = {label: curve_or_gap(run, name) for label, run in runs.items()}
    if name == "tied_groups" and len(runs) == 1:
        curves |= kinds_of_ties(*runs.values())
    # Bands or seeds of more than two runs would hide each other in a plot so small.
    shown = curves if len(runs) <= 2 else means(curves)
    plot_bands(shown, "", xlabel="", title=TITLES[name], ax=ax)
    if legend := ax.get_legend():
        legend.remove()  # one for the whole panel instead
    ax.set_title(TITLES[name], pad=6)
    if name in SHARES:
        ax.set_ylim(-0.05, 1.05)
    else:
        ax.set_ylim(*limits(list(curves.values()), list(shown.values())))


def means(curves: dict[str, Tensor]) -> dict[str, Tensor]:
    """The mean over the seeds, as one seed. [epoch seed] -> [epoch 1]"""
    return {label: curve.mean(dim=-1, keepdim=True) for label, curve in curves.items()}


def kinds_of_ties(run: History) -> dict[str, Tensor]:
    """Label -> the share of the groups that are tied for one reason."""
    labels = {kind: title.removesuffix(" (share)") for kind, title in TIES.items()}
    return {labels[kind]: measure(run, kind) for kind in TIES if has(run, kind)}


def limits(curves: list[Tensor], shown: list[Tensor]) -> tuple[float, float]:
    """The range of the bands, as far as it is drawn in.

    One seed's spike may leave it, or all else were flat.
    """
    bands = torch.cat([c.quantile(torch.tensor([0.1, 0.9]), -1) for c in curves], 1)
    drawn = torch.cat([curve.flatten() for curve in shown])
    bands, drawn = bands[bands.isfinite()], drawn[drawn.isfinite()]
    low = max(bands.min().item(), drawn.min().item())
    high = min(bands.max().item(), drawn.max().item())
    if high - low < ROUNDING:  # nothing happens: no zooming in on rounding errors
        return low - 0.1, high + 0.1
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def curve_or_gap(run: History, name: str) -> Tensor:
    """The measure epoch by epoch; not-a-number, which is not drawn, without it."""
    if has(run, name):
        return measure(run, name)
    return measure(run, "loss") * float("nan")


def measure(run: History, name: str) -> Tensor:
    """A column epoch by epoch, the mean over the inner steps. -> [epoch seed]"""
    if name == "clip_fraction":
        return measure(run, "clip_fraction_low") + measure(run, "clip_fraction_high")
    steps = [record for record in run.records if "step" in record]
    # One by one: with an early stop, epochs have different numbers of steps.
    epochs = [
        History(list(e)).curve(name) for _, e in groupby(steps, itemgetter("epoch"))
    ]
    return torch.stack([e.reshape(len(e), -1).float().mean(dim=0) for e in epochs])


def has(run: History, name: str) -> bool:
    """Whether a run recorded a measure."""
    column = "clip_fraction_low" if name == "clip_fraction" else name
    return any(column in record for record in run.records)


# Deltas that sum to zero, and pushes that do not: one group in 03's triangle.


ZOOM = 2.0  # of all pushes alike: the triangle tells directions, not lengths


EDGE, GAP = "#c8c8c8", 0.02


def pushes_on_logits(logits: Tensor, drawn: Tensor, deltas: Tensor) -> Tensor:
    """Each response's part of minus the gradient of the sequence-mean loss at ratio 1.

    logits [answer], drawn (the answer of each response), deltas [trial]
    -> [trial answer]
    """
    return push_of(drawn, deltas[:, None], logits.softmax(dim=-1)) / len(drawn)


def plot_pushes(
    logits: Tensor, rewards: Tensor, drawn: Tensor, deltas: Tensor
) -> list[Axes]:
    """The deltas of a group with their sum; its pushes tip to tail, with theirs.

    A push sums to zero over the three answers, so the triangle's plane holds all of
    it. logits and rewards [answer], drawn (which answer) and deltas [trial]
    """
    left, right = axes_row(2, width=10.0, height=4.3)
    names = ["ABC"[answer] for answer in drawn.tolist()]
    earned = zip(names, rewards[drawn].tolist(), strict=True)
    rows = [*(f"answer {name}   $R$ {reward:g}" for name, reward in earned), "sum"]
    total, reach = deltas.sum(), 1.6 * deltas.abs().max().item()
    left.set_xlim(-reach, reach)
    draw_group(left, torch.cat([deltas, total[None]]), rows, r"delta $\delta$", True)
    left.axhline(len(drawn) - 0.5, color="black", lw=1)
    left.set_title(f"the deltas add up to {total + 0.0:g}")
    signs = ["to" if delta > 0 else "away from" for delta in deltas.tolist()]
    words = [f"{sign} {name}" for sign, name in zip(signs, names, strict=True)]
    pushes = pushes_on_logits(logits, drawn, deltas)
    draw_chain(right, logits.softmax(dim=-1), pushes, deltas.tolist(), words)
    name_corners(right, corner_names(rewards, [], 0))
    length = pushes.sum(dim=0).norm()
    right.set_title(f"the pushes add up to a norm of {length:.2f}")
    plt.tight_layout()
    each = ", ".join(f"{w} {d:+.2f}" for w, d in zip(words, deltas, strict=True))
    sums = ", ".join(f"{x:+.3f}" for x in pushes.sum(dim=0).tolist())
    text = f"Deltas as arrows, their sum {total:.2f}; pushes tip to tail: {each}"
    describe(left.figure, f"{text}. Their sum, in black, is {sums} on A, B, C.")
    return [left, right]


def draw_chain(
    ax: Axes,
    probs: Tensor,
    pushes: Tensor,
    deltas: Sequence[float],
    words: Sequence[str],
) -> None:
    """Pushes tip to tail from the policy, in the colours of their deltas; their sum.

    probs [answer], pushes [trial answer]; a delta and words for each push
    """
    ax.plot(*CORNERS[[0, 1, 2, 0]].T, color=EDGE, lw=1)
    points = torch.cat([probs[None], ZOOM * pushes]).cumsum(dim=0) @ CORNERS
    stops = [(x, y) for x, y in points.tolist()]
    for (foot, head), delta, word in zip(pairwise(stops), deltas, words, strict=True):
        draw_arrow(ax, foot, head, delta, 3.0)
        (x, y), (across, up) = foot, (head[0] - foot[0], head[1] - foot[1])
        beside = (x + across / 2 + 0.3 * up + GAP, y + up / 2 - 0.3 * across)
        ax.text(*beside, word, va="center", path_effects=LINED)
    start, along = points[0], points[-1] - points[0]
    same: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    ax.quiver(*start, *along, color="black", width=0.012, zorder=3, **same)
    x, y = (start + along / 2).tolist()
    ax.text(x - 0.04, y, "sum:\n" + r"$-\nabla L$", ha="right", va="center")
    ax.plot(*start, "o", color=PI, ms=9, mec="white", zorder=4)
    ax.set(xlim=(-0.12, 1.12), ylim=(-0.1, 0.98), aspect="equal")
    ax.axis("off")


# The gradient of each token of a batch, and how a token mean counts responses.


NO_TOKEN: dict[str, Any] = {"facecolor": "none", "edgecolor": "#c8c8c8"}


def plot_gradients(gradient: Tensor, deltas: Tensor, mask: Tensor) -> Axes:
    """A cell for each token: green where a step down the loss makes it likelier.

    [batch trial pos], [batch trial], bool [batch trial pos]
    """
    ax, cells = axes_row(width=7.5, height=4.0)[0], gradient.flatten(0, 1)
    most = 1.3 * cells.abs().max().item()  # full colours would drown the numbers
    ax.imshow(-cells, cmap=SIGNS, vmin=-most, vmax=most, aspect="auto")
    for row, counts in enumerate(mask.flatten(0, 1).tolist()):
        for pos, is_token in enumerate(counts):
            if is_token:
                text = f"{cells[row, pos]:+.3f}"
                ax.text(pos, row, text, ha="center", va="center")
            else:
                corner = (pos - 0.5, row - 0.5)
                ax.add_patch(Rectangle(corner, 1, 1, hatch="///", lw=0, **NO_TOKEN))
    ax.set_yticks(range(len(cells)), [f"δ {d:+.2f}" for d in deltas.flatten().tolist()])
    ax.axhline(deltas.shape[1] - 0.5, color="black", lw=2)  # between two groups
    total, norm = deltas.sum().item(), cells.norm().item()
    title = f"the deltas add up to {total:g}; norm of the gradient {norm:.3f}"
    finish(ax, "token", "", title).grid(visible=False)
    told = [
        f"{d:+.2f} {c[0]:+.3f}" for d, c in zip(deltas.flatten(), cells, strict=True)
    ]
    text = "A row of cells for each response, a cell for each token, padding hatched"
    describe(ax.figure, f"{text}. Delta and gradient of a token: {'; '.join(told)}.")
    return ax


def draw_lengths(lengths: Tensor, deltas: Tensor) -> list[Axes]:
    """Tokens of each response, in the colour of its delta; tokens x delta. [trial]"""
    axes = axes_row(2, width=9.0, height=3.6)
    rows, product = range(len(lengths)), lengths * deltas
    axes[0].barh(rows, lengths, 0.6, color=[sign_colour(d) for d in deltas.tolist()])
    axes[0].set_yticks(rows, [f"δ {delta:+.2f}" for delta in deltas.tolist()])
    axes[0].set_ylim(len(lengths) - 0.5, -0.5)
    finish(axes[0], r"tokens $\ell$", "").grid(visible=False)
    axes[1].set_xlim(-14, 14)  # the same in each picture of a slider
    draw_group(axes[1], product, [""] * len(rows), r"$\ell \cdot \delta$", signed=True)
    axes[1].set_title(f"their sum: {product.sum() + 0.0:+.2f}")
    plt.tight_layout()
    told = ", ".join(
        f"{n} times {d:+.2f}" for n, d in zip(lengths, deltas, strict=True)
    )
    text = f"Bars of tokens beside arrows of tokens times delta: {told}"
    describe(axes[0].figure, f"{text}; the sum {product.sum() + 0.0:+.2f}.")
    return axes


# Frames of a film: what a policy does while its loss, or its entropy, says little.


def frame_axes(
    tables: int, curves: int, height: float = 2.9
) -> tuple[Figure, list[Axes], list[Axes]]:
    """Axes for tables of colours side by side, and right of them curves, stacked."""
    figure = plt.figure(figsize=(9.0, height), layout="constrained")
    grid = figure.add_gridspec(curves, tables + 1)
    left = [figure.add_subplot(grid[:, column]) for column in range(tables)]
    return figure, left, [figure.add_subplot(grid[row, -1]) for row in range(curves)]


def draw_so_far(
    ax: Axes,
    curves: dict[str, Tensor],
    now: int,
    ylabel: str,
    ylim: tuple[float, float],
) -> None:
    """Curves [step] up to the step `now`, with a dot there, on axes for all steps."""
    steps = max(map(len, curves.values()))
    for (name, curve), colour, line in zip(
        curves.items(), COLOURS, LINES, strict=False
    ):
        last = min(now, len(curve) - 1)
        ax.plot(range(last + 1), curve[: last + 1], color=colour, ls=line, label=name)
        ax.plot(last, curve[last], "o", ms=8, color=colour)
    ax.set(xlim=(-0.03 * steps, 1.03 * steps), ylim=ylim)
    finish(ax, "epoch", ylabel)


def draw_zero_loss(
    policies: Sequence[Tensor],
    answer: Sequence[int],
    loss: Tensor,
    reward: Tensor,
    epoch: int,
) -> str:
    """One frame: the policy of an epoch, the loss and the reward up to it.

    policies [epoch] of [pos vocab]; loss and reward [epoch]. -> the sentence below
    """
    _, (table,), (upper, lower) = frame_axes(1, 2)
    draw_policy(table, policies[epoch], answer, f"the policy, epoch {epoch}")
    draw_so_far(upper, {"": loss}, epoch, "loss", (-1, 1))
    draw_so_far(lower, {"": reward}, epoch, "reward", (0, 1.05 * reward.max().item()))
    upper.set(xlabel="", xticklabels=[])
    right = policies[epoch][range(len(answer)), list(answer)].prod()
    return (
        f"Epoch {epoch}: |loss| {abs(loss[epoch]):.5f}, reward {reward[epoch]:.2f}, "
        f"probability of the sorted answer {right:.2f}."
    )


def draw_collapse(
    policies: dict[str, Sequence[Tensor]],
    answer: Sequence[int],
    entropies: dict[str, Tensor],
    epoch: int,
    prompt: str,
) -> str:
    """One frame: what two policies say of one prompt, and their entropies up to it."""
    figure, tables, (ax,) = frame_axes(2, 1, height=3.2)
    figure.suptitle(f"Tables: the prompt {prompt}. Curve: all prompts.")
    for table, (name, seen) in zip(tables, policies.items(), strict=True):
        draw_policy(table, seen[epoch], answer, name)
    tables[1].set_ylabel("")
    draw_so_far(ax, entropies, epoch, "entropy (nats)", (-0.1, 1.7))
    places = range(len(answer)), list(answer)
    right = [
        f"{name} {seen[epoch][places].prod():.2f}" for name, seen in policies.items()
    ]
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    now = {name: each[epoch].clamp(min=0) + 0.0 for name, each in entropies.items()}
    told = [f"{name} {entropy:.2f}" for name, entropy in now.items()]
    return (
        f"Epoch {epoch}: probability of the sorted answer {', '.join(right)}; "
        f"entropy {', '.join(told)} nats a token."
    )


def draw_walk(
    probs: Tensor,
    answer: Sequence[int],
    line: Tensor,
    s: float,
    loss: float,
    outside: float,
) -> str:
    """One picture of a slider: the policy after a step s down the loss, and two curves.

    probs [pos vocab]; line [3 place] holds steps, and at each the loss and the
    probability of the answer, whose start is dotted; outside is the share of the tokens
    that have left the clip range.
    """
    _, (table,), (upper, lower) = frame_axes(1, 2, height=3.4)
    draw_policy(table, probs, answer, f"the policy after s = {s:g}")
    right = probs[range(len(answer)), list(answer)].prod()
    for ax, curve, now in ((upper, line[1], loss), (lower, line[2], right)):
        ax.plot(line[0], curve, color=PI)
        ax.plot(s, now, "o", ms=10, color="black")
    lower.axhline(line[2, 0].item(), color="black", ls=":")
    finish(upper, "", "loss").set_xticklabels([])
    finish(lower, "step s along minus the gradient", "sorted answer")
    return (
        f"s = {s:g}: loss {round(loss, 2) + 0.0:.2f}, probability of the sorted answer "
        f"{right:.5f}, tokens outside the clip range {outside:.2f}."
    )
