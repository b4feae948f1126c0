"""A slider that moves one thing in a picture which also stands still without it."""

import matplotlib.pyplot as plt
from ipywidgets import FloatSlider, ToggleButtons, interact

from grpo_course.classroom.plots.clipping import plot_surrogate


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
