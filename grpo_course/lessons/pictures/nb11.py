"""What notebook 11 alone draws."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    DOWN,
    FAINT,
    GROUND,
    KINDS,
    PI,
    UP,
    axes_row,
    divide_bars,
    draw_arrow,
    write,
)
from grpo_course.text.responses import TAGS

# The ground and the hatching of a token.
PIECES = KINDS | {
    "question": KINDS["prompt"],
    "template": ("#d9d9d9", ""),
    "system": ("#cfe6f5", ""),
    "tag": ("#F0E442", ""),
}


def kinds_of(
    row: Tensor,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    texts: Mapping[str, str],
) -> tuple[list[str], int]:
    """What each token of a row is, and how many are its prompt's. [pos]

    The prompt holds the texts, by kind, in their order.
    """
    parts, rest = [], prompt
    for kind, text in texts.items():
        before, rest = rest.split(text)
        parts += [(before, "template"), (text, kind)]
    kinds = []
    for part, kind in [*parts, (rest, "template")]:
        kinds += [kind] * len(tokenizer(part, add_special_tokens=False).input_ids)
    width = len(kinds)
    own = {tokenizer.eos_token_id: "end", tokenizer.pad_token_id: "padding"}
    own |= {tokenizer.convert_tokens_to_ids(tag): "tag" for tag in TAGS}
    kinds += [own.get(token, "response") for token in row[width:].tolist()]
    return kinds, width


def plot_row(
    row: Tensor,
    scored: Tensor,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    texts: Mapping[str, str],
) -> Axes:
    """The tokens of a row, wrapped, each in the colour of its kind. [pos] both

    A bar stands below those that are scored. An arrow leads from the last token of the
    prompt, which scores the first of the response, to that one.
    """
    width = 84  # characters of a line
    (ax,), x, y, middles = axes_row(), 0.0, 0.1, []
    kinds, prompt_width = kinds_of(row, tokenizer, prompt, texts)
    words = [str(tokenizer.decode([token])) for token in row.tolist()]

    def box(x: float, y: float, width: float, kind: str) -> None:
        fill, hatch = PIECES[kind]
        ground: dict[str, Any] = {"fc": fill, "hatch": hatch, "ec": FAINT, "lw": 0.8}
        ax.add_patch(Rectangle((x, y + 0.06), width, 0.7, **ground))

    for word, kind, counts in zip(words, kinds, scored.tolist(), strict=True):
        wide = len(word) + 1.0
        if x + wide > width:
            x, y = 0.0, y + 1
        box(x, y, wide - 0.15, kind)
        look: dict[str, Any] = {"family": "DejaVu Sans Mono", "fontsize": 11}
        if kind == "padding":
            look |= {"color": FAINT, "bbox": {"fc": GROUND, "lw": 0, "pad": 1}}
        seen = "␣" if word == " " else word.replace("\n", "↵")
        write(ax, seen, x + wide / 2, y + 0.4, parse_math=False, **look)
        if counts:
            ax.add_patch(Rectangle((x, y + 0.8), wide, 0.13, color=PI, lw=0))
        middles.append((x + wide / 2, y + 0.12))
        x += wide
    start, end = middles[prompt_width - 1 : prompt_width + 1]
    bent = f"arc3,rad={-0.35 if start[1] == end[1] else 0}"
    draw_arrow(ax, start, end, color=PI, connectionstyle=bent)
    x, y = 0.0, y + 1.65  # what the colours say
    for kind in dict.fromkeys(kinds):
        box(x, y, 2.2, kind)
        ax.text(x + 2.9, y + 0.4, kind, va="center")
        x += 0.85 * len(kind) + 5.5
    ax.add_patch(Rectangle((x, y + 0.35), 2.2, 0.13, color=PI, lw=0))
    ax.text(x + 2.9, y + 0.4, "scored", va="center")
    plt.gcf().set_size_inches(0.098 * (width + 1), 0.33 * (y + 1))
    ax.set(xlim=(-1, width), ylim=(y + 1, 0), position=(0, 0, 1, 1))
    ax.axis("off")
    text = f"A row of tokens, of which {scored.sum()} are scored: {''.join(words)}"
    describe(ax.figure, text.replace("\n", " "))
    return ax


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
