"""Texts cut into coloured pieces: what a grader reads, which tokens are scored."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, GROUND, PI
from grpo_course.classroom.plots.token_rows import FAINT, INK, KINDS

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
WIDTH, NAMES = 84, 19  # characters of a line, and of the names at its left
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
    size = (CHARACTER * (WIDTH + NAMES), LINE * (sum(heights) + BELOW))
    ax = axes_row(width=size[0], height=size[1])[0]
    ax.set(xlim=(-NAMES, WIDTH), ylim=(sum(heights) + BELOW, 0), position=(0, 0, 1, 1))
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
