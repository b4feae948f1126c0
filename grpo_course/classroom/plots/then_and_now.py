"""Each sampled token: how likely it was when it was drawn, and is now; its push."""

from math import log
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.clipping import draw_clip_plane
from grpo_course.classroom.plots.palette import DOWN, GROUND, UP

LEAST, MOST = 0.03, 1.0  # the range of both axes
WHAT_THE_LOSS_DOES = (  # in which part of the clip's plane, in shares of its sides
    (0.02, 0.92, "pushed up"),
    (0.98, 0.92, "clipped: no push"),
    (0.02, 0.565, r"$\delta = 0$: no push"),
    (0.02, 0.08, "clipped: no push"),
    (0.98, 0.08, "pushed down"),
)


def draw_then_and_now(
    then: Tensor,
    now: Tensor,
    deltas: Tensor,
    right: Tensor,
    joined: tuple[int, int] | None = None,
) -> str:
    """A triangle for each token: up for a positive delta, hollow if it is not right.

    then and now: log-probabilities [batch trial pos] under the policy that sampled
    and under the one that learns; deltas [batch trial]. A line joins the tokens of the
    response `joined`, its prompt and its trial. Returns how many good tokens fell.
    """
    ax = axes_row(width=6.5, height=3.8)[0]
    draw_guides(ax)
    sign = deltas[..., None].expand_as(then)
    draw_triangles(ax, then.exp(), now.exp(), sign, right)
    if joined:
        one, other = (each[joined].exp() for each in (then, now))
        ax.plot(one, other, color="black", lw=1.2, marker=".", label="one response")
    fall, good = (now < then) & (sign > 0), int((sign > 0).sum())
    draw_fallen(ax, then[fall].exp(), now[fall].exp())
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    told = f"{fall.sum()} of {good} good tokens fall, {(fall & ~right).sum()} hollow."
    far = int(((now - then).abs() > log(2)).sum())
    text = (
        "Tokens as triangles at their probability when drawn and now, hollow if wrong"
    )
    moved = f"{far} of {then.numel()} are over twice or under half as likely"
    describe(ax.figure, f"{text}; on the diagonal nothing has changed. {moved}. {told}")
    return told


def draw_triangles(ax: Axes, p: Tensor, q: Tensor, sign: Tensor, right: Tensor) -> None:
    """Triangles at the probabilities p and q, with a legend. [batch trial pos] each"""
    good, bad = r"good ($\delta > 0$)", r"bad ($\delta < 0$)"
    shape: dict[str, Any] = {"ls": "", "alpha": 0.7}
    for name, mark, colour, rows, size in (  # where both lie, the good one's rim shows
        (good, "^", UP, sign > 0, 10),
        (bad, "v", DOWN, sign < 0, 6),
    ):
        for some, fill in ((rows & right, colour), (rows & ~right, "none")):
            look: dict[str, Any] = shape | {"mec": colour, "mfc": fill, "ms": size}
            ax.plot(p[some], q[some].clamp(min=LEAST), mark, label=name, **look)
            name = ""  # one entry of the legend for both
    hollow: dict[str, Any] = shape | {"mec": "black", "mfc": "none", "ms": 7}
    ax.plot([], [], "^", label="hollow: wrong number", **hollow)


def draw_fallen(ax: Axes, p: Tensor, q: Tensor) -> None:
    """A dark edge around good tokens that are less likely now, above all others."""
    edge: dict[str, Any] = {"mec": "black", "mfc": "none", "mew": 2, "zorder": 4}
    ax.plot(p, q.clamp(min=LEAST), "^", ms=10, label="fallen, though good", **edge)


def draw_guides(ax: Axes) -> None:
    """Where a token is as likely as before, twice as likely and half as likely."""
    for times, name in ((1, "as likely as before"), (2, "twice or half"), (0.5, None)):
        line = "-" if times == 1 else ":"
        heights = [times * LEAST, times * MOST]
        ax.plot([LEAST, MOST], heights, color="grey", lw=1.4, ls=line, label=name)
    ax.set(xscale="log", yscale="log", xlim=(LEAST, MOST), ylim=(LEAST, MOST))
    ticks = [0.03, 0.1, 0.3, 1]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    finish(ax, "probability when drawn", "probability now")


def draw_tokens(ratio: Tensor, deltas: Tensor, epsilon: float = 0.2) -> str:
    """The tokens of a batch and the clip, for a slider; -> the sentence below them.

    ratio [batch trial pos], deltas [batch trial]. The reference is the policy that
    sampled, as in epoch 0: where every ratio is 1, the KL has no gradient.
    """
    each = deltas[..., None].expand_as(ratio).flatten()
    ax = axes_row(width=7.0)[0]
    gone = int(draw_clip_plane(ax, ratio.flatten(), each, epsilon).sum())
    ground: dict[str, Any] = {"facecolor": GROUND, "lw": 0, "pad": 2}
    for x, y, words in WHAT_THE_LOSS_DOES:
        place: dict[str, Any] = {"ha": "right" if x > 0.5 else "left", "va": "center"}
        ax.text(x, y, words, transform=ax.transAxes, bbox=ground, **place)
    none = int((each == 0).sum())
    pull = "pulls none of them yet" if bool((ratio == 1).all()) else "pulls them all"
    return (
        f"{len(each)} tokens: {gone} get nothing from the clipped loss any more "
        f"(hollow), {none} have a delta of 0. The KL {pull}."
    )
