"""The pictures of 13: what they draw and say, against the numbers they take."""

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.lessons.pictures.nb13 import plot_engine, plot_spreads


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_right_and_wrong_responses_stand_at_their_deltas():
    rewards = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    deltas = 2 * rewards - 0.5
    (ax,) = plot_spreads(rewards, {"one": deltas})
    right, wrong, _ = ax.lines
    assert (right.get_label(), list(right.get_ydata())) == ("right", [1.5])
    assert (wrong.get_label(), list(wrong.get_ydata())) == ("wrong", [-0.5] * 5)
    assert (wrong.get_xdata()[:2] < 0.5).all() and (wrong.get_xdata()[2:] > 0.5).all()
    told = alternative_text(ax.figure)
    assert ax.get_title() == "one spread"
    assert "by one spread from -0.50 to 1.50. 1 of 6 responses are right." in told


def test_bars_are_the_engine_s_and_outlines_what_is_right():
    got, want = torch.tensor([0.25, 0.5]), torch.tensor([0.5, -0.5])
    (ax,) = plot_engine({"how often": (got, want)}, ["A", "B"], [(-1, 1)])
    engine, right = ax.containers
    assert [bar.get_height() for bar in engine] == [0.25, 0.5]
    assert [bar.get_height() for bar in right] == [0.5, -0.5]
    assert engine[0].get_fill() and not right[0].get_fill()
    told = alternative_text(ax.figure)
    assert "how often: A 0.250 of 0.500, B 0.500 of -0.500" in told
