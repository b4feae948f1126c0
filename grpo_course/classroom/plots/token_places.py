"""Where a token stands: the shift by one, the side of padding, the count of places."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import GROUND, PI
from grpo_course.classroom.plots.token_rows import (
    FAINT,
    INK,
    canvas,
    cell,
    key,
    name_row,
)


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
