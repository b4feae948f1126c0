"""A model that writes: what it says before each token, its texts, what they earn."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row, fill_cells, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import COLOURS
from grpo_course.classroom.plots.token_rows import INK, canvas, cell, name_row

ANSWER, EARNS, IS = 4, 7.5, 10.3  # columns where answer, pay and verdict begin


def plot_writing(probs: Tensor, tokens: Tensor, prompt: Tensor, rows: int = 0) -> Axes:
    """The probabilities before each token, one row a step; what was written is framed.

    float [pos vocab], int [pos], int [pos]; `rows` leaves room for steps to come.
    """
    count, vocab = probs.shape
    rows = max(rows, count)
    ax = axes_row(width=2.0 + 0.58 * vocab, height=0.9 + 0.4 * rows)[0]
    fill_cells(ax, probs)
    for row, token in enumerate(tokens.tolist()):
        frame(ax, token - 0.5, row - 0.5)
    before = [" ".join(map(str, prompt.tolist())), *map(str, tokens.tolist())]
    ax.set_yticks(range(count), [f"reads {text}" for text in before[:count]])
    ax.set_xticks(range(vocab))
    ax.set_ylim(rows - 0.5, -0.5)
    finish(ax, "next token", "").grid(visible=False)
    written = zip(tokens.tolist(), probs, strict=True)
    told = ", ".join(f"{token} at {row[token]:.2f}" for token, row in written)
    describe(
        ax.figure,
        f"A table of probabilities, {count} steps by {vocab} tokens. "
        f"Written and framed: {told}.",
    )
    return ax


def frame(ax: Axes, x: float, y: float) -> None:
    """A thick frame around one cell."""
    style: dict[str, Any] = {"fill": False, "ec": COLOURS[1], "lw": 3, "zorder": 3}
    ax.add_patch(Rectangle((x, y), 1, 1, clip_on=False, **style))


def plot_texts(texts: Tensor, names: Sequence[str], token: int) -> Axes:
    """A text a row, its cells coloured where they hold `token`. int [row pos]"""
    count, width = texts.shape
    ax, told = canvas(width + 1.8, count, names=2.4), []
    for y, (name, text) in enumerate(zip(names, texts.tolist(), strict=True)):
        for x, each in enumerate(text):
            cell(ax, x, y, str(each), "response" if each == token else "")
        share = f"{text.count(token)} of {width}"
        name_row(ax, y, name)
        ax.text(width + 0.15, y + 0.5, share, va="center", color=INK)
        told.append(f"{name} {share}")
    describe(
        ax.figure,
        f"Texts as rows of cells, coloured where they hold token {token}: "
        f"{', '.join(told)}.",
    )
    return ax


def plot_answers(
    prompts: Tensor, answers: Tensor, points: Tensor, most: int = 5
) -> Axes:
    """Prompts of the sort task with their answers; a number out of place is framed.

    int [batch pos] twice; points [batch] of `most`.
    """
    ax = canvas(IS + 2.5, len(prompts) + 1, names=0.2)
    style: dict[str, Any] = {"va": "center", "fontsize": 13, "color": INK}
    for x, text in ((0, "prompt"), (ANSWER, "answer"), (EARNS, "points")):
        ax.text(x + 0.05, 0.5, text, **style)
    truth, told = prompts.sort(dim=-1).values, []
    for y, (prompt, answer) in enumerate(zip(prompts, answers, strict=True), start=1):
        wrong = answer != truth[y - 1]
        for x, token in enumerate(prompt.tolist()):
            cell(ax, x, y, str(token), "prompt")
        for x, token in enumerate(answer.tolist(), start=ANSWER):
            misplaced = bool(wrong[x - ANSWER])
            cell(ax, x, y, str(token), "" if misplaced else "response")
            if misplaced:
                frame(ax, x, y)
        pay = f"{points[y - 1]:g} of {most}"
        verdict = "wrong" if wrong.any() else "sorted"
        ax.text(EARNS + 0.05, y + 0.5, pay, **style)
        ax.text(IS, y + 0.5, verdict, **style)
        told.append(f"{answer.tolist()} to {prompt.tolist()}, {pay}, {verdict}")
    describe(ax.figure, f"Answers as rows of cells: {'; '.join(told)}.")
    return ax
