"""What notebook 09 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    COLOURS,
    FAINT,
    KINDS,
    NAMES,
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
    write,
)

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
    names: Mapping[str, str] = {},
) -> Axes:
    """A group's texts, one a row. int [pos], int [trial pos], bool [trial pos]

    `names` says what kinds are called where the mask may be wrong.
    """
    ax = canvas(len(prompt) + responses.shape[-1], len(responses) + 1)
    for row, (response, counts) in enumerate(zip(responses, mask, strict=True)):
        draw_text(ax, row, prompt, response, counts, eos, pad)
        name_row(ax, row, f"response {row}")
    key(ax, len(responses), tuple(KINDS), left=-2, names=NAMES | dict(names))
    counted = mask.sum(-1).tolist()
    describe(
        ax.figure, f"Texts as rows of cells; {counted} tokens of their responses count."
    )
    return ax


def plot_quantities(
    prompt: Tensor,
    response: Tensor,
    rows: Mapping[str, Tensor],
    mask: Tensor,
    eos: int,
    pad: int,
) -> Axes:
    """One text as a row of cells, and below it one row for each quantity, aligned.

    int [pos] twice; each of the rows is [pos] of the response: bool for a mask, float
    for numbers. A row whose name begins with a delta is drawn as arrows. bool [pos]
    """
    ax = canvas(len(prompt) + len(response), len(rows) + 2)
    draw_text(ax, 0, prompt, response, mask, eos, pad)
    name_row(ax, 0, "token")
    for y, (name, values) in enumerate(rows.items(), start=1):
        name_row(ax, y, name)
        pairs = zip(values.tolist(), mask.tolist(), strict=True)
        for x, (value, counts) in enumerate(pairs, start=len(prompt)):
            if values.dtype == torch.bool:
                cell(ax, x, y, f"{value:d}", colour=GREY if value else PAPER)
            elif not counts:
                cell(ax, x, y, "?", "padding")
            elif name.startswith(r"$\delta"):
                cell(ax, x, y, "")
                up = 0.3 if value > 0 else -0.3  # rows are counted downwards
                draw_arrow(
                    ax, (x + 0.13, y + 0.5 + up), (x + 0.13, y + 0.5 - up), value
                )
                write(
                    ax, f"{value:+.2f}".replace("0.", "."), x + 0.58, y + 0.5, size=10
                )
            else:
                cell(ax, x, y, f"{value:.2f}")
    key(ax, len(rows) + 1, tuple(KINDS), left=-2)
    describe(
        ax.figure, f"A text as a row of cells; below each token its {', '.join(rows)}."
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


def plot_answers(
    prompts: Tensor, answers: Tensor, points: Tensor, most: int = 5
) -> Axes:
    """Prompts of the sort task with their answers; a number out of place is framed.

    int [batch pos] twice; points [batch] of `most`.
    """
    ax, told = canvas(12.8, len(prompts) + 1, names=0.2), []
    misplaced = answers != prompts.sort(dim=-1).values  # [batch pos]
    look: dict[str, Any] = {"ha": "left", "size": 13}
    for x, text in ((0, "prompt"), (4, "answer"), (7.5, "points")):
        write(ax, text, x, 0.5, **look)
    for y, (prompt, answer) in enumerate(
        zip(prompts.tolist(), answers.tolist(), strict=True), 1
    ):
        off = misplaced[y - 1].tolist()
        draw_tokens(ax, y, prompt, ["prompt"] * len(prompt))
        draw_tokens(ax, y, answer, ["" if each else "response" for each in off], x=4)
        for x in misplaced[y - 1].nonzero().flatten().tolist():
            frame(ax, y + 0.5, x + 4.5, ec=COLOURS[1], lw=3)
        row = f"{points[y - 1]:g} of {most}", "wrong" if any(off) else "sorted"
        for x, text in zip((7.5, 10.3), row, strict=True):
            write(ax, text, x, y + 0.5, **look)
        told.append(f"{answer} to {prompt}, {', '.join(row)}")
    describe(ax.figure, f"Answers as rows of cells: {'; '.join(told)}.")
    return ax


def plot_ways_from(
    starts: Mapping[str, tuple[Tensor, Tensor]],
    ends: Mapping[str, Mapping[str, tuple[Tensor, Tensor]]],
    xlabel: str,
    ylabel: str,
) -> Axes:
    """An arrow from each start to each of its ends, whose names stand at the tips.

    What is won goes across and what is kept upwards, [seed] each: an arrow joins two
    means.
    """
    ax = finish(axes_row(width=7.5, height=4.2)[0], xlabel, ylabel)
    for (name, start), colour in zip(starts.items(), COLOURS, strict=False):
        x, y = (each.mean().item() for each in start)
        ax.plot(x, y, "o", ms=10, color=colour)
        write(ax, name, x, y, (-4, 18))
        tips = (10, 8), (10, -8), (-6, 14)  # so that no two names meet
        for (end, pair), away in zip(ends[name].items(), tips, strict=False):
            tip = pair[0].mean().item(), pair[1].mean().item()
            draw_arrow(ax, (x, y), tip, color=colour, width=2.5)
            write(ax, end, *tip, away, ha="left", color=colour)
    ax.set(xlim=(-0.1, 1.2), ylim=(-0.05, 1))
    return ax
