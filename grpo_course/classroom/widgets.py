"""Sliders: each moves one thing in a picture that also stands still without it."""

import matplotlib.pyplot as plt
from ipywidgets import FloatSlider, ToggleButtons, interact
from torch import Tensor

from grpo_course.classroom.plots.clipping import plot_surrogate
from grpo_course.classroom.plots.kl_estimators import away_from, plot_kl_estimators


def slide_kl_estimators(log_probs: Tensor, ref_log_probs: Tensor) -> None:
    """Move a policy away from its reference and watch k1, k2 and k3. [vocab]"""

    def draw(strength: float) -> None:
        moved = away_from(ref_log_probs, log_probs, strength)
        plot_kl_estimators(moved, ref_log_probs)
        plt.show()

    interact(draw, strength=FloatSlider(value=1.0, min=0.1, max=3.0, step=0.1))


def slide_clip_range() -> None:
    """Move the clip range, turn the sign of delta, and watch one token's objective."""

    def draw(delta: float, epsilon: float, epsilon_high: float) -> None:
        plot_surrogate(delta, epsilon, epsilon_high)
        plt.show()

    width = dict(min=0.05, max=0.95, step=0.05)
    interact(
        draw,
        delta=ToggleButtons(options=[1.0, -1.0]),
        epsilon=FloatSlider(value=0.2, **width),
        epsilon_high=FloatSlider(value=0.2, **width),
    )
