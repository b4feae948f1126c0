"""Pictures of a policy, its reference, and what the KL estimators say of them."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.kl import exact_kl, kl_values
from grpo_course.classroom.plots import COLOURS, axes_row, finish, plot_seeds

ESTIMATORS = ("k1", "k2", "k3")


def away_from(ref_log_probs: Tensor, log_probs: Tensor, strength: float) -> Tensor:
    """The policy that went `strength` times as far from its reference. -> [vocab]

    0 is the reference, 1 is `log_probs`; in between and beyond, the log-ratios grow
    in proportion.
    """
    gap = log_probs - ref_log_probs
    return (ref_log_probs + strength * gap).log_softmax(-1)


def plot_kl_estimators(log_probs: Tensor, ref_log_probs: Tensor) -> list[Axes]:
    """Both distributions, and each estimator's value for every token. [vocab]

    A disc's area grows with the token's probability; the dot with whiskers is mean
    and standard deviation.
    """
    kl = exact_kl(log_probs, ref_log_probs).item()
    left, right = axes_row(2, width=8.5, height=3.0)
    draw_pair(left, log_probs.exp(), ref_log_probs.exp())
    for row, name in enumerate(ESTIMATORS):
        values = kl_values(log_probs, ref_log_probs, name)
        mean, spread = mean_and_spread(log_probs, values)
        area = 8 + 300 * log_probs.exp()  # the rarest token can still be seen
        right.scatter(values, [row] * len(values), s=area, color=COLOURS[5])
        right.errorbar(mean, row + 0.25, xerr=spread, fmt="o", color=COLOURS[0])
    right.axvline(kl, color=COLOURS[1], ls="--")
    right.set_yticks(range(len(ESTIMATORS)), ESTIMATORS)
    right.set_ylim(len(ESTIMATORS) - 0.5, -0.5)
    finish(right, "value (nats)", "", f"dashed: exact KL {kl:.3f}")
    plt.tight_layout()
    return [left, right]


def draw_pair(ax: Axes, probs: Tensor, ref_probs: Tensor) -> None:
    """Two distributions, bar beside bar. [vocab]"""
    for shift, each, label, colour in (
        (-0.2, probs, "policy", COLOURS[0]),
        (0.2, ref_probs, "reference", COLOURS[4]),
    ):
        places = [token + shift for token in range(len(each))]
        ax.bar(places, each, 0.4, color=colour, label=label)
    ax.set_ylim(0, 1)
    ax.legend(loc="upper right")
    finish(ax, "token", "probability")


def mean_and_spread(log_probs: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Exact mean and standard deviation over all tokens. [... vocab] -> two of [...]"""
    probs = log_probs.exp()
    mean = (probs * values).sum(-1)
    return mean, (probs * (values - mean[..., None]) ** 2).sum(-1).sqrt()


def plot_dial(runs: dict[float, tuple]) -> list[Axes]:
    """P(sorted) and KL to the start for each beta; runs hold both, each [seed]."""
    axes = axes_row(2, width=9.0, height=2.6)
    labels = ("P(sorted)", "KL to the start (nats a token)")
    for column, (ax, label) in enumerate(zip(axes, labels, strict=True)):
        rows = {f"beta {beta:g}": run[column] for beta, run in runs.items()}
        plot_seeds(rows, label, ax=ax)
    plt.tight_layout()
    return axes
