"""Pictures of a policy, its reference, and what the KL estimators say of them."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from torch import Tensor

from grpo_course.algorithm.kl import exact_kl, kl_values
from grpo_course.classroom.plots import COLOURS, axes_row, finish, plot_seeds
from grpo_course.classroom.plots.kl_area import draw_two

ESTIMATORS = ("k1", "k2", "k3")
TICKS = (-5, -1, 0, 1, 5, 20, 60)


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
    draw_two(left, log_probs, ref_log_probs)
    for row, name in enumerate(ESTIMATORS):
        values = kl_values(log_probs, ref_log_probs, name)
        mean, spread = mean_and_spread(log_probs, values)
        area = 8 + 300 * log_probs.exp()  # the rarest token can still be seen
        right.scatter(values, [row] * len(values), s=area, color=COLOURS[5])
        right.errorbar(mean, row + 0.25, xerr=spread, fmt="o", color=COLOURS[0])
    right.axvline(kl, color=COLOURS[1], ls="--")
    right.set_yticks(range(len(ESTIMATORS)), ESTIMATORS)
    right.set_ylim(len(ESTIMATORS) - 0.5, -0.5)
    right.set_xscale("symlog")  # linear up to 1, for far away k3 is large
    right.set(xlim=(-8, 150), xticks=TICKS, xticklabels=TICKS)
    finish(right, "value (nats)", "", f"dashed: exact KL {kl:.3f}")
    plt.tight_layout()
    return [left, right]


def mean_and_spread(log_probs: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Exact mean and standard deviation over all tokens. [... vocab] -> two of [...]"""
    probs = log_probs.exp()
    mean = (probs * values).sum(-1)
    return mean, (probs * (values - mean[..., None]) ** 2).sum(-1).sqrt()


def draw_kl_estimators(
    log_probs: Tensor, ref_log_probs: Tensor, strength: float
) -> str:
    """The picture for a slider, `strength` times as far away; -> the sentence below."""
    moved = away_from(ref_log_probs, log_probs, strength)
    plot_kl_estimators(moved, ref_log_probs)
    spreads = [
        mean_and_spread(moved, kl_values(moved, ref_log_probs, name))[1]
        for name in ESTIMATORS
    ]
    pairs = zip(ESTIMATORS, spreads, strict=True)
    told = ", ".join(f"{name} {spread:.2f}" for name, spread in pairs)
    kl = exact_kl(moved, ref_log_probs)
    return f"strength {strength:g}: KL {kl:.2f} nats; spreads {told}."


def plot_dial(runs: dict[float, tuple]) -> list[Axes]:
    """P(sorted) and KL to the start for each beta; runs hold both, each [seed]."""
    axes = axes_row(2, width=9.0, height=2.6)
    labels = ("P(sorted)", "KL to the start (nats a token)")
    for column, (ax, label) in enumerate(zip(axes, labels, strict=True)):
        rows = {f"β = {beta:g}": run[column] for beta, run in runs.items()}
        plot_seeds(rows, label, ax=ax)
    plt.tight_layout()
    return axes
