"""The picture of rewards over KL, from numbers to points."""

import torch

from grpo_course.lessons.pictures.nb14 import plot_landings


def test_each_run_is_a_point_at_its_mean():
    ideal = torch.tensor([[0.2, 0.0], [0.5, 1.0]])
    landed = {
        (0.1, "k2"): torch.tensor([[0.4, 0.6], [1.0, 3.0]]),
        (0.3, "k2"): torch.tensor([[0.1, 0.1], [0.5, 0.5]]),
    }
    ax = plot_landings(ideal, landed, {0.1: torch.tensor([0.8, 2.0])})
    points = [bar.lines[0] for bar in ax.containers]
    assert [float(p.get_xdata()[0]) for p in points] == [2.0, 0.5]
    assert [round(float(p.get_ydata()[0]), 6) for p in points] == [0.5, 0.1]
    assert points[0].get_color() == points[1].get_color()  # the same term
    star = next(line for line in ax.lines if line.get_marker() == "*")
    assert [*star.get_xdata(), *star.get_ydata()] == [2.0, torch.tensor(0.8)]
    assert points[0].get_marker() != points[1].get_marker()
