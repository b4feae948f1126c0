"""What one step did to each token of some answers: it moves where they part."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import sign_colour
from grpo_course.classroom.plots.token_rows import FAINT, INK
from grpo_course.tasks import CLOSE_THINK, THINK

SHOWN = {"Ċ": ",", CLOSE_THINK: "□"}  # for a new line, and for the end of the thinking
MOVED = 0.2  # nats from which a token has its numbers; 6 times that is a full colour
LEAST = 1e-30  # a smaller chance counts as this one
MOST = 60  # tokens of a row; what comes later is left out
NAMES, WIDE, ROW = 9.5, 3, 2.1  # room for names, for numbers, for a row; in cells


def plot_forks(
    names: Sequence[str], answers: Sequence[Sequence[str]], then: Tensor, now: Tensor
) -> Axes:
    """Each answer's thinking as a row of tokens, coloured by how one step moved them.

    `then` and `now` hold the chance of each token, [answer pos]. Where it moved by over
    a fifth of its size, both stand below. A name gets the factor of the whole answer.
    """
    thoughts = [thinking(tokens) for tokens in answers]
    long = max(map(len, thoughts))
    width = 0.215 * (NAMES + long + 1)
    ax = axes_row(width=width, height=0.62 * len(names) + 0.1)[0]
    ax.set(xlim=(-NAMES, long + 1), ylim=(ROW * len(names), -0.1))
    ax.axis("off")
    told = []
    rows = zip(names, answers, thoughts, then, now, strict=True)
    for row, (name, tokens, thought, was, new) in enumerate(rows):
        whole = (new / was)[: len(tokens)].double().prod()
        label = f"{name}  × {whole:.2g}"
        look: dict[str, Any] = {"ha": "right", "va": "center", "color": INK}
        ax.text(-0.3, ROW * row + 0.5, label, **look)
        skipped = tokens[:1] == [THINK]
        moved = draw_row(ax, ROW * row, thought, was[skipped:], new[skipped:])
        told.append(f"{label}: {', '.join(moved) or 'no token'}")
    text = "Answers as rows of tokens, coloured where one step moved their chance"
    describe(ax.figure, f"{text}. {'; '.join(told)}.")
    return ax


def thinking(tokens: Sequence[str]) -> list[str]:
    """The tokens between the tags, and the end; all there are where no tag closes.

    Of a long thought, its beginning.
    """
    inner = list(tokens[tokens[:1] == [THINK] :])
    stop = inner.index(CLOSE_THINK) + 1 if CLOSE_THINK in inner else len(inner)
    return [SHOWN.get(token, token) for token in inner[: min(stop, MOST)]]


def draw_row(
    ax: Axes, y: float, tokens: Sequence[str], then: Tensor, now: Tensor
) -> list[str]:
    """The tokens of one answer; -> what moved, in words."""
    told, free = [], 0  # from here on, numbers fit
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
    for x, (token, was, new) in enumerate(
        zip(tokens, then.tolist(), now.tolist(), strict=False)
    ):
        moved = math.log(max(new, LEAST) / max(was, LEAST))
        shade = min(1.0, abs(moved) / (6 * MOVED))
        ax.add_patch(Rectangle((x, y), 1, 1, fc=sign_colour(moved), alpha=shade, lw=0))
        ax.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor=FAINT, lw=0.4))
        ax.text(x + 0.5, y + 0.5, token, parse_math=False, **look)
        if abs(moved) > MOVED and x >= free:
            free = x + WIDE
            pair = f"{was:.2f}→{new:.2f}"
            below = pair.replace("0.", ".")
            ax.text(x + 0.5, y + 1.4, below, **look)
            told.append(f"{token} at {x + 1} {pair}")
    return told
