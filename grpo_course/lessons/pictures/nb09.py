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
    DOWN,
    FAINT,
    PAPER,
    PI,
    UP,
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
HEAD = 0.8  # cells that a picture of tokens leaves for its title


def head(ax: Axes, text: str, left: float = 0) -> None:
    """A title over a picture of tokens."""
    write(ax, text, left, 0.4, ha="left", size=12)


def draw_tokens(
    ax: Axes, y: float, tokens: Sequence, kinds: Sequence[str], x: float = 0
) -> None:
    """A row of tokens, a cell each, coloured by kind."""
    for place, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
        cell(ax, x + place, y, str(token), kind)


def plot_shift(tokens: Tensor, prompt_length: int, log_probs: Tensor) -> Axes:
    """Each row of the logits points at the token that it scores.

    int [pos]; log_probs [pos-1] holds what each token but the first is given.
    """
    ax = canvas(len(tokens), 4.6 + HEAD, names=3.1)
    head(ax, "Each row of the logits scores the token one place on", -2.9)
    kinds = ["prompt" if x < prompt_length else "response" for x in range(len(tokens))]
    draw_tokens(ax, HEAD + 2.2, tokens.tolist(), kinds)
    for x in range(len(tokens)):
        colour = GREY if x + 1 < len(tokens) else PAPER
        cell(ax, x, HEAD, f"{x}", colour=colour)
    for x, value in enumerate(log_probs.tolist(), start=1):
        colour = PI if kinds[x] == "response" else FAINT
        draw_arrow(ax, (x - 0.5, HEAD + 0.95), (x + 0.5, HEAD + 2.25), color=colour)
        if kinds[x] == "response":
            write(ax, f"{value:.1f}", x + 0.5, HEAD + 3.4)
    for y, name in ((0, "logits, row t"), (2.2, "token t"), (2.9, r"log $\pi$, nats")):
        name_row(ax, HEAD + y, name)
    key(ax, HEAD + 3.7, ("prompt", "response"), left=-2)
    describe(
        ax.figure,
        "From each row of the logits an arrow leads to the token one place on.",
    )
    return ax


def plot_texts(prompts: Tensor, responses: Tensor, ratios: Tensor, pad: int) -> Axes:
    """Prompts padded in front and their responses, the ratio below each token.

    int [batch pos] twice, float [batch pos]. No prompt holds the pad token.
    """
    width = prompts.shape[-1]
    ax = canvas(width + responses.shape[-1], 1.5 * len(prompts) + 1.0 + HEAD)
    head(ax, "The scorer reads padding as tokens (bold: ratio not 1)", -1.4)
    texts = zip(prompts.tolist(), responses.tolist(), ratios.tolist(), strict=True)
    for row, (prompt, response, ratio) in enumerate(texts):
        y, new = HEAD + 1.5 * row, ["response"] * len(response)
        kinds = ["padding" if token == pad else "prompt" for token in prompt]
        draw_tokens(ax, y, prompt + response, kinds + new)
        name_row(ax, y + 0.65, "ratio")
        for x, value in enumerate(ratio, start=width):
            look: dict[str, Any] = (
                {"weight": "bold"} if f"{value:.2f}" != "1.00" else {}
            )
            write(ax, f"{value:.2f}", x + 0.5, y + 1.15, **look)
    key(ax, HEAD + 1.5 * len(prompts), ("prompt", "response", "padding"))
    off = [f"{(ratio - 1).abs().max():.3f}" for ratio in ratios]
    describe(ax.figure, f"Padded texts, whose ratios are off by {', '.join(off)}.")
    return ax


def plot_reading(
    tokens: Tensor, real: Tensor, places: Tensor, gaps: Mapping[str, Mapping]
) -> Axes:
    """A padded prompt as a model takes it, told ever more about its padding.

    int, bool, int [pos]. A token's place stands below it. gaps[model] has of each thing
    told by how much the next token's log-probabilities are off.
    """
    told, width = list(next(iter(gaps.values()))), len(tokens)
    ax = canvas(width + 4.2 * len(gaps), 1.5 * len(told) + 2.1 + HEAD, names=6)
    title = r"Largest error of the next token's log $\pi$: with the mask alone, "
    head(ax, title + "only Llama has none", -5.8)
    words, usual = ["prompt"] * width, list(range(width))
    hidden = ["prompt" if counts else "padding" for counts in real.tolist()]
    looks = (words, usual), (hidden, usual), (hidden, places.tolist())
    for column, name in enumerate(gaps):
        write(ax, f"{name} is off by", width + 4.2 * column + 2.6, HEAD + 0.5)
    for row, (name, (kinds, numbers)) in enumerate(zip(told, looks, strict=True)):
        y = HEAD + 1 + 1.5 * row
        draw_tokens(ax, y, tokens.tolist(), kinds)
        name_row(ax, y, f"told {name}")
        name_row(ax, y + 0.65, "place")
        for x, (kind, number) in enumerate(zip(kinds, numbers, strict=True)):
            if kind == "prompt":
                write(ax, f"{number}", x + 0.5, y + 1.15)
        for column, errors in enumerate(gaps.values()):
            look: dict[str, Any] = {"weight": "bold"} if errors[name] >= 0.001 else {}
            off = f"{errors[name]:.3f} nats"
            write(ax, off, width + 4.2 * column + 2.6, y + 0.5, **look)
    key(ax, HEAD + 1.5 * len(told) + 1.0, ("prompt", "padding"))
    listed = [
        f"{model} told of {name}: {gap:.3f}"
        for model, errors in gaps.items()
        for name, gap in errors.items()
    ]
    describe(ax.figure, f"A padded prompt, and errors in nats. {'; '.join(listed)}.")
    return ax


def plot_writing(
    log_probs: Tensor, tokens: Tensor, prompt: Tensor, rows: int = 0
) -> Axes:
    """The probabilities before each token, one row a step; what was drawn is framed.

    float [pos vocab], int [pos], int [pos]; `rows` leaves room for steps to come.
    """
    count, vocab = log_probs.shape
    rows = max(rows, count)
    ax = axes_row(width=3.0 + 0.58 * vocab, height=1.2 + 0.4 * rows)[0]
    title = "Framed: the token that is drawn; at the right its log-probability"
    cells(finish(ax, "next token, with its probability", "", title), log_probs.exp())
    for row, token in enumerate(tokens.tolist()):
        frame(ax, row, token, ec=COLOURS[1], lw=3, clip_on=False)
        score = f"{log_probs[row, token]:.2f} nats"
        write(ax, score, vocab - 0.3, row, ha="left", annotation_clip=False)
    before = [" ".join(map(str, prompt.tolist())), *map(str, tokens.tolist())]
    ax.set_yticks(range(count), [f"reads {text}" for text in before[:count]])
    ax.set(xticks=range(vocab), ylim=(rows - 0.5, -0.5))
    return ax


def plot_ratios(
    chances: Tensor,
    ratios: Mapping[str, Tensor],
    xlabel: str = "probability when sampled",
) -> list[Axes]:
    """Each token's ratio over its probability, a picture for each entry. [...] each

    Above it stands how many are outside the clip's range; NaN is no token of an entry.
    """
    axes = axes_row(len(ratios), width=4.5 * len(ratios), height=3.1)
    colours = {"good responses": UP, "bad responses": DOWN}
    for ax, (name, ratio) in zip(axes, ratios.items(), strict=True):
        ax.axhspan(1 - EPSILON, 1 + EPSILON, **CLIP)
        colour = colours.get(name, PI)
        ax.plot(chances.flatten(), ratio.flatten(), ".", alpha=0.4, color=colour)
        there = ratio[~ratio.isnan()]
        above = (there > 1 + EPSILON).float().mean().item()
        below = (there < 1 - EPSILON).float().mean().item()
        title = f"{name}\nabove the range {above:.0%}, below it {below:.0%}"
        finish(ax, xlabel, r"ratio $\pi / \pi_\mathrm{old}$", title)
        reach = 1.1 * chances.max().item()
        write(ax, "grey: the clip's range", reach, 0.2, (-4, 0), ha="right")
        ax.set(xlim=(0, reach), ylim=(0, 3))
    plt.tight_layout()
    return axes


def plot_cuts(curves: Mapping[str, Tensor]) -> Axes:
    """The share of token 1 by epoch, each line named at its end. [epoch seed] each"""
    title = "One line differs: which 20 of 24 scores are kept"
    ax = plot_bands(dict(curves), "share of token 1", title=title)
    ax.legend().remove()  # the lines are named at their ends
    ax.set_title(title, pad=6)
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=False):
        end = curve[-1].mean().item()
        text = f"{name}: {end:.2f}"
        look: dict[str, Any] = {"ha": "right", "color": colour}
        write(ax, text, len(curve) - 1, end, (0, -34 if end > 0.5 else 14), **look)
    ax.set(ylim=(0, 1.05), xticks=range(0, len(curve), 5))
    return ax


def plot_suspects(ends: Mapping[str, Tensor]) -> Axes:
    """The share of token 1 after each change: a dot a seed, and their mean. [seed]"""
    ax = plot_seeds(dict(ends), "share of token 1 after 20 epochs (dot: a seed)")
    ax.set_title("Trained with the first 20 scores and one change each")
    ax.set(xlim=(0, 1.15), xticks=(0, 0.5, 1))
    for row, end in enumerate(ends.values()):
        write(ax, f"{end.mean():.2f}", 1.03, row, ha="left")
    return ax
