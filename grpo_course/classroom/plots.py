"""Pictures that several notebooks draw. Colours are safe for colour-blind readers."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.transforms import ScaledTranslation
from torch import Tensor

from grpo_course.classroom.alt_text import describe, plain
from grpo_course.formulas import compute_deltas

# The visual language of the course: one colour and one sign for one thing.


# Safe for colour-blind readers: Okabe and Ito, https://jfly.uni-koeln.de/color/
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))


# The policy that learns, the one that sampled (drawn as a ghost), the reference.
PI, PI_OLD, PI_REF, NO_POLICY = COLOURS[0], COLOURS[1], COLOURS[2], "#666666"


UP, DOWN, LEVEL = COLOURS[2], COLOURS[1], "#666666"  # of delta: above, below, at zero


CLIP: dict[str, Any] = {"color": "grey", "alpha": 0.2, "lw": 0}  # the clip range


GONE = "#9a9a9a"  # a token without gradient


GROUND = "#fcfcfc"


def sign_colour(value: float) -> str:
    """The colour of a delta; its sign or its arrow says the same."""
    return UP if value > 0 else DOWN if value < 0 else LEVEL


# Axes, curves, bars


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
    return cells(finish(ax, "number", "position", title), probs)


def cells(
    ax: Axes,
    values: Tensor,
    texts: str | Sequence[Sequence[str]] = "{:.2f}",
    frames: Sequence[tuple[int, int]] = (),
    cmap: Any = "Blues",
    limits: tuple[float, float] = (0, 1),
) -> Axes:
    """A table of coloured cells; NaN is an empty, hatched one. [row column]

    texts are a format for the values, or what is written in each cell; frames are the
    cells (row, column) with a frame around them; limits are the values of the first and
    of the last colour.
    """
    low, high = limits
    image = ax.imshow(values, cmap=cmap, vmin=low, vmax=high, aspect="auto")
    ax.patch.set(hatch="///", edgecolor="#c8c8c8", lw=0)
    for row, column in values.isfinite().nonzero().tolist():
        value = values[row, column].item()
        text = texts.format(value) if isinstance(texts, str) else texts[row][column]
        red, green, blue, _ = image.cmap(image.norm(value))
        ink = "white" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.52 else "black"
        ax.text(column, row, text, ha="center", va="center", color=ink)
    for row, column in frames:
        look: dict[str, Any] = {"fill": False, "ec": "black", "lw": 2.5, "zorder": 3}
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))
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


# Texts of a batch as coloured cells: what is prompt, response, end and padding.


# A kind of token, its colour, its hatching. Padding is hatched and hollow, so that it
# is told from the rest without any colour.
KINDS = {
    "prompt": (COLOURS[5], ""),
    "response": (COLOURS[4], ""),
    "end": (COLOURS[3], ""),
    "padding": (GROUND, "///"),
}


NAMES = {kind: kind for kind in KINDS}


PAPER, INK, FAINT = GROUND, "black", "#8c8c8c"


CELL = 0.46  # inches


def canvas(columns: float, rows: float, names: float = 2.6) -> Axes:
    """Axes without a frame, one unit a cell; `names` cells are left of it."""
    size = (CELL * (columns + names + 0.1), CELL * rows)
    ax = axes_row(width=size[0], height=size[1])[0]
    stays = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
    plt.gcf().set_layout_engine(stays)
    ax.set(xlim=(-names, columns + 0.1), ylim=(rows, 0), position=(0, 0, 1, 1))
    ax.axis("off")
    return ax


def cell(
    ax: Axes, x: float, y: float, text: str, kind: str = "", colour: str = ""
) -> None:
    """One cell at column x, row y."""
    fill, hatch = KINDS[kind] if kind else (colour or PAPER, "")
    look: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "edgecolor": FAINT}
    ax.add_patch(Rectangle((x + 0.04, y + 0.06), 0.92, 0.88, **look))
    ink = FAINT if kind == "padding" else INK
    size = 12 if len(text) < 4 else 11
    style: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "color": ink,
        "fontsize": size,
    }
    back = {"facecolor": PAPER, "lw": 0, "pad": 1.5} if kind == "padding" else None
    ax.text(x + 0.5, y + 0.5, text, bbox=back, **style)


def name_row(ax: Axes, y: float, name: str) -> None:
    """What a row of cells holds, at its left."""
    ax.text(-0.15, y + 0.5, name, ha="right", va="center", color=INK)


def key(
    ax: Axes,
    y: float,
    kinds: Sequence[str],
    left: float = 0,
    names: dict[str, str] = NAMES,
) -> None:
    """The kinds of tokens with their names, below the picture."""
    for number, kind in enumerate(kinds):
        x = left + 2.9 * number
        fill, hatch = KINDS[kind]
        look: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "edgecolor": FAINT}
        ax.add_patch(Rectangle((x, y + 0.3), 0.4, 0.4, **look))
        ax.text(x + 0.55, y + 0.5, names[kind], va="center", color=INK)


# The pictures of 04_losses: what the clip does to one token and to many.


STAIRS = (PI, COLOURS[1], COLOURS[2])


ENDS, MOST = (0.03, 30.0), 3.0  # ratios and deltas of the plane


# Where the clipped objective is flat.
FLAT: dict[str, Any] = {
    "facecolor": "none",
    "edgecolor": "#c8c8c8",
    "hatch": "///",
    "lw": 0,
}


def plot_stairs(stairs: Mapping[str, Sequence[float]], unit: str = "rollouts") -> Axes:
    """How a good token rises if each rollout stops at the end of the range.

    stairs[label] holds its probability after 0, 1, 2, ... rollouts, or another unit.
    """
    ax = axes_row(height=2.8)[0]
    sides = (-1, *[1] * (len(stairs) - 1))  # of the number: left, then right
    looks = zip(STAIRS, ("-", "--", ":"), sides, strict=False)
    for (name, levels), (colour, line, side) in zip(
        stairs.items(), looks, strict=False
    ):
        look: dict[str, Any] = {"color": colour, "ls": line, "lw": 2.5}
        ax.step(range(len(levels)), levels, where="post", label=name, **look)
        end = len(levels) - 1, levels[-1]
        ax.plot(*end, "o", ms=8, color=colour)
        note: dict[str, Any] = {"ha": "center", "textcoords": "offset points"}
        ax.annotate(f"{end[0]}", end, (16 * side, -4), color=colour, **note)
    ax.margins(x=0.08)
    low = min(levels[0] for levels in stairs.values())
    high = max(levels[-1] for levels in stairs.values())
    ax.set(yscale="log", ylim=(0.8 * low, 1.7 * high))
    ticks = (low, 0.1, 0.5)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    legend_above(finish(ax, unit, "probability"))
    told = [f"{plain(name)}: {len(levels) - 1}" for name, levels in stairs.items()]
    text = f"Staircases on a log axis; {unit} that each takes"
    describe(ax.figure, f"{text}: {', '.join(told)}.")
    return ax


def draw_clip_plane(
    ax: Axes,
    ratio: Tensor,
    deltas: Tensor,
    epsilon: float,
    before: Tensor | None = None,
) -> Tensor:
    """Each token as a dot at its ratio and delta; hollow and grey without gradient.

    ratio, deltas, before [token]; a thin tail comes from the ratio before. -> which
    tokens have lost their gradient: they lie in one of the two hatched corners, where
    the clipped objective is flat.
    """
    low, high = 1 - epsilon, 1 + epsilon
    gone = ((ratio > high) & (deltas > 0)) | ((ratio < low) & (deltas < 0))
    draw_plane(ax, low, high)
    # Equal deltas share a height: spread them a little, the same way each time.
    jitter = 0.12 * (torch.arange(len(deltas)) * 0.618 % 1 - 0.5)
    x, y = ratio.clamp(*ENDS), (deltas + jitter).clamp(-MOST, MOST)
    if before is not None:
        tails = torch.stack([before.clamp(*ENDS), x])
        ax.plot(tails, y.expand_as(tails), color=GONE, lw=0.8, alpha=0.6, zorder=1)
    ax.plot(x[~gone], y[~gone], "o", ms=6, color=PI, mec=GROUND, alpha=0.7)
    ax.plot(x[gone], y[gone], "o", ms=5, mfc=GROUND, mec=GONE)
    inside = int(((ratio > low) & (ratio < high)).sum())
    text = "Tokens as dots at their ratio and delta, the clip range a grey band"
    counts = f"{inside} of {len(ratio)} in it, {int(gone.sum())} without gradient"
    describe(ax.figure, f"{text}: {counts}.")
    return gone


def draw_plane(ax: Axes, low: float, high: float) -> None:
    """Axes for ratio and delta, the clip range as a band, two corners hatched."""
    ax.set(xscale="log", xlim=ENDS, ylim=(-MOST, MOST))
    ax.axvspan(low, high, **CLIP)
    ax.fill_between([high, ENDS[1]], 0, MOST, **FLAT)
    ax.fill_between([ENDS[0], low], -MOST, 0, **FLAT)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    finish(ax, r"ratio $r$", r"delta $\delta$").grid(visible=False)


# The mechanism of one update, drawn: policies, pushes, a group.


REACH = 0.42  # of a cell: how far the longest arrow goes from its middle


Point = tuple[float, float]


SMALLEST = 0.03  # of a cell: what is shorter is not drawn


LINED = [withStroke(linewidth=3.5, foreground="white")]


def outline(ax: Axes, answer: Sequence[int]) -> None:
    """A frame around the right cell of each position."""
    for row, column in enumerate(answer):
        corner = (column - 0.5, row - 0.5)
        style: dict[str, Any] = {"fill": False, "ec": "black", "lw": 2.5, "zorder": 3}
        ax.add_patch(Rectangle(corner, 1, 1, **style))


def draw_policy(ax: Axes, probs: Tensor, answer: Sequence[int], title: str) -> None:
    """A policy as a table of colours with the right cells outlined. [pos vocab]"""
    outline(plot_policy(probs, title, ax), answer)


def plot_policies(policies: dict[str, Tensor], answer: Sequence[int]) -> list[Axes]:
    """Policies beside each other, such as before and after. Each is [pos vocab]."""
    axes = axes_row(len(policies), width=4.4 * len(policies), height=2.7)
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        draw_policy(ax, probs, answer, name)
    for ax in axes[1:]:
        ax.set_ylabel("")
    plt.tight_layout()
    told = [f"{name}: {right_words(p, answer)}" for name, p in policies.items()]
    describe(axes[0].figure, f"Policies as tables of colours. {'; '.join(told)}.")
    return axes


def right_words(probs: Tensor, answer: Sequence[int]) -> str:
    """The probability of the right number at each position, in words."""
    values = probs[range(len(answer)), list(answer)].tolist()
    listed = ", ".join(f"{value:.2f}" for value in values)
    return f"probability of the right number at each position {listed}"


def draw_push(
    ax: Axes, push: Tensor, most: float, shift: float = 0.0, width: float = 2.2
) -> None:
    """An arrow in each cell, up where its logit is pushed up. [pos vocab]

    `most` is the push whose arrow fills a cell; `shift` moves the arrows sideways, so
    that two pushes stand beside each other.
    """
    for row, cells in enumerate(push.tolist()):
        for column, value in enumerate(cells):
            reach = REACH * max(-1.0, min(1.0, value / most)) if most else 0.0
            if abs(reach) > SMALLEST:
                x = column + shift  # the rows of a table are counted downwards
                draw_arrow(ax, (x, row + reach), (x, row - reach), value, width)


def draw_arrow(ax: Axes, foot: Point, head: Point, delta: float, width: float) -> None:
    """An arrow in the colour of the sign of delta, lined in white."""
    style: dict[str, Any] = {"arrowstyle": "-|>", "lw": width, "shrinkA": 0}
    style |= {"color": sign_colour(delta), "shrinkB": 0, "mutation_scale": 5 * width}
    arrow: Any = ax.annotate("", head, foot, arrowprops=style)
    arrow.arrow_patch.set_path_effects(LINED)


def plot_push(
    probs: Tensor,
    pushes: dict[str, Tensor],
    answer: Sequence[int],
    most: float | None = None,
) -> list[Axes]:
    """What an update does to each logit, as arrows on the policy; [pos vocab] each."""
    axes = axes_row(len(pushes), width=4.4 * len(pushes), height=2.7)
    most = most or max(push.abs().max().item() for push in pushes.values())
    for ax, (name, push) in zip(axes, pushes.items(), strict=True):
        draw_policy(ax, probs, answer, name)
        for number in list(ax.texts):
            number.remove()  # the arrows stand in their place
        draw_push(ax, push, most)
    for ax in axes[1:]:
        ax.set_ylabel("")
    plt.tight_layout()
    told = [f"{name}: {push_words(p, answer, most)}" for name, p in pushes.items()]
    text = "Arrows in the cells of a policy, up where a logit rises"
    describe(axes[0].figure, f"{text}. {'; '.join(told)}.")
    return axes


def push_words(push: Tensor, answer: Sequence[int], most: float) -> str:
    """How many arrows are drawn, how many go up, and how many of these are right."""
    up = push > most * SMALLEST / REACH
    drawn = int((push.abs() > most * SMALLEST / REACH).sum())
    right = int(up[range(len(answer)), list(answer)].sum())
    if not drawn:
        return "no arrow is large enough to be seen"
    text = f"arrows in {drawn} of {push.numel()} cells, {int(up.sum())} of them up"
    return f"{text}, {right} of these in right cells"


def draw_group(
    ax: Axes, values: Tensor, names: Sequence[str], xlabel: str, signed: bool = False
) -> None:
    """A group as a column of bars, one a response; as arrows if signed. [trial]"""
    rows = range(len(values))
    for row, value in zip(rows, values.tolist(), strict=True):
        draw = draw_delta if signed else draw_reward
        draw(ax, value, row)
    if signed:
        ax.axvline(0, color="black", lw=1)
    ax.set_yticks(rows, names)
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=5)  # numbers of neighbours do not meet
    finish(ax, xlabel, "").grid(visible=False)


def draw_reward(ax: Axes, value: float, row: int) -> None:
    """One bar with its number in it."""
    ax.barh(row, value, 0.6, color=PI)
    ink = GROUND if value > 0 else "black"
    place: dict[str, Any] = {
        "xytext": (4, 0),
        "textcoords": "offset points",
        "va": "center",
    }
    ax.annotate(f"{value:g}", (0, row), color=ink, **place)


def draw_delta(ax: Axes, value: float, row: int) -> None:
    """One arrow from zero with its number at its head; a short one is a thin one."""
    if abs(value) > 1e-6:  # else its head would reach across the zero
        width = min(4.0, length_in_points(ax, value) / 2.5)
        draw_arrow(ax, (0, row), (value, row), value, width)
    gap, side = (4, "left") if value >= 0 else (-4, "right")
    place: dict[str, Any] = {
        "xytext": (gap, 0),
        "textcoords": "offset points",
        "va": "center",
    }
    ax.annotate(f"{value + 0.0:+.2f}", (value, row), ha=side, **place)


def length_in_points(ax: Axes, value: float) -> float:
    """How long a value is across, at the limits that the axes have now."""
    (start, _), (end, _) = ax.transData.transform([(0, 0), (value, 0)])
    return abs(end - start) * 72 / ax.figure.dpi


def plot_group(
    rewards: Tensor, deltas: dict[str, Tensor], names: Sequence[str]
) -> list[Axes]:
    """A group's rewards as bars, and beside them what becomes of them. [trial] each."""
    axes = axes_row(1 + len(deltas), width=1.6 + 2.4 * (1 + len(deltas)), height=2.8)
    draw_group(axes[0], rewards, names, "reward $R$")
    axes[0].axvline(rewards.mean().item(), color="black", ls="--", lw=1.5)
    axes[0].set_title("dashed: their mean")
    for ax, (name, delta) in zip(axes[1:], deltas.items(), strict=True):
        reach = 2.0 * max(1e-6, delta.abs().max().item())
        ax.set_xlim(-reach, reach)  # of each its own: a small delta is seen
        draw_group(ax, delta, [""] * len(delta), r"delta $\delta$", signed=True)
        ax.set_title(name)
    axes[0].set_xlim(0, 1.25 * max(1e-6, rewards.max().item()))
    plt.tight_layout()
    told = {"rewards": rewards, **deltas}
    listed = [f"{k} {', '.join(f'{x:.3g}' for x in v)}" for k, v in told.items()]
    describe(axes[0].figure, f"A group as bars and arrows: {'; '.join(listed)}.")
    return axes


# What a reward is made of: a group as stacked bars, and its deltas as arrows.


# Of the parts, in their order. Hatching tells them apart without any colour.
REWARD_PARTS_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": PI},
    {"facecolor": COLOURS[4], "edgecolor": "white", "hatch": "///"},
    {"facecolor": COLOURS[3], "edgecolor": "white", "hatch": "..."},
    {"facecolor": COLOURS[2], "edgecolor": "white", "hatch": "\\\\\\"},
    {"facecolor": COLOURS[5], "edgecolor": "white", "hatch": "xxx"},
)


def plot_parts(
    parts: Mapping[str, Tensor], names: Sequence[str], title: str = ""
) -> list[Axes]:
    """A group's rewards, part by part, and beside them what GRPO makes of the sum.

    Each part is [trial] and holds its weight already. A part below zero goes left.
    """
    left, right = axes_row(2, width=10.0, height=1.5 + 0.42 * len(names))
    total = draw_parts(left, parts, names)
    left.set_title(
        title, pad=left.title.get_position()[1] + 24, loc="left", weight="bold"
    )
    deltas = compute_deltas(total[None], "centered_rewards")[0]
    draw_group(right, deltas, [""] * len(names), r"delta $\delta$", signed=True)
    most = max(0.1, deltas.abs().max().item())
    right.set_xlim(-1.7 * most, 1.7 * most)
    right.locator_params(axis="x", nbins=5)
    plt.tight_layout()
    describe(left.figure, f"{parts_words(parts, names)} Deltas: {listed(deltas)}.")
    return [left, right]


def plot_earned(parts: Mapping[str, Tensor], names: Sequence[str]) -> Axes:
    """What several responses or policies earn, part by part, without any delta."""
    ax = axes_row(width=8.0, height=1.4 + 0.4 * len(names))[0]
    draw_parts(ax, parts, names)
    describe(ax.figure, parts_words(parts, names))
    return ax


def draw_parts(ax: Axes, parts: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """Stacked bars with their sums behind them, one a response; -> the sums [trial]."""
    rows, up, down = range(len(names)), torch.zeros(len(names)), torch.zeros(len(names))
    for (name, values), look in zip(parts.items(), REWARD_PARTS_LOOKS, strict=False):
        gain, loss = values.clamp(min=0), values.clamp(max=0)
        ax.barh(rows, gain.tolist(), 0.62, left=up.tolist(), label=name, **look)
        ax.barh(rows, loss.tolist(), 0.62, left=down.tolist(), **look)
        up, down = up + gain, down + loss
    total = torch.stack(list(parts.values())).sum(0)
    away = ax.transData + ScaledTranslation(5 / 72, 0, ax.figure.dpi_scale_trans)
    for row, (end, value) in enumerate(zip(up.tolist(), total.tolist(), strict=True)):
        ax.text(end, row, f"{value:.2f}", va="center", transform=away)
    ax.axvline(0, color="black", lw=1)
    ax.set_yticks(rows, names)
    ax.set(ylim=(len(names) - 0.5, -0.5))
    ax.margins(x=0.16)
    legend_above(finish(ax, "reward, part by part, and its sum", ""))
    ax.grid(visible=False)
    return total


def parts_words(parts: Mapping[str, Tensor], names: Sequence[str]) -> str:
    """What each response earns by each part."""
    told = [f"{name} {listed(values)}" for name, values in parts.items()]
    return f"Stacked bars of {', '.join(names)}. {'; '.join(told)}."


def listed(values: Tensor) -> str:
    """Numbers with two decimals."""
    return ", ".join(f"{value + 0.0:.2f}" for value in values.tolist())


# Pictures of word problems: splits, orders, what is paid, how a run's groups tie.


def plot_shares(shares: Mapping[str, Tensor], names: Sequence[str]) -> Axes:
    """What each split is made of: shares that add up to 1, by kind; [split]."""
    ax = axes_row(width=7.5, height=1.3 + 0.34 * len(names))[0]
    rows, start = range(len(names)), torch.zeros(len(names))
    for (kind, values), look in zip(shares.items(), REWARD_PARTS_LOOKS, strict=False):
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


def legend_below(row: Sequence[Axes]) -> None:
    """One legend for a row of pictures that show the same."""
    figure, handles = row[0].figure, row[0].get_legend_handles_labels()
    figure.legend(*handles, loc="lower center", ncols=len(handles[1]), frameon=False)
    plt.tight_layout(rect=(0, 0.1, 1, 1))


# GAE: how each step's TD error travels back to the tokens before it.


SIGNS = LinearSegmentedColormap.from_list("signs", (DOWN, GROUND, UP))


# Bars of shares: how many of its prompts each seed has learned, which of them push.


# From none to all: light to dark, so that the order is seen without the colours.
SHADES = ("#f0f0f0", "#b3cde3", "#4f94c4", "#0b3c68")


def learned(shares: Tensor, num_prompts: int = 3) -> Tensor:
    """How many seeds learned 0, 1, ... of their prompts. [seed] -> int [prompts + 1]

    A seed's mean P(sorted) over its prompts, times their number, is rounded: at the end
    of a run nearly every prompt is sorted always or never.
    """
    counts = (shares * num_prompts).round().long().flatten()
    return torch.bincount(counts, minlength=num_prompts + 1)


def plot_learned(
    groups: dict[str, dict[str, Tensor]], num_prompts: int = 3
) -> list[Axes]:
    """One table of bars for each group, a bar for each setting; P(sorted) is [seed].

    A bar is divided by how many seeds learned 0, 1, 2, ... prompts; its mean stands
    at its end. All groups have the same settings.
    """
    rows = list(next(iter(groups.values())))
    size = (9.0 if len(groups) > 1 else 7.3, 1.5 + 0.36 * len(rows))
    figure, grid = plt.subplots(
        1, len(groups), figsize=size, squeeze=False, layout="constrained"
    )
    axes, xlabel = list(grid[0]), "share of the seeds"
    xlabel += "; at the right the mean P(sorted)" if len(groups) == 1 else ""
    for ax, (title, settings) in zip(axes, groups.items(), strict=True):
        for row, shares in enumerate(settings.values()):
            draw_bar(ax, row, shares, num_prompts)
        ax.set_yticks(range(len(rows)), rows if ax is axes[0] else [""] * len(rows))
        ax.set(xlim=(0, 1.18), ylim=(len(rows) - 0.5, -0.5), xticks=(0, 0.5, 1))
        finish(ax, xlabel, "", title).grid(visible=False)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    handles = [axes[0].patches[k] for k in range(num_prompts + 1)]
    names = [f"{k} of {num_prompts}" for k in range(num_prompts + 1)]
    place: Any = {"loc": "outside upper center", "ncols": num_prompts + 1}
    figure.legend(handles, names, title="prompts learned", **place)
    describe(figure, f"Prompts learned, as bars of shares. {told(groups)}")
    return axes


def draw_bar(ax: Axes, row: int, shares: Tensor, num_prompts: int) -> None:
    """One setting: the shares of the seeds from left to right, then the mean."""
    counts = learned(shares, num_prompts)
    divide_bar(ax, row, counts, SHADES)
    ax.text(1.02, row, f"{shares.mean():.2f}", va="center")


def divide_bar(ax: Axes, row: int, sizes: Tensor, shades: Sequence[str]) -> None:
    """One bar of length one, divided in proportion to the sizes."""
    start = 0.0
    for share, shade in zip((sizes / sizes.sum()).tolist(), shades, strict=True):
        ax.barh(row, share, 0.74, start, color=shade, edgecolor="#4d4d4d", lw=0.8)
        start += share


def told(groups: dict[str, dict[str, Tensor]]) -> str:
    """The mean of each bar, in words."""
    parts = [
        f"{title} {name} {shares.mean():.2f}".strip()
        for title, settings in groups.items()
        for name, shares in settings.items()
    ]
    return f"Mean P(sorted): {'; '.join(parts)}."


# How three means over a batch weigh the tokens of a short and of a long response.


SHORT, LONGEST = 2, 12  # tokens of the short response; tokens that a row has room for


TALLEST = 1 / (2 * SHORT)  # no token weighs more than this


ROW = 1.75  # from one row of blocks to the next


def draw_blocks(
    ax: Axes, weights: Tensor, bottom: float, tallest: float = TALLEST
) -> None:
    """A row of blocks for one response; the area of each is its weight. [pos]"""
    heights = weights[weights > 0] / tallest
    for x, height in enumerate(heights.tolist()):
        look: dict[str, Any] = {"facecolor": COLOURS[0], "edgecolor": GROUND, "lw": 1.5}
        ax.add_patch(Rectangle((x, bottom), 1, height, **look))
    text = f"{weights[0]:.3f} each, {weights.sum():.2f} together"
    ax.text(0, bottom + heights[0].item() + 0.08, text, fontsize=11)
    ax.hlines(bottom, 0, LONGEST, color="black", lw=0.8)


# Memory as blocks drawn to scale: their areas are numbers that must be kept.


Kept = dict[str, dict[str, dict[str, float]]]  # method, model, kind -> count


# What is kept, its colour and its hatching.
LOOKS = {
    "weights": (COLOURS[0], ""),
    "gradients": (COLOURS[5], "//"),
    "Adam": (COLOURS[4], ".."),
    "log-probs": (COLOURS[1], ""),
}


def plot_memory(kept: Kept, unit: str = "") -> Axes:
    """A row for each method, a block for each of its models, in proportion.

    kept[method][model][kind] is a count, and a kind is one of LOOKS. Every row is
    equally high, so that widths can be compared, too.
    """
    totals = {
        m: sum(sum(k.values()) for k in models.values()) for m, models in kept.items()
    }
    most = max(totals.values())
    ax = axes_row(width=8.5, height=0.8 + 0.95 * len(kept))[0]
    for row, (method, models) in enumerate(kept.items()):
        x = 0.0
        for name, kinds in models.items():
            x = draw_model(ax, x, row, name, kinds)
        ax.text(x + 0.01 * most, row, f"{totals[method]:,}{unit}", va="center")
    ax.set(xlim=(0, 1.16 * most), ylim=(len(kept) - 0.4, -0.75), xticks=[])
    ax.set_yticks(range(len(kept)), list(kept))
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    used = [kind for kind in LOOKS if kind in kinds_in(kept)]
    looks = [Rectangle((0, 0), 1, 1, **look(kind)) for kind in used]
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.45, 0.97)}
    ax.legend(looks, used, ncols=len(used), frameon=False, **place)
    plt.tight_layout()
    describe(ax.figure, f"Memory as blocks drawn to scale. {in_words(kept, unit)}")
    return ax


def kinds_in(kept: Kept) -> set[str]:
    """What is kept at all."""
    return {k for models in kept.values() for kinds in models.values() for k in kinds}


def look(kind: str) -> dict:
    """How a kind of numbers is filled."""
    colour, hatch = LOOKS[kind]
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "alpha": 0.85}


def draw_model(
    ax: Axes, x: float, row: int, name: str, kinds: dict[str, float]
) -> float:
    """The blocks of one model from x on; returns where they end."""
    start = x
    for kind, count in kinds.items():
        ax.add_patch(Rectangle((x, row - 0.28), count, 0.56, **look(kind)))
        x += count
    frame: dict[str, Any] = {"fill": False, "edgecolor": "black", "lw": 2}
    ax.add_patch(Rectangle((start, row - 0.28), x - start, 0.56, **frame))
    ax.text(start, row - 0.31, name, va="bottom")
    return x


def in_words(kept: Kept, unit: str) -> str:
    """Each method with its models and their numbers."""
    told = []
    for method, models in kept.items():
        parts = [
            f"{name} {sum(kinds.values()):,}{unit}" for name, kinds in models.items()
        ]
        told.append(f"{method}: {', '.join(parts)}.")
    return " ".join(told)


# What a reward pays every response and whole groups, and where it leads training.


REWARD_MAP_SHADES = "Blues"


def empty_tables(rows: int, numbers: int) -> list[list[Axes]]:
    """Rows of axes, with one for each first number."""
    size = (2.0 * numbers, 0.6 + 1.8 * rows)
    _, grid = plt.subplots(
        rows, numbers, figsize=size, squeeze=False, layout="constrained"
    )
    for number, (top, bottom) in enumerate(zip(grid[0], grid[-1], strict=True)):
        top.set_title(f"first number {number}")
        bottom.set_xlabel("third")
    return [list(axes) for axes in grid]


def frame(axes: list[Axes], response: list[int], colour: str) -> None:
    """A frame around the cell of one response."""
    first, row, column = response
    style: dict[str, Any] = {"fill": False, "ec": colour, "lw": 2}
    style["path_effects"] = [withStroke(linewidth=4, foreground="white")]
    corner = (column - 0.45, row - 0.45)
    axes[first].add_patch(Rectangle(corner, 0.9, 0.9, **style))


def plot_ties(rewards: Tensor, most: float, ax: Axes | None = None) -> Axes:
    """Groups as columns of cells, coloured by reward; tied ones crossed. [group trial]

    `most` is the largest reward there is. On axes that are given, nothing is described.
    """
    tied = (rewards == rewards[:, :1]).all(dim=1)
    if ax is None:
        figure, ax = plt.subplots(figsize=(7.5, 3.0), layout="constrained")
        text = f"Groups of {rewards.shape[1]} as columns of cells coloured by reward"
        describe(figure, f"{text}; {int(tied.sum())} of {len(tied)} groups are tied.")
    # No response is as light as the paper: a reward of 0 is a response too.
    style: dict[str, Any] = {
        "cmap": REWARD_MAP_SHADES,
        "vmin": -0.15 * most,
        "vmax": most,
    }
    ax.imshow(rewards.T, aspect="auto", interpolation="nearest", **style)
    for edge in range(1, len(rewards)):
        ax.axvline(edge - 0.5, color="white", lw=2)
    above = ["×" if each else "✓" for each in tied.tolist()]
    ax.set_xticks(range(len(rewards)), above)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for label, each in zip(ax.get_xticklabels(), tied.tolist(), strict=True):
        label.set_color(DOWN if each else "black")
    finish(
        ax, "groups: × is tied, ✓ has a signal; darker earns more", "responses"
    ).grid(visible=False)
    ax.set_yticks([])
    return ax


# Three answers: every policy is a point of a triangle, every delta mode a field.


CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])


def corner_names(rewards: Tensor, ends: Sequence[int], count: int) -> list[str]:
    """The reward of each corner's answer, and how many runs end nearest to it."""
    each = zip("ABC", rewards.tolist(), strict=True)
    names = [f"answer {answer}, $R$ = {reward:g}" for answer, reward in each]
    if not ends:  # none has left the middle
        return names
    told = [f"{ends.count(k)} of {count} runs end nearest" for k in range(len(names))]
    return [f"{name}\n{ending}" for name, ending in zip(names, told, strict=True)]


def name_corners(ax: Axes, names: Sequence[str]) -> None:
    """A name at each corner, which is to be sure of one answer."""
    sides = ("top", "top", "bottom")  # of the text: below the base, above the tip
    for corner, name, side in zip(CORNERS, names, sides, strict=True):
        across, height = corner.tolist()
        place: dict[str, Any] = {"ha": "center", "va": side}
        gap = -0.03 if side == "top" else 0.03
        ax.text(across, height + gap, name, **place)


# How wrong an update is as a setting moves; what defects cost.


def draw_costs(
    ax: Axes,
    costs: dict[str, tuple[float, float]],
    xlabel: str,
    title: str = "",
    seen: Sequence[str] = (),
) -> Axes:
    """Mean and standard error of each difference, one row each, in the order given."""
    look: dict[str, Any] = {"fmt": "o", "ms": 4, "capsize": 2}
    others = LEVEL if seen else COLOURS[0]
    for row, (cause, (mean, error)) in enumerate(costs.items()):
        colour = COLOURS[1] if cause in seen else others
        ax.errorbar(mean, row, xerr=2 * error, color=colour, **look)
    ax.axvline(0, color="grey", lw=1)
    ax.set_yticks(range(len(costs)), list(costs), fontsize=11)
    ax.invert_yaxis()
    ax.margins(y=0.02)
    return finish(ax, xlabel, "", title)


# Where updates point beside a gradient; what is won against what is kept.


ARROW: dict[str, Any] = {"arrowstyle": "-|>", "shrinkA": 0, "shrinkB": 0}


def words_of(x: float, y: float) -> str:
    """A place, as one says it."""
    return f"{x:.2f}, {y:.2f}"
