"""What notebook 09 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    CLIP,
    COLOURS,
    FAINT,
    KINDS,
    PAPER,
    PI,
    axes_row,
    canvas,
    cell,
    cells,
    draw_arrow,
    finish,
    frame,
    key,
    name_row,
    plot_bands,
    plot_seeds,
    write,
)
from grpo_course.formulas import EPSILON

GREY = "#d9d9d9"


def draw_tokens(
    ax: Axes, y: float, tokens: Sequence, kinds: Sequence[str], x: float = 0
) -> None:
    """A row of tokens, a cell each, coloured by kind."""
    for place, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
        cell(ax, x + place, y, str(token), kind)


def draw_text(
    ax: Axes,
    y: float,
    prompt: Tensor,
    response: Tensor,
    mask: Tensor,
    eos: int,
    pad: int,
) -> None:
    """A prompt that is padded on the left and its response, whose kinds go by the mask."""
    asked, said = prompt.tolist(), response.tolist()
    kinds = ["padding" if token == pad else "prompt" for token in asked]
    for token, counts in zip(said, mask.tolist(), strict=True):
        kinds.append(("end" if token == eos else "response") if counts else "padding")
    draw_tokens(ax, y, asked + said, kinds)


def plot_batch(
    prompt: Tensor,
    responses: Tensor,
    mask: Tensor,
    eos: int,
    pad: int,
) -> Axes:
    """A group's texts, one a row. int [pos], int [trial pos], bool [trial pos]"""
    ax = canvas(len(prompt) + responses.shape[-1], len(responses) + 1)
    for row, (response, counts) in enumerate(zip(responses, mask, strict=True)):
        draw_text(ax, row, prompt, response, counts, eos, pad)
        name_row(ax, row, f"response {row}")
    key(ax, len(responses), tuple(KINDS), left=-2)
    counted = mask.sum(-1).tolist()
    describe(
        ax.figure, f"Texts as rows of cells; {counted} tokens of their responses count."
    )
    return ax


def plot_shift(tokens: Tensor, prompt_length: int, log_probs: Tensor) -> Axes:
    """Each row of the logits points at the token that it scores.

    int [pos]; log_probs [pos-1] holds what each token but the first is given.
    """
    ax = canvas(len(tokens), 4.6, names=3.1)
    kinds = ["prompt" if x < prompt_length else "response" for x in range(len(tokens))]
    draw_tokens(ax, 2.2, tokens.tolist(), kinds)
    for x in range(len(tokens)):
        cell(ax, x, 0, f"{x}", colour=GREY if x + 1 < len(tokens) else PAPER)
    for x, value in enumerate(log_probs.tolist(), start=1):
        colour = PI if kinds[x] == "response" else FAINT
        draw_arrow(ax, (x - 0.5, 0.95), (x + 0.5, 2.25), color=colour)
        if kinds[x] == "response":
            write(ax, f"{value:.1f}", x + 0.5, 3.4)
    for y, name in ((0, "logits, row t"), (2.2, "token t"), (2.9, r"log $\pi$")):
        name_row(ax, y, name)
    key(ax, 3.7, ("prompt", "response"), left=-2)
    describe(
        ax.figure,
        "From each row of the logits an arrow leads to the token one place on.",
    )
    return ax


def plot_padding(right: Tensor, left: Tensor, pad: int, num_new: int = 4) -> Axes:
    """The same prompts padded on either side, with room for responses. int [batch pos]

    No prompt holds the pad token.
    """
    rows, width = right.shape
    ax = canvas(2 * (width + num_new) + 2, rows + 2.0, names=0.2)
    sides = {"right": (0, right), "left": (width + num_new + 2, left)}
    for side, (x, prompts) in sides.items():
        write(ax, f"padding on the {side}", x, 0.5, ha="left")
        for y, prompt in enumerate(prompts.tolist(), start=1):
            kinds = ["padding" if token == pad else "prompt" for token in prompt]
            draw_tokens(
                ax, y, prompt + num_new * [""], kinds + num_new * ["response"], x
            )
        ax.plot([x + width] * 2, [0.9, rows + 1.1], color="black", lw=2, ls="--")
    key(ax, rows + 1.0, ("prompt", "response", "padding"))
    text = "Prompts padded on the right, with padding before their responses, and on the left."
    describe(ax.figure, text)
    return ax


def plot_reading(
    tokens: Tensor, real: Tensor, places: Tensor, gaps: Mapping[str, Mapping]
) -> Axes:
    """A padded prompt as a model takes it, told ever more about its padding.

    int, bool, int [pos]. A token's place stands below it. gaps[model] has of each thing
    told by how much the next token's log-probabilities are off.
    """
    told, width = list(next(iter(gaps.values()))), len(tokens)
    ax = canvas(width + 4.2 * len(gaps), 1.5 * len(told) + 2.1, names=5.4)
    words, usual = ["prompt"] * width, list(range(width))
    hidden = ["prompt" if counts else "padding" for counts in real.tolist()]
    looks = (words, usual), (hidden, usual), (hidden, places.tolist())
    for column, name in enumerate(gaps):
        write(ax, name, width + 4.2 * column + 2.6, 0.5)
    for row, (name, (kinds, numbers)) in enumerate(zip(told, looks, strict=True)):
        y = 1 + 1.5 * row
        draw_tokens(ax, y, tokens.tolist(), kinds)
        name_row(ax, y, name)
        name_row(ax, y + 0.65, "place")
        for x, (kind, number) in enumerate(zip(kinds, numbers, strict=True)):
            if kind == "prompt":
                write(ax, f"{number}", x + 0.5, y + 1.15)
        for column, errors in enumerate(gaps.values()):
            look: dict[str, Any] = {"weight": "bold"} if errors[name] >= 0.001 else {}
            off = f"off by {errors[name]:.3f}"
            write(ax, off, width + 4.2 * column + 2.6, y + 0.5, **look)
    key(ax, 1.5 * len(told) + 1.0, ("prompt", "padding"))
    listed = [
        f"{model} told of {name}: {gap:.3f}"
        for model, errors in gaps.items()
        for name, gap in errors.items()
    ]
    describe(ax.figure, f"A padded prompt, and errors in nats. {'; '.join(listed)}.")
    return ax


def plot_writing(probs: Tensor, tokens: Tensor, prompt: Tensor, rows: int = 0) -> Axes:
    """The probabilities before each token, one row a step; what was written is framed.

    float [pos vocab], int [pos], int [pos]; `rows` leaves room for steps to come.
    """
    count, vocab = probs.shape
    rows = max(rows, count)
    ax = axes_row(width=2.0 + 0.58 * vocab, height=0.9 + 0.4 * rows)[0]
    cells(finish(ax, "next token", ""), probs)
    for row, token in enumerate(tokens.tolist()):
        frame(ax, row, token, ec=COLOURS[1], lw=3, clip_on=False)
    before = [" ".join(map(str, prompt.tolist())), *map(str, tokens.tolist())]
    ax.set_yticks(range(count), [f"reads {text}" for text in before[:count]])
    ax.set(xticks=range(vocab), ylim=(rows - 0.5, -0.5))
    return ax


def plot_ratios(
    chances: Tensor,
    ratios: Mapping[str, Tensor],
    xlabel: str = "probability when sampled",
) -> list[Axes]:
    """Each token's ratio over its probability, a picture for each entry. [...] each"""
    axes = axes_row(len(ratios), width=4.5 * len(ratios), height=2.8)
    for ax, (title, ratio) in zip(axes, ratios.items(), strict=True):
        ax.axhspan(1 - EPSILON, 1 + EPSILON, **CLIP)
        ax.plot(chances.flatten(), ratio.flatten(), ".", alpha=0.4)
        finish(ax, xlabel, "ratio", title)
        ax.set(xlim=(0, 1.1 * chances.max().item()), ylim=(0, 3))
    plt.tight_layout()
    return axes


def plot_suspects(ends: Mapping[str, Tensor]) -> Axes:
    """The share of token 1 after each change: a dot a seed, and their mean. [seed]"""
    ax = plot_seeds(dict(ends), "share of token 1 after 20 epochs")
    ax.set(xlim=(0, 1.15), xticks=(0, 0.5, 1))
    for row, end in enumerate(ends.values()):
        write(ax, f"{end.mean():.2f}", 1.03, row, ha="left")
    return ax


def plot_history(history: Tensor) -> list[Axes]:
    """Reward, length and entropy of each epoch, with bands. [3 epoch seed]"""
    names = "reward", "tokens of a response", "entropy (nats a token)"
    axes = axes_row(len(names), width=11.0, height=2.9)
    for ax, name, curve in zip(axes, names, history, strict=True):
        plot_bands({name: curve}, name, ax=ax)
        ax.set_ylim(bottom=0)
    plt.tight_layout()
    return axes
