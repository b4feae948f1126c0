"""Texts of a batch as coloured cells: what is prompt, response, end and padding."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS, GROUND, sign_colour

# A kind of token, its colour, its hatching. Padding is hatched and hollow, so that it
# is told from the rest without any colour.
KINDS = {
    "prompt": (COLOURS[5], ""),
    "response": (COLOURS[4], ""),
    "end": (COLOURS[3], ""),
    "padding": (GROUND, "///"),
}
NAMES = {kind: kind for kind in KINDS}
MASKED = NAMES | {"response": "kept", "end": "kept EOS", "padding": "dropped"}
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


def kinds_of(
    prompt: Tensor, pad: int, mask: Tensor, response: Tensor, eos: int
) -> list:
    """The kind of each token of a text whose prompt is padded on the left."""
    said = ["padding" if token == pad else "prompt" for token in prompt.tolist()]
    pairs = zip(response.tolist(), mask.tolist(), strict=True)
    kinds = [
        ("end" if token == eos else "response") if k else "padding"
        for token, k in pairs
    ]
    return said + kinds


def plot_batch(
    prompt: Tensor,
    responses: Tensor,
    mask: Tensor,
    eos: int,
    pad: int,
    names: dict[str, str] = NAMES,
) -> Axes:
    """A group's texts, one a row. int [pos], int [trial pos], bool [trial pos]

    Kinds go by the mask; `names` says what they are called where it may be wrong.
    """
    width = len(prompt) + responses.shape[-1]
    ax = canvas(width, len(responses) + 1)
    for row, (response, counts) in enumerate(zip(responses, mask, strict=True)):
        kinds = kinds_of(prompt, pad, counts, response, eos)
        tokens = prompt.tolist() + response.tolist()
        for x, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
            cell(ax, x, row, str(token), kind)
        name_row(ax, row, f"response {row}")
    key(ax, len(responses), tuple(KINDS), left=-2, names=names)
    lengths = ", ".join(str(int(length)) for length in mask.sum(-1))
    rest = names["padding"]
    describe(
        ax.figure,
        f"{len(responses)} texts as rows of cells, coloured by kind: a prompt, padded "
        f"on the left, then responses of {lengths} tokens, the rest {rest}.",
    )
    return ax


def plot_quantities(
    prompt: Tensor,
    response: Tensor,
    rows: dict[str, Tensor],
    mask: Tensor,
    eos: int,
    pad: int,
) -> Axes:
    """One text as a row of cells, and below it one row for each quantity, aligned.

    int [pos] twice; each of the rows is [pos] of the response: bool for a mask, float
    for numbers. A row whose name begins with a delta is drawn as arrows. bool [pos]
    """
    start, kinds = len(prompt), kinds_of(prompt, pad, mask, response, eos)
    ax = canvas(start + len(response), len(rows) + 2)
    tokens = prompt.tolist() + response.tolist()
    for x, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
        cell(ax, x, 0, str(token), kind)
    name_row(ax, 0, "token")
    for y, (name, values) in enumerate(rows.items(), start=1):
        name_row(ax, y, name)
        for t, value in enumerate(values.tolist()):
            draw_value(ax, start + t, y, name, value, bool(mask[t]))
    key(ax, len(rows) + 1, tuple(KINDS), left=-2)
    count = int(mask.sum())
    describe(
        ax.figure,
        f"A text of {start} prompt places and {len(response)} response places as a row "
        f"of cells; below each response token its {', '.join(rows)}. The last "
        f"{len(response) - count} places are padding, where nothing counts.",
    )
    return ax


def draw_value(
    ax: Axes, x: float, y: float, name: str, value: float, counts: bool
) -> None:
    """A number, a tick of a mask or an arrow; padding is empty."""
    if isinstance(value, bool):
        cell(ax, x, y, "1" if value else "0", colour="#d9d9d9" if value else PAPER)
    elif not counts:
        cell(ax, x, y, "?", "padding")
    elif name.startswith(r"$\delta"):
        cell(ax, x, y, "")
        draw_delta(ax, x + 0.5, y + 0.5, value)
    else:
        cell(ax, x, y, f"{value:.2f}")


def draw_delta(ax: Axes, x: float, y: float, value: float) -> None:
    """An arrow up or down with its number; its colour says the direction again."""
    reach = 0.3 if value > 0 else -0.3
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 11, "lw": 2}
    ends = (x - 0.4, y + reach), (x - 0.4, y - reach)  # the axis points down
    style |= {"color": sign_colour(value), "shrinkA": 0, "shrinkB": 0}
    if value:
        ax.add_patch(FancyArrowPatch(*ends, **style))
    text = f"{value:+.2f}".replace("0.", ".")
    ax.text(x + 0.1, y, text, ha="center", va="center", fontsize=10)
