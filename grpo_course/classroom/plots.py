"""Primitives of the course's pictures: axes, curves, tables, groups, bars, tokens.

One visual language: a group is a column of bars, delta an arrow, a policy a table of
colours with the right cells framed, the clip range a grey band. Colours are those of
Okabe and Ito (https://jfly.uni-koeln.de/color/), safe for colour-blind readers; three
are darker here, so that a thin line is seen on a light ground. A sign, a dash or a
hatching says the same.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.patheffects import withStroke
from torch import Tensor

from grpo_course.classroom.alt_text import describe

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#C66F9F", "#A68E4E", "#398FF2", "#000000")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)))
# The policy that learns, the one that sampled (drawn as a ghost), the reference.
PI, PI_OLD, PI_REF, NO_POLICY = COLOURS[0], COLOURS[1], COLOURS[2], "#666666"
UP, DOWN, LEVEL = COLOURS[2], COLOURS[1], "#666666"  # of delta: above, below, at zero
CLIP: dict[str, Any] = {"color": "grey", "alpha": 0.2, "lw": 0}  # the clip range
FLAT: dict[str, Any] = {"fc": "none", "ec": "#c8c8c8", "hatch": "///", "lw": 0}
FAINT = "#8c8c8c"
GONE = FAINT  # a token without gradient
GROUND = "#fcfcfc"
LINED = [withStroke(linewidth=3.5, foreground="white")]  # around what crosses others
SIGNS = LinearSegmentedColormap.from_list("signs", (DOWN, GROUND, UP))
# From none to all: light to dark, so that the order is seen without the colours.
SHADES = ("#f0f0f0", "#b3cde3", "#4f94c4", "#0b3c68")
# Parts of a bar, in their order.
PARTS: tuple[dict[str, Any], ...] = (
    {"color": PI},
    {"facecolor": COLOURS[4], "edgecolor": "white", "hatch": "///"},
    {"facecolor": COLOURS[3], "edgecolor": "white", "hatch": "..."},
    {"facecolor": COLOURS[2], "edgecolor": "white", "hatch": "\\\\\\"},
    {"facecolor": COLOURS[5], "edgecolor": "white", "hatch": "xxx"},
)

Point = tuple[float, float]


def sign_colour(value: float) -> str:
    """The colour of a delta; its sign or its arrow says the same."""
    return UP if value > 0 else DOWN if value < 0 else LEVEL


# Axes and legends


def axes_row(count: int = 1, width: float = 7.0, height: float = 3.2) -> list[Axes]:
    """A row of empty axes, sized for a slide."""
    _, axes = plt.subplots(1, count, figsize=(width, height), squeeze=False)
    return list(axes[0])


def axes_grid(rows: int, columns: int, width: float, height: float) -> list[list[Axes]]:
    """Rows of empty axes that make room for each other's labels and legends."""
    figure = plt.figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    return [list(row) for row in grid]


def finish(ax: Axes, xlabel: str, ylabel: str, title: str = "") -> Axes:
    """Labels, a title and a light grid; returns the axes."""
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.grid(alpha=0.3)
    return ax


def legend_above(ax: Axes) -> Axes:
    """A legend over the axes, where no curve runs; a title moves up to make room."""
    count = len(ax.get_legend_handles_labels()[1])
    columns = 2 if count in (2, 4) else 3
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    ax.legend(**place, frameon=False, ncols=columns, borderpad=0.2, columnspacing=1.2)
    ax.set_title(ax.get_title(), pad=6 + 20 * -(-count // columns))
    return ax


def legend_below(row: Sequence[Axes]) -> None:
    """One legend for a row of pictures that show the same."""
    figure, handles = row[0].figure, row[0].get_legend_handles_labels()
    figure.legend(*handles, loc="lower center", ncols=len(handles[1]), frameon=False)
    plt.tight_layout(rect=(0, 0.1, 1, 1))


def legend_outside(row: Sequence[Axes], side: str = "upper") -> None:
    """As `legend_below`, for a figure whose layout makes room, on the side given."""
    handles, where = row[0].get_legend_handles_labels(), f"outside {side} center"
    place: dict[str, Any] = {"loc": where, "ncols": len(handles[1])}
    row[0].figure.legend(*handles, **place)


# Curves


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
    looks = zip(curves.items(), colours, LINES, strict=False)
    for (label, curve), colour, line in looks:
        steps = range(len(curve)) if x is None else x[: len(curve)]
        low, high = (curve.float().quantile(q, dim=-1) for q in (0.1, 0.9))
        ax.plot(steps, curve.float().mean(dim=-1), color=colour, ls=line, label=label)
        if len(spread) <= 2:
            ax.fill_between(steps, low, high, color=colour, alpha=0.18, lw=0)
        elif label in spread:
            ax.plot(steps, curve, color=colour, alpha=0.25, lw=0.6, zorder=1)
    finish(ax, xlabel, ylabel, title)
    return legend_above(ax) if len(curves) > 1 else ax


def plot_threads(
    curve: Tensor,
    ylabel: str,
    xlabel: str = "epoch",
    named: Sequence[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """A thin line for each seed, and a thick one for their median. [step seed]

    The seeds in `named` have a colour and a name each.
    """
    ax = ax or axes_row(height=2.8)[0]
    threads = ax.plot(curve, color=COLOURS[5], lw=1)
    middle = curve.float().quantile(0.5, dim=-1)
    ax.plot(middle, color=COLOURS[0], lw=3, label="median of the seeds")
    for k, seed in enumerate(named, start=1):
        threads[seed].set(color=COLOURS[k], ls=LINES[k], lw=2, label=f"run {seed}")
    if named:
        ax.legend(loc="lower right", ncols=2)
    return finish(ax, xlabel, ylabel)


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
    dot = "o" if len(x) <= 20 else ""
    for (label, y), colour, line in zip(lines.items(), colours, LINES, strict=False):
        ax.plot(x, y, color=colour, ls=line, marker=dot, ms=3, label=label)
    finish(ax, xlabel, ylabel, title)
    return legend_above(ax) if len(lines) > 1 else ax


# Texts, arrows and boxes


def write(ax: Axes, text: str, x: float, y: float, away: Point = (0, 0), **look) -> Any:
    """A text at a place, or so many points away from it; centred unless told."""
    look = {"ha": "center", "va": "center"} | look
    return ax.annotate(text, (x, y), away, textcoords="offset points", **look)


def draw_arrow(
    ax: Axes, foot: Point, head: Point, delta: float = 0.0, width: float = 2.2, **look
) -> None:
    """An arrow in the colour of the sign of delta, lined in white.

    A short one is thinner than `width`, so that its head is no longer than the arrow.
    """
    start, end = ax.transData.transform([foot, head])
    points = math.dist(start, end) * 72 / ax.figure.dpi
    width = min(width, points / 2.5)
    style: dict[str, Any] = {
        "arrowstyle": "-|>",
        "lw": width,
        "mutation_scale": 5 * width,
    }
    style |= {"color": sign_colour(delta), "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", head, foot, arrowprops=style | {"path_effects": LINED} | look)


def draw_fan(ax: Axes, arrows: Tensor, colour: str, width: float, **look) -> None:
    """Arrows from the origin or from `foot`, true to the axes' scale. [arrow 2]"""
    x, y = arrows.reshape(-1, 2).T
    feet = [torch.full_like(x, at) for at in look.pop("foot", (0, 0))]
    scale: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1}
    ax.quiver(*feet, x, y, color=colour, width=width, **scale, **look)


def draw_box(
    ax: Axes, corner: Point, size: Point, text: str, colour: str = "grey", **look
) -> None:
    """A rounded box with a text in its middle; `look` is that of the box."""
    style: dict[str, Any] = {
        "boxstyle": f"round,pad=0,rounding_size={0.1 * size[1]}",
        "lw": 2,
    }
    style |= {"facecolor": "white", "edgecolor": colour}
    ax.add_patch(FancyBboxPatch(corner, *size, **(style | look)))
    x, y = (at + 0.5 * length for at, length in zip(corner, size, strict=True))
    ink = "white" if look.get("facecolor") == colour else colour
    ax.text(x, y, text, ha="center", va="center", color=ink)


# Tables: policies, pushes on them, rewards of whole groups


def cells(
    ax: Axes,
    values: Tensor,
    texts: str | Sequence[Sequence[str]] = "{:.2f}",
    frames: Sequence[tuple[int, int]] = (),
    cmap: Any = "Blues",
    limits: tuple[float, float] = (0, 1),
    size: float = 12,
    **look,
) -> Axes:
    """A table of coloured cells; NaN is an empty, hatched one. [row column]

    texts are a format for the values, or what is written in each cell; frames are the
    cells (row, column) with a frame around them; limits are the values of the first and
    of the last colour; look is that of the image.
    """
    look = {"cmap": cmap, "vmin": limits[0], "vmax": limits[1], "aspect": "auto"} | look
    image = ax.imshow(values, **look)
    ax.patch.set(hatch="///", edgecolor="#c8c8c8", lw=0)
    shades: Any = image.cmap(image.norm(values.numpy()))
    for row, column in values.isfinite().nonzero().tolist():
        value = values[row, column].item()
        text = texts.format(value) if isinstance(texts, str) else texts[row][column]
        # Of black and white the one with the larger contrast.
        red, green, blue = shades[row, column, :3] ** 2.2  # as linear light
        light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        ink = "white" if light < 0.18 else "black"
        ax.text(column, row, text, ha="center", va="center", color=ink, size=size)
    for row, column in frames:
        frame(ax, row, column)
    ax.grid(visible=False)
    return ax


def frame(ax: Axes, row: float, column: float, size: float = 1.0, **look) -> None:
    """A frame around a cell of a table."""
    style: dict[str, Any] = {"fill": False, "ec": "black", "lw": 2.5, "zorder": 3}
    corner = (column - size / 2, row - size / 2)
    ax.add_patch(Rectangle(corner, size, size, **(style | look)))


def draw_policy(ax: Axes, probs: Tensor, answer: Sequence[int], title: str) -> None:
    """A policy as a table of colours with the right cells framed. [pos vocab]"""
    cells(finish(ax, "number", "position", title), probs, frames=[*enumerate(answer)])
    ax.set(xticks=range(probs.shape[1]), yticks=range(probs.shape[0]))


def plot_policies(policies: dict[str, Tensor], answer: Sequence[int]) -> list[Axes]:
    """Policies beside each other, such as before and after. Each is [pos vocab]."""
    axes = axes_row(len(policies), width=4.4 * len(policies), height=2.7)
    for ax, (name, probs) in zip(axes, policies.items(), strict=True):
        draw_policy(ax, probs, answer, name)
    for ax in axes[1:]:
        ax.set_ylabel("")
    plt.tight_layout()
    return axes


def plot_push(
    probs: Tensor,
    pushes: dict[str, Tensor],
    answer: Sequence[int],
    most: float | None = None,
    least: float = 0.03,
) -> list[Axes]:
    """What an update does to each logit, as arrows on the policy; [pos vocab] each.

    `most` is the push whose arrow fills a cell; arrows below `least` of a row's height
    are left out.
    """
    axes = plot_policies(dict.fromkeys(pushes, probs), answer)
    most = most or max(push.abs().max().item() for push in pushes.values()) or 1.0
    for ax, push in zip(axes, pushes.values(), strict=True):
        for number in list(ax.texts):
            number.remove()  # the arrows stand in their place
        reach = 0.42 * (push / most).clamp(-1, 1)
        for row, column in (reach.abs() > least).nonzero().tolist():
            up = reach[row, column].item()  # the rows of a table are counted downwards
            draw_arrow(ax, (column, row + up), (column, row - up), up)
    names = "; ".join(pushes)
    describe(plt.gcf(), f"Policies with arrows, up where a logit rises: {names}.")
    return axes


# A group: rewards as bars, deltas as arrows


def draw_group(
    ax: Axes, values: Tensor, names: Sequence[str], xlabel: str, signed: bool = False
) -> None:
    """A group as a column of bars, one a response; as arrows if signed. [trial]"""
    for row, value in enumerate(values.tolist()):
        if not signed:
            ax.barh(row, value, 0.6, color=PI)
            ink = GROUND if value > 0 else "black"
            write(ax, f"{value:g}", 0, row, (4, 0), ha="left", color=ink)
            continue
        if abs(value) > 1e-6:
            draw_arrow(ax, (0, row), (value, row), value, 4.0)
        away, side = ((4, 0), "left") if value >= 0 else ((-4, 0), "right")
        write(ax, f"{value + 0.0:+.2f}", value, row, away, ha=side)
    if signed:
        ax.axvline(0, color="black", lw=1)
    ax.set_yticks(range(len(values)), names)
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=5)  # numbers of neighbours do not meet
    finish(ax, xlabel, "").grid(visible=False)


def plot_group(
    rewards: Tensor,
    deltas: Mapping[str, Tensor],
    names: Sequence[str],
    reach: float | None = None,
) -> list[list[Axes]]:
    """Rewards as bars, and beside them what becomes of them, all on one scale.

    A row for each group: [batch trial], or [trial] for one. `reach` is where the scale
    of the deltas ends, so that frames of a slider can share it.
    """
    groups = rewards.reshape(-1, len(names))
    signed = {title: delta.reshape(groups.shape) for title, delta in deltas.items()}
    reach = reach or 1.8 * max(1e-6, *(d.abs().max().item() for d in signed.values()))
    size = (4.2 + 2.6 * len(signed), len(groups) * (0.9 + 0.3 * len(names)))
    _, grid = plt.subplots(len(groups), 1 + len(signed), figsize=size, squeeze=False)
    for (left, *others), group, *each in zip(
        grid, groups, *signed.values(), strict=True
    ):
        left.set_xlim(0, 1.24 * max(1e-6, groups.max().item()))
        draw_group(left, group, names, "reward $R$")
        left.axvline(group.mean().item(), color="black", ls="--", lw=1.5)
        for ax, delta in zip(others, each, strict=True):
            ax.set_xlim(-reach, reach)
            draw_group(ax, delta, [""] * len(names), r"delta $\delta$", signed=True)
    for ax, title in zip(grid[0], ("dashed: their mean", *signed), strict=True):
        ax.set_title(title)
    for ax in grid[:-1].flat:
        ax.set_xlabel("")
    plt.tight_layout()
    return [list(row) for row in grid]


# Bars: one for each setting, or divided into parts


def plot_seeds(values: dict[str, Tensor], xlabel: str, ax: Axes | None = None) -> Axes:
    """One row a setting: a dot for each seed, a bar for the mean. Values are [seed]."""
    ax = ax or axes_row(height=0.7 + 0.36 * len(values))[0]
    for row, value in enumerate(values.values()):
        jitter = torch.linspace(-0.22, 0.22, len(value))
        ax.barh(row, value.mean(), color=COLOURS[5], alpha=0.45, height=0.7)
        ax.plot(value, row + jitter, "o", ms=3.5, color=COLOURS[0], alpha=0.8)
    ax.set_yticks(range(len(values)), list(values))
    ax.invert_yaxis()
    return finish(ax, xlabel, "")


def plot_counts(counts: dict[str, Tensor], xlabel: str, ylabel: str) -> list[Axes]:
    """A small histogram for each entry; counts[name][k] is how many have value k."""
    axes = axes_row(len(counts), width=2.6 * len(counts), height=2.6)
    for ax, (name, count), colour in zip(axes, counts.items(), COLOURS, strict=False):
        bars = ax.bar(range(len(count)), count, color=colour)
        ax.bar_label(bars, fmt="{:g}")
        ax.set_xticks(range(len(count)))
        finish(ax, xlabel, ylabel if ax is axes[0] else "", name).margins(y=0.15)
    return axes


def divide_bars(
    ax: Axes,
    parts: Mapping[str, Tensor],
    names: Sequence[str],
    looks: Sequence[Mapping[str, Any]] = PARTS,
    height: float = 0.62,
) -> Tensor:
    """A bar for each name, divided into parts; what is below zero goes left. [bar] each

    -> where each bar ends at the right, [bar]
    """
    rows = range(len(names))
    up, down = torch.zeros(len(names)), torch.zeros(len(names))
    for (part, values), look in zip(parts.items(), looks, strict=False):
        gain, loss = values.clamp(min=0), values.clamp(max=0)
        ax.barh(rows, gain.tolist(), height, up.tolist(), label=part, **look)
        if loss.any():
            ax.barh(rows, loss.tolist(), height, down.tolist(), **look)
        up, down = up + gain, down + loss
    ax.set_yticks(rows, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.grid(visible=False)
    return up


def draw_shares(
    ax: Axes,
    parts: Mapping[str, Tensor],
    names: Sequence[str],
) -> None:
    """Bars of length one, divided in proportion to up to four parts. [bar] each"""
    total = torch.stack(list(parts.values())).sum(dim=0)
    shades = SHADES[-len(parts) :]
    looks = [{"color": shade, "ec": "#4d4d4d", "lw": 0.8} for shade in shades]
    divide_bars(ax, {k: v / total for k, v in parts.items()}, names, looks, 0.74)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, 1), xticks=(0, 0.5, 1))


NUM_PROMPTS = 3  # of a run


def learned(shares: Tensor) -> Tensor:
    """How many seeds learned 0, 1, ... of their prompts. [seed] -> int [prompts + 1]

    A seed's mean P(sorted) over its prompts, times their number, is rounded: at the end
    of a run nearly every prompt is sorted always or never.
    """
    counts = (shares * NUM_PROMPTS).round().long().flatten()
    return torch.bincount(counts, minlength=NUM_PROMPTS + 1)


def plot_learned(groups: dict[str, dict[str, Tensor]]) -> list[Axes]:
    """One table of bars for each group, a bar for each setting; P(sorted) is [seed].

    A bar is divided by how many seeds learned 0, 1, 2, ... prompts; its mean stands
    at its end. All groups have the same settings.
    """
    names = list(next(iter(groups.values())))
    width = 9.0 if len(groups) > 1 else 7.3
    (axes,) = axes_grid(1, len(groups), width, 1.5 + 0.36 * len(names))
    xlabel = "share of the seeds"
    xlabel += "; at the right the mean P(sorted)" if len(groups) == 1 else ""
    means = []
    for ax, (title, settings) in zip(axes, groups.items(), strict=True):
        counts = torch.stack([learned(p) for p in settings.values()], 1)
        parts = {f"{k} of {NUM_PROMPTS}": each for k, each in enumerate(counts)}
        draw_shares(ax, parts, names if ax is axes[0] else [""] * len(names))
        for row, (name, p) in enumerate(settings.items()):
            ax.text(1.02, row, f"{p.mean():.2f}", va="center")
            means.append(f"{title} {name} {p.mean():.2f}".strip())
        ax.set(xlim=(0, 1.18), xlabel=xlabel, title=title)
    place: dict[str, Any] = {"loc": "outside upper center", "ncols": NUM_PROMPTS + 1}
    handles = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(*handles, title="prompts learned", **place)
    listed = "; ".join(means)
    describe(
        axes[0].figure, f"Bars divided by prompts learned; mean P(sorted): {listed}."
    )
    return axes


# Texts of a batch as coloured cells: what is prompt, response, end and padding.


# A kind of token, its colour, its hatching. Padding is hatched and hollow, so that it
# is told from the rest without any colour.
KINDS = {
    "prompt": (COLOURS[5], ""),
    "response": (COLOURS[4], ""),
    "end": (COLOURS[3], ""),
    "padding": (GROUND, "///"),
}
PAPER, INK = GROUND, "black"
CELL = 0.46  # inches


def canvas(columns: float, rows: float, names: float = 2.6) -> Axes:
    """Axes without a frame, one unit a cell; `names` cells are left of it."""
    ax = axes_row(width=CELL * (columns + names + 0.1), height=CELL * rows)[0]
    stays = PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True)
    plt.gcf().set_layout_engine(stays)  # a film's frame would be laid out anew
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
    is_padding = kind == "padding"
    back = {"facecolor": PAPER, "lw": 0, "pad": 1.5} if is_padding else None
    size, ink = 12 if len(text) < 4 else 11, FAINT if is_padding else INK
    place: dict[str, Any] = {"ha": "center", "va": "center"}
    ax.text(x + 0.5, y + 0.5, text, bbox=back, color=ink, fontsize=size, **place)


def name_row(ax: Axes, y: float, name: str) -> None:
    """What a row of cells holds, at its left."""
    ax.text(-0.15, y + 0.5, name, ha="right", va="center", color=INK)


def key(ax: Axes, y: float, kinds: Sequence[str], left: float = 0) -> None:
    """The kinds of tokens with their names, below the picture."""
    for number, kind in enumerate(kinds):
        x = left + 2.9 * number
        fill, hatch = KINDS[kind]
        look: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "edgecolor": FAINT}
        ax.add_patch(Rectangle((x, y + 0.3), 0.4, 0.4, **look))
        ax.text(x + 0.55, y + 0.5, kind, va="center", color=INK)
