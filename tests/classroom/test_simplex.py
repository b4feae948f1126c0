"""The field of a delta mode on three answers, held against closed forms."""

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.lessons.pictures import nb03 as simplex

REWARDS = torch.tensor([0.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def exact_gradient(probs):
    """Of the expected reward by the logits."""
    expected = (probs * REWARDS).sum(dim=-1, keepdim=True)
    return probs * (REWARDS - expected)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_field_is_the_exact_gradient_times_a_known_factor(size):
    points = simplex.grid()
    truth = exact_gradient(points)
    for mode, factor in (
        ("rewards", 1.0),
        ("leave_one_out", 1.0),
        ("centered_rewards", (size - 1) / size),
    ):
        push = simplex.expected_push(points, REWARDS, mode, size)
        assert torch.allclose(push, factor * truth, atol=1e-5)
    other = simplex.expected_push(points, REWARDS, "normalized_rewards", size)
    assert not torch.allclose(other, truth, atol=0.05)


def test_a_path_follows_the_field_where_groups_are_large():
    rate, size = 0.2, 4000
    path = simplex.sampled_path(REWARDS, "leave_one_out", size, rate, 2, seed=0)
    moved = path[1].log() - path[0].log()
    push = rate * exact_gradient(path[:1])[0]
    assert torch.allclose(moved - moved.mean(), push - push.mean(), atol=0.02)


def test_grid_points_are_policies_and_the_picture_says_where_runs_end():
    points = simplex.grid()
    assert torch.allclose(points.sum(dim=-1), torch.ones(len(points)))
    assert (points > 0).all() and len(points) == 28
    paths = [torch.tensor([[0.3, 0.3, 0.4], [0.0, 0.9, 0.1]])]
    ax = simplex.plot_simplex(REWARDS, "centered_rewards", paths)
    named = [text.get_text().replace("$", "") for text in ax.texts]
    answers = ["answer A, R = 0", "answer B, R = 2", "answer C, R = 3"]
    ends = [f"{count} of 1 runs end nearest" for count in (0, 1, 0)]
    assert named == [f"{one}\n{end}" for one, end in zip(answers, ends, strict=True)]
    told = "; ".join(named).replace("\n", ": ")
    assert alternative_text(ax.figure).endswith(f"At its corners: {told}.")
    assert len(ax.collections) == 1  # the arrows


def test_where_the_average_is_nothing_there_is_no_arrow():
    equal, still = torch.ones(3), torch.full((2, 3), 1 / 3)
    ax = simplex.plot_simplex(equal, "rewards", [still])
    assert not ax.collections  # else the last digits would be drawn at full length
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert [len(line.get_xdata()) for line in dots] == [28]
    named = [text.get_text() for text in ax.texts]
    assert named == [f"answer {answer}, $R$ = 1" for answer in "ABC"]
    assert alternative_text(ax.figure).endswith("Runs from its middle stay there.")


def test_an_estimate_that_is_exact_lies_on_the_exact_arrow():
    exact = torch.tensor([3.0, 4.0])
    estimates = torch.stack([exact, 2 * exact])
    ax = simplex.plot_fan(exact, estimates, estimates[:1])
    thin = ax.collections[0]
    assert thin.U.tolist() == pytest.approx([1, 2])
    assert thin.V.tolist() == pytest.approx([0, 0], abs=1e-6)
    told = alternative_text(ax.figure)
    assert "an error of 0.71 of its length" in told
    assert told.endswith("the mean of 1, is at 1.00 along it, 0.00 beside.")


def test_height_in_the_fan_is_one_direction_at_right_angles():
    exact = torch.tensor([3.0, 4.0, 0.0])
    beside = simplex.beside_it(exact)
    assert (beside @ exact).item() == pytest.approx(0, abs=1e-5)
    estimates = torch.stack([exact + 5 * beside, 2 * exact - 10 * beside])
    ax = simplex.plot_fan(exact, estimates, estimates)
    thin, (ring,) = ax.collections[0], ax.lines
    assert thin.U.tolist() == pytest.approx([1, 2])
    assert thin.V.tolist() == pytest.approx([1, -2])
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == pytest.approx((1.5, -0.5))
