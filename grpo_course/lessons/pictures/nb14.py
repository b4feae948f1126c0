"""What notebook 14 alone draws."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Circle, Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    ARROW,
    COLOURS,
    DOWN,
    GROUND,
    LEVEL,
    LINES,
    PI,
    UP,
    axes_row,
    finish,
    legend_above,
    legend_below,
    words_of,
)
from grpo_course.loop import mean_and_error
from grpo_course.sequences import ShortAnswers

# Every response of a small world as a tree: what can be written, token by token.


Node = tuple[int, ...]  # what was written so far


BLAME = LinearSegmentedColormap.from_list("blame", [GROUND, DOWN])


COMPLETE = "#d0d0d0"  # a whole response; what can be continued is empty


def answers_of(world: ShortAnswers) -> list[Node]:
    """The tokens of each response, without its padding."""
    rows = zip(world.responses.tolist(), world.lengths.int().tolist(), strict=True)
    return [tuple(row[:length]) for row, length in rows]


def node_places(answers: list[Node]) -> dict[Node, tuple[float, int]]:
    """Where each beginning stands: over the middle of all that it can become."""
    below = defaultdict(list)
    for x, answer in enumerate(sorted(answers)):
        for length in range(len(answer) + 1):
            below[answer[:length]].append(x)
    return {node: (sum(xs) / len(xs), -len(node)) for node, xs in below.items()}


def plot_tree(
    world: ShortAnswers, reward: Tensor, blame: Mapping[str, Tensor] | None = None
) -> list[Axes]:
    """All responses, the path of those with a reward green. reward, blame[name] [all].

    With `blame` a tree for each name: the larger and darker a wrong response's last
    token, the more each of its tokens is blamed.
    """
    trees: Mapping[str, Tensor | None] = blame or {"": None}
    axes = axes_row(len(trees), width=10.0, height=3.0)
    answers = answers_of(world)
    rights = [answer for answer, r in zip(answers, reward, strict=True) if r > 0]
    for ax, (name, values) in zip(axes, trees.items(), strict=True):
        draw_paths(ax, answers, rights)
        if ax is axes[0]:
            name_lengths(ax, answers)
        if values is None:
            draw_tokens(ax, answers, rights, world.end)
        else:
            top = max(each.max().item() for each in (blame or {}).values())
            draw_blame(ax, answers, rights, values.tolist(), top)
        ax.set_title(name)
        ax.margins(x=0.03, y=0.1)
        ax.axis("off")
    describe(axes[0].figure, tree_words(world, rights, blame or {}))
    return axes


def draw_paths(ax: Axes, answers: list[Node], rights: list[Node]) -> None:
    """A line from each beginning to each token that can follow it."""
    places = node_places(answers)
    for node, (x, y) in places.items():
        if node:
            start_x, start_y = places[node[:-1]]
            paid = any(answer[: len(node)] == node for answer in rights)
            look = {"color": UP, "lw": 4} if paid else {"color": LEVEL, "lw": 0.7}
            ax.plot([start_x, x], [start_y, y], zorder=1, **look)  # type: ignore[arg-type]


def name_lengths(ax: Axes, answers: list[Node]) -> None:
    """How many tokens the responses at each height have."""
    for length in {len(answer) for answer in answers}:
        words = f"{length} token" + ("s" if length > 1 else "")
        place: dict[str, Any] = {"ha": "right", "va": "center"}
        ax.text(-1.3, -length, words, **place)


def draw_tokens(ax: Axes, answers: list[Node], rights: list[Node], end: int) -> None:
    """A circle for a word, a square for the end; a whole response is filled."""
    for node, (x, y) in node_places(answers).items():
        marker = "s" if node[-1:] == (end,) else "o"
        fill = UP if node in rights else COMPLETE if node in answers else GROUND
        ax.plot(x, y, marker, ms=13, mfc=fill, mec=LEVEL, mew=0.8)
        word = "" if marker == "s" else f"{node[-1]}" if node else "·"
        ax.text(x, y, word, ha="center", va="center_baseline")


def draw_blame(
    ax: Axes, answers: list[Node], rights: list[Node], blame: list[float], top: float
) -> None:
    """Each wrong response by what one of its tokens is blamed; that number beside."""
    places = node_places(answers)
    for answer, value in zip(answers, blame, strict=True):
        x, y = places[answer]
        if answer in rights:
            ax.plot(x, y, "*", ms=14, color=UP)
            continue
        size, fill = 12 * (value / top) ** 0.5, BLAME(value / top)
        ax.plot(x, y, "o", ms=size, mfc=fill, mec=DOWN, mew=0.8)
    each = {len(a): v for a, v in zip(answers, blame, strict=True) if a not in rights}
    for length, value in each.items():
        ax.text(len(answers) + 0.3, -length, f"{value:.3f}", va="center")


def tree_words(
    world: ShortAnswers, rights: list[Node], blame: Mapping[str, Tensor]
) -> str:
    """How large the tree is, what pays, and what a token is blamed at each length."""
    spoken = [
        " ".join("end" if token == world.end else str(token) for token in answer)
        for answer in rights
    ]
    words = f"A tree of {len(world.responses)} responses; with a reward: "
    told = [words + ", ".join(spoken)]
    for name, values in blame.items():
        by_length = dict(
            zip(world.lengths.int().tolist(), values.tolist(), strict=True)
        )
        blames = ", ".join(f"{value:.3f}" for _, value in sorted(by_length.items()))
        told.append(f"{name}, the blame of a token by length: {blames}")
    return "; ".join(told) + "."


# Ways to do one thing beside each other: gaps, means, before and after.


def plot_before_after(
    pairs: Mapping[str, tuple[Tensor, Tensor]], what: str, least: float = 1e-3
) -> list[Axes]:
    """A dot a case: a share before, on a logarithmic axis, and after. [case] each.

    A share after below `least` is a cross: given up. Dots stand a little higher or
    lower than their share, so that equal ones are seen; on the dotted line both shares
    are the same.
    """
    axes, told = axes_row(len(pairs), width=9.0, height=3.7), []
    same = torch.logspace(-4, 0, 200)
    for ax, (title, (before, after)) in zip(axes, pairs.items(), strict=True):
        gone, shift = after < least, torch.arange(len(after)) * 0.618 % 1
        y = after + 0.1 * (shift - 0.5)
        look: dict[str, Any] = {"ls": "", "alpha": 0.5, "color": COLOURS[0]}
        ax.plot(same, same, "k:", zorder=3, label="unchanged")
        ax.plot(before[~gone], y[~gone], "o", ms=4, label=f"above {least:g}", **look)
        look |= {"marker": "x", "ms": 5, "color": COLOURS[1]}
        ax.plot(before[gone], y[gone], label="given up", **look)
        ax.set(xscale="log", xlim=(0.8 * before.min(), 1.4), ylim=(-0.1, 1.1))
        finish(ax, f"{what} before", f"{what} after" if ax is axes[0] else "", title)
        counts = f"{gone.sum()} of {len(gone)} are given up"
        sunk = f"{(after < before).sum()} lie below the line of no change"
        told.append(f"{title}: {counts}, {(after > 0.9).sum()} end above 0.9, {sunk}")
    legend_below(axes)
    describe(axes[0].figure, f"Dots by {what} before and after. {'; '.join(told)}.")
    return axes


# Where runs with a price for the KL end, beside the best that there is.


MARKERS = ("o", "s", "^", "D")


SIZES = (18, 14, 11, 8, 5)  # of the terms: one inside another is seen


STAR: dict[str, Any] = {"ls": "", "marker": "*", "ms": 38, "mfc": "#e6e6e6"}


STAR |= {"color": "#777777", "mew": 1, "zorder": 1}  # behind what lands on it


def plot_landings(
    ideal: Tensor,
    landed: Mapping[tuple[float, str], Tensor],
    targets: Mapping[float, Tensor],
) -> Axes:
    """Expected reward over KL: the best for each KL as a line, each run as a point.

    ideal [place 2], landed[beta, term] [2 seed] and targets[beta] [2] hold reward, then
    KL. A point is the mean over seeds, its bars one standard error; a colour is a term,
    a marker a beta, a star behind them the best policy for its beta.
    """
    ax = axes_row(width=8.5, height=3.8)[0]
    ax.plot(ideal[:, 1], ideal[:, 0], color="grey", label="best for its KL")
    betas, terms = ([*dict.fromkeys(column)] for column in zip(*landed, strict=True))
    for paid, kl in targets.values():
        ax.plot(kl, paid, **STAR)
    ax.plot([], [], label="best for its β", **STAR | {"ms": 16})
    for (beta, term), ends in landed.items():
        (paid, kl), errors = mean_and_error(ends)
        row = terms.index(term)
        look: dict[str, Any] = {"color": COLOURS[row], "ms": SIZES[row], "mew": 2}
        look |= {"fmt": MARKERS[betas.index(beta)], "elinewidth": 1.2, "mfc": "none"}
        name = f"{term}".replace("_", " ") if beta == betas[0] else None
        ax.errorbar(kl, paid, errors[0], errors[1], label=name, **look)
    for beta, marker in zip(betas, MARKERS, strict=False):
        ax.plot([], [], marker, color="black", mfc="none", label=f"β = {beta}")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    finish(ax, "exact KL (nats); bars: one standard error", "expected reward")
    plt.tight_layout()
    describe(ax.figure, landings_words(landed, targets))
    return ax


def landings_words(
    landed: Mapping[tuple[float, str], Tensor], targets: Mapping[float, Tensor]
) -> str:
    """Where each run ends and where it should, as one says it."""
    ends = {f"{term}, β = {beta}": run.mean(-1) for (beta, term), run in landed.items()}
    ends |= {f"best for β = {beta}": goal for beta, goal in targets.items()}
    told = [f"{name} at {kl:.2f} nats, {paid:.2f}" for name, (paid, kl) in ends.items()]
    words = "Expected reward against exact KL, bars of one standard error"
    return f"{words}: {'; '.join(told)}."


# Where updates point beside a gradient; what is won against what is kept.


# Where the first and the last beta stand, in each run.
LABELS = (((10, -15), (10, -15)), ((9, -14), (9, 5)), ((9, 6), (0, 8)))


TRUE: dict[str, Any] = ARROW | {"color": "black", "lw": 4, "mutation_scale": 20}


THIN: dict[str, Any] = ARROW | {"color": PI, "lw": 1.5, "mutation_scale": 12}


NOISE: dict[str, Any] = {"color": COLOURS[5], "alpha": 0.3, "lw": 0, "zorder": 0}


def along_and_across(updates: Tensor, true: Tensor) -> Tensor:
    """Each update as a point: along its true gradient, and across it. -> [case 2]

    updates and true are [case weight]; the unit is the length of the true gradient.
    """
    length = true.norm(dim=-1)
    along = (updates * true).sum(-1) / length
    across = (updates.square().sum(-1) - along.square()).clamp(min=0).sqrt()
    return torch.stack([along, across], dim=-1) / length[:, None]


def expected_error(ends: Tensor, noise: Tensor | float = 0.0) -> Tensor:
    """How far an estimate is from the true gradient, mean over cases. -> []

    ends [case 2] are where it points on average, noise [case] is how far it scatters.
    """
    off = ends - ends.new_tensor([1.0, 0.0])
    return (off.square().sum(-1) + noise**2).sqrt().mean()


def plot_turned(
    ends: Mapping[str, Tensor],
    noise: Mapping[str, Tensor] | None = None,
    view: Sequence[float] = (0, 1.05, -0.06, 0.4),
) -> list[Axes]:
    """The true gradient as a black arrow, and beside it each update as a blue one.

    ends[name] [case 2] are from `along_and_across`; `view` is left, right, bottom, top.
    Titles tell angles. With noise[name] [case] the updates are dots, in a disc of this
    radius, orange where they point away; titles tell the error, the smallest in bold.
    """
    errors = {n: expected_error(ends[n], each) for n, each in (noise or {}).items()}
    axes, told = axes_row(len(ends), width=10.0, height=2.5), []
    for ax, (name, each) in zip(axes, ends.items(), strict=True):
        ax.annotate("", (1, 0), (0, 0), arrowprops=TRUE)
        words = error_words(errors[name], noise[name]) if noise else angle_words(each)
        least = bool(noise) and errors[name] == min(errors.values())
        if noise:
            draw_cloud(ax, each, noise[name])
        for end in [] if noise else each.tolist():
            ax.annotate("", end, (0, 0), arrowprops=THIN)
        ax.set(xlim=view[:2], ylim=view[2:], aspect="equal")
        ax.set_title(f"{name}\n{words}", weight="bold" if least else "normal")
        ax.axis("off")
        told.append(f"{name} {words}".replace("\n", " "))
    plt.gcf().set_layout_engine("constrained", h_pad=0.12)  # room for the titles
    text = "Updates beside the arrow of the true gradient"
    describe(axes[0].figure, f"{text}: {'; '.join(told)}.")
    return axes


def draw_cloud(ax: Axes, ends: Tensor, noise: Tensor) -> None:
    """A dot for each end, a disc around their mean; left of the dotted line is away."""
    ax.axvline(0, color="grey", ls=":", lw=1)
    x, y = ends.mean(0).tolist()
    ax.add_patch(Circle((x, y), noise.mean().item(), **NOISE))
    away = ends[:, 0] < 0
    for colour, some in ((PI, ends[~away]), (DOWN, ends[away])):
        ax.plot(*some.T, "o", ms=6, color=colour, alpha=0.6, mew=0, zorder=5)


def error_words(error: Tensor, noise: Tensor) -> str:
    """An expected error; with noise in it, it is the total one."""
    return f"{'total ' if noise.any() else ''}error {error:.2f}"


def angle_words(ends: Tensor) -> str:
    """How far arrows are turned: their mean, and the worst of several."""
    turned = torch.atan2(ends[:, 1], ends[:, 0]).rad2deg()
    worst = f", at worst {turned.max():.0f}°" if len(ends) > 1 else ""
    return f"{turned.mean():.0f}°{worst}"


def plot_trade(
    runs: Mapping[str, tuple[Tensor, Tensor]],
    betas: Sequence[float],
    xlabel: str,
    ylabel: str,
    remedy: tuple[float, float],
) -> Axes:
    """What runs win across and what they keep upwards, a line each, a dot each beta.

    runs hold won and kept, [beta seed] each. Bars are one standard error; the first
    and the last beta stand beside their dots. The corner where enough is won and kept,
    from `remedy` on, is shaded.
    """
    ax, told = axes_row(width=7.5, height=4.0)[0], []
    looks = zip(COLOURS, LINES, LABELS, strict=False)
    for (name, pair), (colour, line, shifts) in zip(runs.items(), looks, strict=False):
        (won, lost), (kept, unsure) = map(mean_and_error, pair)
        look: dict[str, Any] = {"color": colour, "ls": line, "elinewidth": 0.8}
        ax.errorbar(won, kept, unsure, lost, marker="o", ms=6, label=name, **look)
        ends = [(won[i].item(), kept[i].item()) for i in (0, -1)]
        for beta, end, shift in zip((betas[0], betas[-1]), ends, shifts, strict=True):
            ink: dict[str, Any] = {"color": colour, "textcoords": "offset points"}
            ax.annotate(f"β = {beta:g}", end, shift, **ink)
        told.append(f"{name} from {words_of(*ends[0])} to {words_of(*ends[1])}")
    ax.set(xlim=(-0.05, 1.2), ylim=(0, 1.08))
    shade_remedy(ax, *remedy)
    legend_above(finish(ax, xlabel, ylabel))
    plt.tight_layout()
    span = f"β from {betas[0]:g} to {betas[-1]:g}"
    told.append(f"a remedy from {words_of(*remedy)} on")
    describe(ax.figure, f"{ylabel} against {xlabel}, {span}: {'; '.join(told)}.")
    return ax


def shade_remedy(ax: Axes, won: float, kept: float) -> None:
    """The upper right corner of the axes, from these two shares on."""
    right, top = ax.get_xlim()[1], ax.get_ylim()[1]
    corner = Rectangle((won, kept), right - won, top - kept, alpha=0.15, color=UP, lw=0)
    ax.add_patch(corner)
    ax.text(right, top - 0.02, "a remedy ", ha="right", va="top", color=UP)
