"""What notebook 11 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    FAINT,
    GROUND,
    INK,
    KINDS,
    PI,
    axes_row,
    canvas,
    cell,
    cells,
    draw_arrow,
    finish,
    key,
    legend_below,
    listed,
    name_row,
)

# Pictures of word problems: splits, orders, what is paid, how a run's groups tie.


Span = tuple[int, int]  # where a search starts, where it ends


PAPERS = ("#cfe6f5", "#f7e0a8", "#bfe6d8", "#eed3e2")  # of the questions A, B, C, D


def plot_orders(
    orders: Mapping[str, str], pays: Mapping[str, float], deltas: Mapping[str, Tensor]
) -> Axes:
    """Copies of questions in an order; two that form a group share a frame.

    Below each stand its pay and its delta, an arrow.
    """
    longest = max(map(len, orders.values()))
    ax = canvas(longest, 3.4 * len(orders), names=3.4)
    letters = sorted(set("".join(orders.values())))
    for row, (name, asked) in enumerate(orders.items()):
        y = 3.4 * row + 0.2
        for below, words in enumerate((name, "pays", r"$\delta$")):
            name_row(ax, y + 0.95 * below, words)
        for x, (letter, delta) in enumerate(zip(asked, deltas[name], strict=True)):
            cell(ax, x, y, letter, colour=PAPERS[letters.index(letter) % len(PAPERS)])
            draw_paid(ax, x + 0.5, y + 1.55, pays[letter], delta.item())
            if x % 2 == 0:
                edge = Rectangle((x, y), 2, 1, fill=False, edgecolor="black", lw=2.5)
                ax.add_patch(edge)
    told = [f"{n}: {o}, deltas {listed(deltas[n])}" for n, o in orders.items()]
    describe(ax.figure, f"Questions framed in groups of two. {'; '.join(told)}.")
    return ax


def draw_paid(ax: Axes, x: float, y: float, pay: float, delta: float) -> None:
    """What a response is paid, and below it its delta: an arrow, or a zero."""
    look: dict[str, Any] = {"ha": "center", "color": INK}
    ax.text(x, y, f"{pay:g}", **look)
    if delta:
        draw_arrow(ax, (x, y + 0.85 + delta), (x, y + 0.85 - delta), delta, 2.5)
    else:
        ax.text(x, y + 0.95, "0", **look)


def plot_paid(paid: Mapping[str, Sequence[float]], rewards: Sequence[str]) -> Axes:
    """What each way to respond earns under each reward; the best ones are framed."""
    ax = axes_row(width=7.5, height=1.0 + 0.45 * len(paid))[0]
    values = torch.tensor([list(row) for row in paid.values()])
    cells(finish(ax, "", ""), values)
    ax.set_xticks(range(len(rewards)), rewards)
    ax.set_yticks(range(len(paid)), list(paid))
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for row, column in (values == values.amax(0)).nonzero().tolist():
        corner = (column - 0.47, row - 0.45)
        look: dict[str, Any] = {"fill": False, "edgecolor": COLOURS[1], "lw": 3.5}
        ax.add_patch(Rectangle(corner, 0.94, 0.9, **look))
    plt.tight_layout()
    told = [f"{name} {listed(torch.tensor(row))}" for name, row in paid.items()]
    describe(ax.figure, f"Paid under {', '.join(rewards)}. {'; '.join(told)}.")
    return ax


def plot_searches(texts: Mapping[str, Mapping[str, Sequence[Span]]]) -> list[Axes]:
    """A picture for each text, and in it a bar for each search, from start to end.

    `texts[name][who]` are the searches of one who looks; the title has their sums.
    """
    axes, told = axes_row(len(texts), width=10.0, height=3.4), []
    most = max(sum(map(len, work.values())) for work in texts.values())
    for ax, (name, work) in zip(axes, texts.items(), strict=True):
        sums: list[int] = []
        top = 0.0
        for (who, spans), colour in zip(work.items(), COLOURS, strict=False):
            starts, widths = [a for a, _ in spans], [b - a for a, b in spans]
            rows = [top + row for row in range(len(spans))]
            ax.barh(rows, widths, 0.75, left=starts, color=colour, label=who)
            sums.append(sum(widths))
            top = rows[-1] + 1.6
            told.append(f"{name}: {len(spans)} of {who}, {sum(widths)} characters")
        counted = zip(work, sums, strict=True)
        title = f"{name}\n{', '.join(f'{who} {looks}' for who, looks in counted)}"
        finish(ax, "character of the text", "", title).sharex(axes[0])
        ax.set(ylim=(most + 0.4, -0.8), yticks=[])
    legend_below(axes)
    describe(axes[0].figure, f"A bar for each search. {'; '.join(told)}.")
    return axes


def plot_choices(
    runs: Mapping[str, Tensor], ways: Sequence[str], averages: Mapping[str, Tensor]
) -> list[Axes]:
    """Which way a policy chooses, step by step, a picture for each reward; [step way].

    Earlier lines are the thicker ones, so that no line hides another; what the policy
    earns on average, [step], is dashed.
    """
    look: dict[str, Any] = {"figsize": (11.0, 4.0), "sharey": True, "squeeze": False}
    row = plt.subplots(1, len(runs), **look)[1][0]
    for ax, (name, run) in zip(row, runs.items(), strict=True):
        for place, (way, chances) in enumerate(zip(ways, run.T, strict=True)):
            colour, wide = COLOURS[place % len(COLOURS)], max(1.5, 8.0 - 1.6 * place)
            ax.plot(chances, lw=wide, label=way, color=colour)
        ax.plot(averages[name], "k--", lw=1.5, label="average reward")
        finish(ax, "step", "chance, reward" if ax is row[0] else "", name)
        ax.set(xlim=(0, len(run) - 1), ylim=(0, 1.05))
        ax.locator_params(axis="x", nbins=4, integer=True)
    legend_below(row)
    return list(row)


def mark_level(ax: Axes, height: float, words: str) -> None:
    """A dotted line across a picture, its words below it, both in the first colour."""
    start, end = ax.get_xlim()
    ax.plot((start, end), (height, height), ":", lw=1.5, color=COLOURS[0], label=words)
    ax.text(end, height - 0.02, words, ha="right", va="top", color=COLOURS[0])


def plot_errors(errors: Mapping[str, Mapping[str, float]], unit: str) -> list[Axes]:
    """A picture for each model: a bar for each way, with its number; 0 is one too."""
    axes = axes_row(len(errors), width=11.0, height=2.9)
    most = max(max(each.values()) for each in errors.values())
    for ax, (model, each) in zip(axes, errors.items(), strict=True):
        bars = ax.barh(range(len(each)), list(each.values()), 0.62, color=PI)
        ax.bar_label(bars, fmt="{:.3f}", padding=4)
        ax.set_yticks(range(len(each)), list(each) if ax is axes[0] else [])
        ax.invert_yaxis()
        finish(ax, unit, "", model).set_xlim(0, 1.25 * most)
    plt.tight_layout()
    told = [f"{m}, {way}: {x:.3f}" for m, e in errors.items() for way, x in e.items()]
    describe(axes[0].figure, f"Bars of {unit}. {'; '.join(told)}.")
    return axes


# Groups as bars and arrows: what each response earned, and how it is pushed.


def plot_over_average(
    chances: Tensor, rewards: Tensor, names: Sequence[str]
) -> list[Axes]:
    """What a policy chooses, and each reward as an arrow from what it earns on average.

    That average (dashed) moves with the chances. [choice] twice
    """
    left, right = axes_row(2, width=10.0, height=1.4 + 0.42 * len(names))
    rows, average = range(len(names)), (chances @ rewards).item()
    bars = left.barh(rows, chances.tolist(), 0.6, color=PI)
    left.bar_label(bars, fmt="{:.2f}", padding=4)
    left.set_yticks(rows, names)
    right.set_yticks([])
    for ax in (left, right):
        ax.set(xlim=(-0.25 if ax is right else 0, 1.25), ylim=(len(names) - 0.5, -0.5))
    right.axvline(average, color="black", ls="--", lw=1.5)
    for row, (reward, above) in enumerate(zip(rewards, rewards - average, strict=True)):
        foot, head = (average, row), (reward.item(), row)
        draw_arrow(right, foot, head, above.item(), min(3.5, 30 * abs(above.item())))
        side, gap = ("left", 0.03) if above > 0 else ("right", -0.03)
        right.text(head[0] + gap, row, f"{above:+.2f}", ha=side, va="center")
    finish(left, "chance", "").grid(visible=False)
    finish(right, "reward, from the average (dashed)", "").grid(visible=False)
    plt.tight_layout()
    told = zip(names, chances.tolist(), rewards.tolist(), strict=True)
    listed = "; ".join(f"{n} chosen {c:.2f}, earns {r:.2f}" for n, c, r in told)
    text = f"Chances as bars, rewards as arrows from the average {average:.2f}"
    describe(left.figure, f"{text}: {listed}.")
    return [left, right]


# Texts cut into coloured pieces: what a grader reads, which tokens are scored.


# A kind of piece, its colour, its hatching. The template and the tags are the marks
# that somebody set; what stands between them is text.
PIECES = KINDS | {
    "question": KINDS["prompt"],
    "template": ("#d9d9d9", ""),
    "system": ("#cfe6f5", ""),
    "tag": ("#F0E442", ""),
    "answer": (COLOURS[2], ""),
    "passed over": (GROUND, ""),
    "solution": (GROUND, ""),
    "calculation": ("#d9d9d9", ""),
    "mark": ("#F0E442", ""),
}


PALE = ("padding", "passed over")  # written in grey


WIDTH, TEXT_PIECES_NAMES = 84, 19  # characters of a line, and of the names at its left


CHARACTER, LINE = 0.098, 0.33  # inches


BELOW = 1.45  # lines, for what the colours say


FEW = 6  # pieces of a row that are told one by one


Piece = tuple[str, str]  # a text and its kind


class Place(NamedTuple):
    """Where a piece stands: its left end, its width, both in characters, its line."""

    x: float
    width: float
    line: int


def places_of(pieces: Sequence[Piece]) -> list[Place]:
    """The pieces one after the other, in lines of at most WIDTH characters."""
    x, line, found = 0.0, 0, []
    for text, _ in pieces:
        width = len(text) + 1.0
        if x and x + width > WIDTH:
            x, line = 0.0, line + 1
        found.append(Place(x, width, line))
        x += width
    return found


def visible(text: str) -> str:
    """A text in which the end of a line and a lone space can be seen."""
    return "␣" if text == " " else text.replace("\n", "↵")


def plot_pieces(
    rows: Mapping[str, Sequence[Piece]],
    counted: Sequence[bool] = (),
    scorer: int | None = None,
) -> Axes:
    """Rows of text, by name; each is a list of pieces, (text, kind).

    `counted` is of the last row: below the pieces where it is True stands a bar. From
    the piece `scorer` of that row an arrow leads to the next one, which it scores.
    """
    shown = {
        name: [(visible(text), kind) for text, kind in pieces]
        for name, pieces in rows.items()
    }
    placed = {name: places_of(pieces) for name, pieces in shown.items()}
    heights = [places[-1].line + 1.3 for places in placed.values()]
    size = (CHARACTER * (WIDTH + TEXT_PIECES_NAMES), LINE * (sum(heights) + BELOW))
    ax = axes_row(width=size[0], height=size[1])[0]
    ax.set(
        xlim=(-TEXT_PIECES_NAMES, WIDTH),
        ylim=(sum(heights) + BELOW, 0),
        position=(0, 0, 1, 1),
    )
    ax.axis("off")
    top = 0.1
    for (name, pieces), height in zip(shown.items(), heights, strict=True):
        last = name == list(rows)[-1]
        ax.text(-1, top + 0.45, name, ha="right", va="center", color=INK)
        draw_row(ax, top, pieces, placed[name], counted if last else ())
        if last and scorer is not None:
            draw_scorer(ax, top, *placed[name][scorer : scorer + 2])
        top += height
    kinds = dict.fromkeys(kind for pieces in rows.values() for _, kind in pieces)
    draw_key(ax, top + 0.35, list(kinds), bool(counted))
    describe(ax.figure, " ".join(sentences(shown, sum(counted), scorer is not None)))
    return ax


def sentences(
    rows: Mapping[str, Sequence[Piece]], scored: int, arrow: bool
) -> list[str]:
    """What the rows hold, how many pieces have a bar, and whether there is an arrow."""
    listed = "; ".join(f"{name}: {words(pieces)}" for name, pieces in rows.items())
    told = [f"Texts as coloured pieces. {listed}."]
    told += [f"{scored} of the last row's pieces are scored."] if scored else []
    return told + ["An arrow leads to a piece from the one before it."] * arrow


def words(pieces: Sequence[Piece]) -> str:
    """A few pieces with their kinds, or how many of each kind, as one says it."""
    if len(pieces) <= FEW:
        return ", ".join(f"{text} ({kind})" for text, kind in pieces)
    kinds = [kind for _, kind in pieces]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))


def draw_row(
    ax: Axes,
    top: float,
    pieces: Sequence[Piece],
    places: Sequence[Place],
    counted: Sequence[bool],
) -> None:
    """The pieces of one text, and a bar below those that count."""
    for number, ((text, kind), at) in enumerate(zip(pieces, places, strict=True)):
        y = top + at.line
        box(ax, at.x, y, at.width - 0.15, kind)
        ink: dict[str, Any] = {"color": FAINT if kind in PALE else INK}
        ink |= {"ha": "center", "va": "center", "family": "DejaVu Sans Mono"}
        if kind == "answer":
            ink |= {"color": "white", "weight": "bold"}
        if kind == "padding":
            ink["bbox"] = {"facecolor": GROUND, "lw": 0, "pad": 1}
        middle = at.x + at.width / 2
        ax.text(middle, y + 0.4, text, fontsize=11, parse_math=False, **ink)
        if counted and counted[number]:
            bar = Rectangle((at.x, y + 0.8), at.width, 0.13, color=PI, lw=0)
            ax.add_patch(bar)


def draw_scorer(ax: Axes, top: float, start: Place, end: Place) -> None:
    """An arc from one piece over to the next."""
    ends = [(at.x + at.width / 2, top + at.line + 0.12) for at in (start, end)]
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 13, "lw": 2}
    arc = f"arc3,rad={-0.35 if start.line == end.line else 0}"
    style |= {"connectionstyle": arc, "color": PI, "shrinkA": 0, "shrinkB": 0}
    ax.add_patch(FancyArrowPatch(*ends, zorder=5, **style))


def box(ax: Axes, x: float, y: float, width: float, kind: str) -> None:
    """The ground of a piece, in the colour of its kind."""
    fill, hatch = PIECES[kind]
    look: dict[str, Any] = {"facecolor": fill, "hatch": hatch, "edgecolor": FAINT}
    ax.add_patch(Rectangle((x, y + 0.06), width, 0.7, lw=0.8, **look))


def draw_key(ax: Axes, y: float, kinds: Sequence[str], scored: bool) -> None:
    """What the colours say, below the texts."""
    x = 0.0
    for kind in kinds:
        box(ax, x, y, 2.2, kind)
        ax.text(x + 2.9, y + 0.4, kind, va="center", color=INK)
        x += 0.85 * len(kind) + 5.5
    if scored:
        ax.add_patch(Rectangle((x, y + 0.35), 2.2, 0.13, color=PI, lw=0))
        ax.text(x + 2.9, y + 0.4, "scored", va="center", color=INK)


# Where a token stands: the shift by one, the side of padding, the count of places.


def plot_places(real: Tensor, num_new: int = 4) -> Axes:
    """Prompts padded on the left, and below each its places, counted in two ways.

    bool [batch pos], True where a prompt's token stands; then come num_new responses.
    """
    count, width = real.shape
    ax = canvas(width + num_new, 2.8 * count + 1.2, names=4.6)
    for row, there in enumerate(real.tolist()):
        y, kinds = 2.8 * row + 0.2, ["prompt" if here else "padding" for here in there]
        name_row(ax, y, f"prompt {row + 1}")
        name_row(ax, y + 0.85, "with padding")
        name_row(ax, y + 1.55, "without")
        first = kinds.index("prompt")
        for x, kind in enumerate([*kinds, *["response"] * num_new]):
            cell(ax, x, y, "", kind)
            look: dict[str, Any] = {"ha": "center", "va": "center"}
            ax.text(x + 0.5, y + 1.35, str(x), color=INK, **look)
            if x >= first:
                ax.text(x + 0.5, y + 2.05, str(x - first), color=PI, **look)
        ax.plot([width, width], [y - 0.1, y + 2.35], color=INK, lw=2, ls="--")
    key(ax, 2.8 * count + 0.2, ("prompt", "response", "padding"))
    starts = ", ".join(str(there.index(True)) for there in real.tolist())
    text = f"{count} prompts padded on the left, their places counted in two ways: "
    text += f"with padding the first tokens stand at {starts}, without it at 0."
    describe(ax.figure, text)
    return ax
