"""What notebook 11 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    DOWN,
    FAINT,
    GROUND,
    KINDS,
    PI,
    UP,
    axes_grid,
    axes_row,
    divide_bars,
    draw_arrow,
    draw_shares,
    write,
)
from grpo_course.text.responses import TAGS

# The ground and the hatching of a piece of text.
PIECES = KINDS | {
    "question": KINDS["prompt"],
    "template": ("#d9d9d9", ""),
    "system": ("#cfe6f5", ""),
    "tag": ("#F0E442", ""),
    "answer": (COLOURS[2], ""),
}


def plot_pieces(
    rows: Mapping[str, Sequence[tuple[str, str]]],
    counted: Sequence[bool] = (),
    scorer: int | None = None,
) -> Axes:
    """Rows of text, by name; each is a list of pieces, (text, kind), wrapped where it is long.

    Below those pieces of the last row that are `counted` stands a bar. From its piece `scorer` an
    arrow leads to the next one, which it scores.
    """
    width, margin = 84, 19  # characters of a line, and of the names at its left
    (ax,), y = axes_row(), 0.1
    look: dict[str, Any]

    def box(x: float, y: float, width: float, kind: str) -> None:
        fill, hatch = PIECES[kind]
        ground: dict[str, Any] = {"fc": fill, "hatch": hatch, "ec": FAINT, "lw": 0.8}
        ax.add_patch(Rectangle((x, y + 0.06), width, 0.7, **ground))

    for name, pieces in rows.items():
        ax.text(-1, y + 0.45, name, ha="right", va="center")
        is_last, x, middles = name == [*rows][-1], 0.0, []
        for number, (text, kind) in enumerate(pieces):
            wide = len(text) + 1.0
            if x and x + wide > width:
                x, y = 0.0, y + 1
            box(x, y, wide - 0.15, kind)
            look = {"family": "DejaVu Sans Mono", "fontsize": 11}
            if kind == "answer":
                look |= {"color": "white", "weight": "bold"}
            if kind == "padding":
                look |= {"color": FAINT, "bbox": {"fc": GROUND, "lw": 0, "pad": 1}}
            seen = "␣" if text == " " else text.replace("\n", "↵")
            write(ax, seen, x + wide / 2, y + 0.4, parse_math=False, **look)
            if is_last and counted and counted[number]:
                ax.add_patch(Rectangle((x, y + 0.8), wide, 0.13, color=PI, lw=0))
            middles.append((x + wide / 2, y + 0.12))
            x += wide
        y += 1.3
    if scorer is not None:
        start, end = middles[scorer : scorer + 2]
        bent = f"arc3,rad={-0.35 if start[1] == end[1] else 0}"
        draw_arrow(ax, start, end, color=PI, connectionstyle=bent)
    x, y = 0.0, y + 0.35  # what the colours say
    for kind in dict.fromkeys(kind for pieces in rows.values() for _, kind in pieces):
        box(x, y, 2.2, kind)
        ax.text(x + 2.9, y + 0.4, kind, va="center")
        x += 0.85 * len(kind) + 5.5
    if counted:
        ax.add_patch(Rectangle((x, y + 0.35), 2.2, 0.13, color=PI, lw=0))
        ax.text(x + 2.9, y + 0.4, "scored", va="center")
    plt.gcf().set_size_inches(0.098 * (width + margin), 0.33 * (y + 1))
    ax.set(xlim=(-margin, width), ylim=(y + 1, 0), position=(0, 0, 1, 1))
    ax.axis("off")
    told = [f"{name}: {''.join(t for t, _ in row)}" for name, row in rows.items()]
    scored = f" {sum(counted)} of them are scored." if counted else ""
    text = f"Texts as coloured pieces.{scored} {'; '.join(told)}"
    describe(ax.figure, text.replace("\n", " "))
    return ax


def pieces_of(
    row: Tensor,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    system: str,
    question: str,
) -> list[tuple[str, str]]:
    """The tokens of a row, each with its kind; its prompt holds the two texts. [pos]"""
    head, rest = prompt.split(system)
    between, tail = rest.split(question)
    parts = [(head, "template"), (system, "system"), (between, "template")]
    parts += [(question, "question"), (tail, "template")]
    kinds = []
    for text, kind in parts:
        kinds += [kind] * len(tokenizer(text, add_special_tokens=False).input_ids)
    own = {tokenizer.eos_token_id: "end", tokenizer.pad_token_id: "padding"}
    own |= {tokenizer.convert_tokens_to_ids(tag): "tag" for tag in TAGS}
    kinds += [own.get(token, "response") for token in row[len(kinds) :].tolist()]
    words = [str(tokenizer.decode([token])) for token in row.tolist()]
    return [*zip(words, kinds, strict=True)]


def plot_paid(paid: Mapping[str, Tensor], right: Tensor) -> Axes:
    """How many texts each reward pays, by whether they give the right answer. [... each]"""
    table = torch.stack([*paid.values()]).flatten(1)
    good = table @ right.flatten()
    bad = table.sum(dim=1) - good
    looks = [{"color": UP}, {"fc": GROUND, "ec": DOWN, "hatch": "///"}]
    (ax,) = axes_row(width=8.0, height=2.6)
    divide_bars(ax, {"right answer": good, "none, or wrong": bad}, [*paid], looks)
    told, blank = [], {"fc": GROUND, "lw": 0, "pad": 1}
    for row, (name, yes, no) in enumerate(zip(paid, good, bad, strict=True)):
        write(ax, f"{yes:.0f} + {no:.0f}", yes + no, row, (6, 0), ha="left", bbox=blank)
        told.append(f"{name}: {yes:.0f} right and {no:.0f} others")
    ax.axvline(right.sum().item(), color="black", ls=":")
    ax.set(xlabel="texts paid; dotted: all that give the right answer")
    ax.set_xlim(right=1.12 * table.sum(dim=1).max().item())
    ax.legend(loc="upper right")
    describe(ax.figure, f"Texts paid, of {right.sum():.0f} right: {'; '.join(told)}.")
    return ax


def plot_choices(
    weights: Tensor, chances: Mapping[str, Tensor], ways: Sequence[str]
) -> list[Axes]:
    """A picture for each weight, a bar for each policy: chances[bar] is [weight way]."""
    (axes,) = axes_grid(1, len(weights), 10.0, 2.9)
    told = []
    for place, ax in enumerate(axes):
        table = torch.stack([each[place] for each in chances.values()], dim=1)
        draw_shares(ax, dict(zip(ways, table, strict=True)), [*chances])
        title = f"weight {weights[place].item():g}"
        ax.set(title=title, xlabel="chance of each way in the end")
        for bar, each in chances.items():
            likeliest = ways[int(each[place].argmax())]
            told.append(f"{title}, {bar}: {likeliest} {each[place].max():.2f}")
    place_of: dict[str, Any] = {"loc": "outside upper center", "ncols": len(ways)}
    axes[0].figure.legend(*axes[0].get_legend_handles_labels(), **place_of)
    text = "Bars divided by the chance of each way in the end; the likeliest:"
    describe(axes[0].figure, f"{text} {'; '.join(told)}.")
    return axes
