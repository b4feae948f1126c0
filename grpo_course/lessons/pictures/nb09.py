"""What notebook 09 alone draws."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.alt_text import describe
from grpo_course.classroom.plots import (
    ARROW,
    CLIP,
    COLOURS,
    FAINT,
    GROUND,
    INK,
    KINDS,
    NAMES,
    PAPER,
    PI,
    UP,
    axes_row,
    canvas,
    cell,
    cells,
    finish,
    key,
    name_row,
    plot_bands,
    sign_colour,
    words_of,
)
from grpo_course.formulas import compute_loss

# Texts of a batch as coloured cells: what is prompt, response, end and padding.


MASKED = NAMES | {"response": "kept", "end": "kept EOS", "padding": "dropped"}


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
        draw_delta_of_token_rows(ax, x + 0.5, y + 0.5, value)
    else:
        cell(ax, x, y, f"{value:.2f}")


def draw_delta_of_token_rows(ax: Axes, x: float, y: float, value: float) -> None:
    """An arrow up or down with its number; its colour says the direction again."""
    reach = 0.3 if value > 0 else -0.3
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 11, "lw": 2}
    ends = (x - 0.4, y + reach), (x - 0.4, y - reach)  # the axis points down
    style |= {"color": sign_colour(value), "shrinkA": 0, "shrinkB": 0}
    if value:
        ax.add_patch(FancyArrowPatch(*ends, **style))
    text = f"{value:+.2f}".replace("0.", ".")
    ax.text(x + 0.1, y, text, ha="center", va="center", fontsize=10)


# Ways to do one thing beside each other: gaps, means, before and after.


def plot_means_and_gap(
    curves: Mapping[str, Tensor], pair: tuple[str, str], ylabel: str, marked: range
) -> list[Axes]:
    """Means over the seeds; below, by how much the first of a pair is above the second.

    Curves are [epoch seed]. The gap is taken seed by seed, and its band holds 80 % of
    the seeds. The marked epochs are shaded.
    """
    figure, axes = plt.subplots(
        2, 1, sharex=True, figsize=(7.0, 4.6), height_ratios=(3, 2)
    )
    means = {name: curve.mean(dim=-1, keepdim=True) for name, curve in curves.items()}
    plot_bands(means, ylabel, "", ax=axes[0])
    upper, lower = pair
    gap = curves[upper] - curves[lower]
    plot_bands({"gap": gap}, f"{upper}\n− {lower}", ax=axes[1])
    axes[1].axhline(0, color="black", lw=1)
    for ax in axes:
        ax.axvspan(marked[0], marked[-1], **CLIP)
    figure.align_ylabels()
    return list(axes)


# Where a token stands: the shift by one, the side of padding, the count of places.


def plot_shift(tokens: Tensor, prompt_length: int, log_probs: Tensor) -> Axes:
    """Each row of the logits points at the token that it scores.

    int [pos]; log_probs [pos-1] holds what each token but the first is given.
    """
    ax = canvas(len(tokens), 4.6, names=3.1)
    for x, token in enumerate(tokens.tolist()):
        cell(ax, x, 0, f"{x}", colour="#d9d9d9" if x + 1 < len(tokens) else GROUND)
        kind = "prompt" if x < prompt_length else "response"
        cell(ax, x, 2.2, str(token), kind)
    for x, value in enumerate(log_probs.tolist(), start=1):
        scores_response = x >= prompt_length
        point(ax, x - 1, x, PI if scores_response else FAINT)
        if scores_response:
            ax.text(x + 0.5, 3.5, f"{value:.1f}", ha="center", color=INK)
    name_row(ax, 0, "logits, row t")
    name_row(ax, 2.2, "token t")
    name_row(ax, 2.9, r"log $\pi$")
    key(ax, 3.7, ("prompt", "response"), left=-2)
    describe(
        ax.figure,
        f"Two rows of {len(tokens)} cells: the rows of the logits above, the tokens "
        "below. An arrow leads from each row of the logits to the token one place to "
        "its right, which it scores. The last row scores none, and no row scores the "
        "first token.",
    )
    return ax


def point(ax: Axes, start: float, end: float, colour: str) -> None:
    """An arrow from a cell of the upper row to one of the lower row."""
    style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 13, "lw": 1.8}
    ends = (start + 0.5, 0.95), (end + 0.5, 2.25)
    ax.add_patch(FancyArrowPatch(*ends, color=colour, shrinkA=0, shrinkB=0, **style))


def plot_padding(right: Tensor, left: Tensor, pad: int, num_new: int = 4) -> Axes:
    """The same prompts padded on either side, with room for responses. int [batch pos]

    No prompt holds the pad token.
    """
    rows, width = right.shape
    gap = 2.0
    ax = canvas(2 * (width + num_new) + gap, rows + 2.0, names=0.2)
    for title, prompts, x in (
        ("padding on the right", right, 0.0),
        ("padding on the left", left, width + num_new + gap),
    ):
        ax.text(x, 0.5, title, va="center", color=INK)
        for y, prompt in enumerate(prompts.tolist(), start=1):
            draw_prompt(ax, x, y, prompt, pad, num_new)
        cut = x + width
        ax.plot([cut, cut], [0.9, rows + 1.1], color=INK, lw=2, ls="--")
    key(ax, rows + 1.0, ("prompt", "response", "padding"))
    describe(
        ax.figure,
        f"{rows} prompts of unequal length, twice. Padded on the right, padding stands "
        "between a short prompt and its response. Padded on the left, every prompt "
        "ends where its response begins. A dashed line marks where responses begin.",
    )
    return ax


def draw_prompt(
    ax: Axes, x: float, y: float, prompt: list[int], pad: int, num_new: int
) -> None:
    """A prompt, token by token, and the places that its response will fill."""
    for place, token in enumerate(prompt):
        cell(ax, x + place, y, str(token), "padding" if token == pad else "prompt")
    for place in range(num_new):
        cell(ax, x + len(prompt) + place, y, "", "response")


def plot_states(read: Mapping[str, tuple[Tensor, Tensor]]) -> list[Axes]:
    """The state after each token as a column of colours; the last one is framed.

    A name's tokens, int [pos], and states, float [pos dim].
    """
    axes, told = axes_row(len(read), width=9.0, height=2.7), []
    alone = next(iter(read.values()))[1][-1]
    most = max(states.abs().max().item() for _, states in read.values())
    for ax, (name, (tokens, states)) in zip(axes, read.items(), strict=True):
        ax.imshow(states.T, cmap="PuOr", vmin=-most, vmax=most, aspect="auto")
        ax.set_xticks(range(len(tokens)), [str(token) for token in tokens.tolist()])
        ax.set(yticks=(), title=name, xlim=(-0.5, 2.5))
        ax.grid(visible=False)
        last = (len(tokens) - 1.5, -0.5), 1, states.shape[-1]
        ax.add_patch(Rectangle(*last, fill=False, ec=INK, lw=3, clip_on=False))
        told.append(f"{name} by at most {(states[-1] - alone).abs().max():.2f}")
    text = "States as columns of colours. The last differs from that of the first panel"
    describe(axes[0].figure, f"{text}: {'; '.join(told)}.")
    return axes


# How hard each token of a response pushes, under each mean over a batch.


TOKEN_PUSH_SHORT = 2  # tokens of the short responses


HIGHEST = 0.14


def pushes(length: int, mean: str, longest: int = 16) -> tuple[Tensor, Tensor]:
    """What each token of a short and of a long good response adds, up to the step.

    The batch has two good responses, delta +1, and two bad ones of the same lengths.
    -> float [SHORT], float [length]
    """
    lengths = torch.tensor(
        [[TOKEN_PUSH_SHORT, length, TOKEN_PUSH_SHORT, length]]
    )  # [batch trial]
    mask = torch.arange(longest) < lengths[..., None]
    deltas = torch.tensor([[1.0, 1.0, -1.0, -1.0]])
    log_probs = torch.zeros(1, 4, longest, requires_grad=True)
    loss = compute_loss(log_probs, deltas, "naive", mask=mask, aggregation=mean)
    (push,) = torch.autograd.grad(-loss, log_probs)
    return push[0, 0, :TOKEN_PUSH_SHORT], push[0, 1, :length]


def plot_pushes(length: int, mean: str) -> Axes:
    """A bar for each token of the short and of the long good response."""
    ax, start = axes_row(width=8.0, height=2.8)[0], 0
    for push in pushes(length, mean):
        places = torch.arange(len(push)) + start
        ax.bar(places, push, 0.8, color=UP)
        middle, text = places.float().mean().item(), f"sum {push.sum():.3f}"
        ax.text(middle, push[0].item() + 0.006, text, ha="center")
        start += len(push) + 3
    ax.set(xlim=(-1.5, 21), ylim=(0, HIGHEST + 0.02))
    ax.set_xticks(
        (0.5, 4.5 + length / 2), (f"{TOKEN_PUSH_SHORT} tokens", f"{length} tokens")
    )
    finish(ax, "", "push of a token", mean).grid(visible=False, axis="x")
    short, long = pushes(length, mean)
    describe(
        ax.figure,
        f"A bar for each token, {mean}. Each of {TOKEN_PUSH_SHORT} tokens of the short response "
        f"pushes {short[0]:.3f}, each of {length} of the long one {long[0]:.3f}.",
    )
    return ax


def draw_pushes(tokens: int, mean: str) -> str:
    """The picture for a slider; -> the sentence below it."""
    plot_pushes(tokens, mean)
    short, long = pushes(tokens, mean)
    return (
        f"{mean}: a token of the short response pushes {short[0]:.3f}, one of the long "
        f"response {long[0]:.3f}; all its {tokens} together {long.sum():.3f}."
    )


# A model that writes: what it says before each token, its texts, what they earn.


ANSWER, EARNS, IS = 4, 7.5, 10.3  # columns where answer, pay and verdict begin


def plot_writing(probs: Tensor, tokens: Tensor, prompt: Tensor, rows: int = 0) -> Axes:
    """The probabilities before each token, one row a step; what was written is framed.

    float [pos vocab], int [pos], int [pos]; `rows` leaves room for steps to come.
    """
    count, vocab = probs.shape
    rows = max(rows, count)
    ax = axes_row(width=2.0 + 0.58 * vocab, height=0.9 + 0.4 * rows)[0]
    cells(ax, probs)
    for row, token in enumerate(tokens.tolist()):
        frame_of_token_writing(ax, token - 0.5, row - 0.5)
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


def frame_of_token_writing(ax: Axes, x: float, y: float) -> None:
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
                frame_of_token_writing(ax, x, y)
        pay = f"{points[y - 1]:g} of {most}"
        verdict = "wrong" if wrong.any() else "sorted"
        ax.text(EARNS + 0.05, y + 0.5, pay, **style)
        ax.text(IS, y + 0.5, verdict, **style)
        told.append(f"{answer.tolist()} to {prompt.tolist()}, {pay}, {verdict}")
    describe(ax.figure, f"Answers as rows of cells: {'; '.join(told)}.")
    return ax


# Where updates point beside a gradient; what is won against what is kept.


WAY: dict[str, Any] = ARROW | {"lw": 2.5, "mutation_scale": 18}


TIPS = ((10, 4), (10, -12), (-6, 10))  # where the name of an end stands, by its tip


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
    ax, told = axes_row(width=7.5, height=4.2)[0], []
    for (name, start), colour in zip(starts.items(), COLOURS, strict=False):
        x, y = (each.mean().item() for each in start)
        ax.plot(x, y, "o", ms=10, color=colour)
        for (end, pair), shift in zip(ends[name].items(), TIPS, strict=False):
            tip = pair[0].mean().item(), pair[1].mean().item()
            ax.annotate("", tip, (x, y), arrowprops=WAY | {"color": colour})
            ax.annotate(end, tip, shift, textcoords="offset points", color=colour)
            told.append(f"{name}, {end}: from {words_of(x, y)} to {words_of(*tip)}")
        ax.annotate(name, (x, y), (-4, 12), textcoords="offset points", ha="center")
    ax.set(xlim=(-0.1, 1.2), ylim=(-0.05, 1))
    describe(ax.figure, f"Arrows by {xlabel} and {ylabel}. {'; '.join(told)}.")
    return finish(ax, xlabel, ylabel)
