"""Where runs with a price for the KL end, beside the best that there is."""

from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.seeds import mean_and_error
from grpo_course.classroom.plots import COLOURS, axes_row, finish

MARKERS = ("o", "s", "^", "D")


def plot_landings(ideal: Tensor, landed: dict[tuple[float, str], Tensor]) -> Axes:
    """Expected reward over KL: the best for each KL as a line, each run as a point.

    ideal [place 2] and landed[beta, term] [2 seed] hold reward, then KL. A point is
    the mean over seeds, its bars one standard error; a colour is a term, a marker a
    beta.
    """
    ax = axes_row(width=7.5, height=3.6)[0]
    ax.plot(ideal[:, 1], ideal[:, 0], color="grey", label="best for its KL")
    betas, terms = ([*dict.fromkeys(column)] for column in zip(*landed, strict=True))
    for (beta, term), ends in landed.items():
        (paid, kl), errors = mean_and_error(ends)
        ax.errorbar(
            kl,
            paid,
            errors[0],
            errors[1],
            fmt=MARKERS[betas.index(beta)],
            color=COLOURS[terms.index(term)],
            label=f"{term}, β = {beta}",
        )
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    return finish(ax, "exact KL (nats)", "expected reward")
