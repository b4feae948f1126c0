"""Where runs with a price for the KL end, beside the best that there is."""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.classroom.plots import COLOURS, axes_row, finish
from grpo_course.classroom.plots.alt_text import describe
from grpo_course.loop import mean_and_error

MARKERS = ("o", "s", "^", "D")
SIZES = (18, 14, 11, 8, 5)  # of the terms: one inside another is seen
STAR: dict[str, Any] = {"ls": "", "marker": "*", "ms": 38, "mfc": "#e6e6e6"}
STAR |= {"color": "#777777", "mew": 1, "zorder": 1}  # behind what lands on it


def plot_landings(
    ideal: Tensor,
    landed: Mapping[tuple[float, str], Tensor],
    targets: Mapping[float, Tensor],
) -> Axes:
    """Expected reward over KL: the best for each KL as a line, each run as a point.

    ideal [place 2], landed[beta, term] [2 seed] and targets[beta] [2] hold reward, then
    KL. A point is the mean over seeds, its bars one standard error; a colour is a term,
    a marker a beta, a star behind them the best policy for its beta.
    """
    ax = axes_row(width=8.5, height=3.8)[0]
    ax.plot(ideal[:, 1], ideal[:, 0], color="grey", label="best for its KL")
    betas, terms = ([*dict.fromkeys(column)] for column in zip(*landed, strict=True))
    for paid, kl in targets.values():
        ax.plot(kl, paid, **STAR)
    ax.plot([], [], label="best for its β", **STAR | {"ms": 16})
    for (beta, term), ends in landed.items():
        (paid, kl), errors = mean_and_error(ends)
        row = terms.index(term)
        look: dict[str, Any] = {"color": COLOURS[row], "ms": SIZES[row], "mew": 2}
        look |= {"fmt": MARKERS[betas.index(beta)], "elinewidth": 1.2, "mfc": "none"}
        name = f"{term}".replace("_", " ") if beta == betas[0] else None
        ax.errorbar(kl, paid, errors[0], errors[1], label=name, **look)
    for beta, marker in zip(betas, MARKERS, strict=False):
        ax.plot([], [], marker, color="black", mfc="none", label=f"β = {beta}")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    finish(ax, "exact KL (nats); bars: one standard error", "expected reward")
    plt.tight_layout()
    describe(ax.figure, landings_words(landed, targets))
    return ax


def landings_words(
    landed: Mapping[tuple[float, str], Tensor], targets: Mapping[float, Tensor]
) -> str:
    """Where each run ends and where it should, as one says it."""
    ends = {f"{term}, β = {beta}": run.mean(-1) for (beta, term), run in landed.items()}
    ends |= {f"best for β = {beta}": goal for beta, goal in targets.items()}
    told = [f"{name} at {kl:.2f} nats, {paid:.2f}" for name, (paid, kl) in ends.items()]
    words = "Expected reward against exact KL, bars of one standard error"
    return f"{words}: {'; '.join(told)}."
