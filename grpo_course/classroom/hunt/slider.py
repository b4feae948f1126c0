"""A slider that wakes a sleeping defect."""

import matplotlib.pyplot as plt
from ipywidgets import Dropdown, IntSlider, interact

from grpo_course.classroom.hunt.findings import sweep_of
from grpo_course.classroom.hunt.sleeping import KNOBS
from grpo_course.classroom.plots.sweeps import plot_sweep


def slide_sleeping(causes: list[str] | None = None) -> None:
    """Choose a defect, move its setting, and see where its first update goes wrong.

    The numbers are recorded ones: nothing is trained while the slider moves.
    """
    names = sorted(KNOBS) if causes is None else causes

    def draw(cause: str, place: int) -> None:
        setting, values, errors = sweep_of(cause)
        plot_sweep(setting, values, errors, cause, min(place, len(values) - 1))
        plt.show()

    most = max(len(values) for _, values in KNOBS.values()) - 1
    interact(
        draw,
        cause=Dropdown(options=names),
        place=IntSlider(value=0, min=0, max=most, description="setting"),
    )
