"""Each sampled token: how likely it was when it was drawn, and how likely it is now."""

from math import log
from typing import Any

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.classroom.plots.palette import DOWN, UP

LEAST, MOST = 0.03, 1.0  # the range of both axes


def draw_then_and_now(
    then: Tensor, now: Tensor, deltas: Tensor, joined: tuple[int, int] | None = None
) -> str:
    """A triangle for each token: up for a positive delta, down for a negative one.

    then and now: log-probabilities [batch trial pos] under the policy that sampled
    and under the one that learns; deltas [batch trial]. A line joins the tokens of the
    response `joined`, its prompt and its trial. Returns how many moved far.
    """
    ax = axes_row(width=6.5, height=3.8)[0]
    draw_guides(ax)
    sign = deltas[..., None].expand_as(then)
    good, bad = r"good ($\delta > 0$)", r"bad ($\delta < 0$)"
    for name, mark, colour, rows in (
        (good, "^", UP, sign > 0),
        (bad, "v", DOWN, sign < 0),
    ):
        dots: dict[str, Any] = {"marker": mark, "ls": "", "ms": 7, "alpha": 0.7}
        p, q = then[rows].exp(), now[rows].exp().clamp(min=LEAST)
        ax.plot(p, q, color=colour, mec="none", label=name, **dots)
    if joined:
        one, other = (each[joined].exp() for each in (then, now))
        ax.plot(one, other, color="black", lw=1.2, marker=".", label="one response")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    far = int(((now - then).abs() > log(2)).sum())
    told = f"{far} of {then.numel()} tokens are over twice or under half as likely."
    text = "Tokens as triangles at their probability when drawn and now"
    describe(ax.figure, f"{text}; on the diagonal nothing has changed. {told}")
    return told


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
