"""Every response of a small world as a tree: what can be written, token by token."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from torch import Tensor

from grpo_course.classroom.plots import axes_row
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, GROUND, LEVEL, UP
from grpo_course.sequences import ShortAnswers

Node = tuple[int, ...]  # what was written so far
BLAME = LinearSegmentedColormap.from_list("blame", [GROUND, DOWN])
COMPLETE = "#d0d0d0"  # a whole response; what can be continued is empty


def answers_of(world: ShortAnswers) -> list[Node]:
    """The tokens of each response, without its padding."""
    rows = zip(world.responses.tolist(), world.lengths.int().tolist(), strict=True)
    return [tuple(row[:length]) for row, length in rows]


def node_places(answers: list[Node]) -> dict[Node, tuple[float, int]]:
    """Where each beginning stands: over the middle of all that it can become."""
    below = defaultdict(list)
    for x, answer in enumerate(sorted(answers)):
        for length in range(len(answer) + 1):
            below[answer[:length]].append(x)
    return {node: (sum(xs) / len(xs), -len(node)) for node, xs in below.items()}


def plot_tree(
    world: ShortAnswers, reward: Tensor, blame: Mapping[str, Tensor] | None = None
) -> list[Axes]:
    """All responses, the path of those with a reward green. reward, blame[name] [all].

    With `blame` a tree for each name: the larger and darker a wrong response's last
    token, the more each of its tokens is blamed.
    """
    trees: Mapping[str, Tensor | None] = blame or {"": None}
    axes = axes_row(len(trees), width=10.0, height=3.0)
    answers = answers_of(world)
    rights = [answer for answer, r in zip(answers, reward, strict=True) if r > 0]
    for ax, (name, values) in zip(axes, trees.items(), strict=True):
        draw_paths(ax, answers, rights)
        if ax is axes[0]:
            name_lengths(ax, answers)
        if values is None:
            draw_tokens(ax, answers, rights, world.end)
        else:
            top = max(each.max().item() for each in (blame or {}).values())
            draw_blame(ax, answers, rights, values.tolist(), top)
        ax.set_title(name)
        ax.margins(x=0.03, y=0.1)
        ax.axis("off")
    describe(axes[0].figure, tree_words(world, rights, blame or {}))
    return axes


def draw_paths(ax: Axes, answers: list[Node], rights: list[Node]) -> None:
    """A line from each beginning to each token that can follow it."""
    places = node_places(answers)
    for node, (x, y) in places.items():
        if node:
            start_x, start_y = places[node[:-1]]
            paid = any(answer[: len(node)] == node for answer in rights)
            look = {"color": UP, "lw": 4} if paid else {"color": LEVEL, "lw": 0.7}
            ax.plot([start_x, x], [start_y, y], zorder=1, **look)  # type: ignore[arg-type]


def name_lengths(ax: Axes, answers: list[Node]) -> None:
    """How many tokens the responses at each height have."""
    for length in {len(answer) for answer in answers}:
        words = f"{length} token" + ("s" if length > 1 else "")
        place: dict[str, Any] = {"ha": "right", "va": "center"}
        ax.text(-1.3, -length, words, **place)


def draw_tokens(ax: Axes, answers: list[Node], rights: list[Node], end: int) -> None:
    """A circle for a word, a square for the end; a whole response is filled."""
    for node, (x, y) in node_places(answers).items():
        marker = "s" if node[-1:] == (end,) else "o"
        fill = UP if node in rights else COMPLETE if node in answers else GROUND
        ax.plot(x, y, marker, ms=13, mfc=fill, mec=LEVEL, mew=0.8)
        word = "" if marker == "s" else f"{node[-1]}" if node else "·"
        ax.text(x, y, word, ha="center", va="center_baseline")


def draw_blame(
    ax: Axes, answers: list[Node], rights: list[Node], blame: list[float], top: float
) -> None:
    """Each wrong response by what one of its tokens is blamed; that number beside."""
    places = node_places(answers)
    for answer, value in zip(answers, blame, strict=True):
        x, y = places[answer]
        if answer in rights:
            ax.plot(x, y, "*", ms=14, color=UP)
            continue
        size, fill = 12 * (value / top) ** 0.5, BLAME(value / top)
        ax.plot(x, y, "o", ms=size, mfc=fill, mec=DOWN, mew=0.8)
    each = {len(a): v for a, v in zip(answers, blame, strict=True) if a not in rights}
    for length, value in each.items():
        ax.text(len(answers) + 0.3, -length, f"{value:.3f}", va="center")


def tree_words(
    world: ShortAnswers, rights: list[Node], blame: Mapping[str, Tensor]
) -> str:
    """How large the tree is, what pays, and what a token is blamed at each length."""
    spoken = [
        " ".join("end" if token == world.end else str(token) for token in answer)
        for answer in rights
    ]
    words = f"A tree of {len(world.responses)} responses; with a reward: "
    told = [words + ", ".join(spoken)]
    for name, values in blame.items():
        by_length = dict(
            zip(world.lengths.int().tolist(), values.tolist(), strict=True)
        )
        blames = ", ".join(f"{value:.3f}" for _, value in sorted(by_length.items()))
        told.append(f"{name}, the blame of a token by length: {blames}")
    return "; ".join(told) + "."
