"""The pictures of the mechanism: what is drawn where, and what is said of it."""

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.patches import Rectangle

from grpo_course.classroom import (
    plots as clipping,
)
from grpo_course.classroom import (
    plots as mechanism,
)
from grpo_course.classroom import (
    plots as palette,
)
from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import axes_row
from grpo_course.lessons.pictures import nb03 as groups
from grpo_course.lessons.pictures.nb06 import plot_batch
from grpo_course.loop import Batch, Rollout

PROBS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])  # [pos vocab]


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_the_right_cells_are_outlined_before_and_after():
    axes = mechanism.plot_policies({"before": PROBS, "after": 1 - PROBS}, [2, 0])
    for ax in axes:
        frames = [p for p in ax.patches if isinstance(p, Rectangle)]
        assert [p.get_xy() for p in frames] == [(1.5, -0.5), (-0.5, 0.5)]
    text = alternative_text(axes[0].figure)
    assert "before: probability of the right number at each position 0.10, 0.10" in text


def arrows(ax):
    """Foot and head of each arrow, in the order they were drawn."""
    drawn = [a for a in ax.texts if getattr(a, "arrow_patch", None)]
    return [(a.xyann, a.xy) for a in drawn]


def test_arrows_point_up_where_a_logit_rises_and_grow_with_the_push():
    push = torch.tensor([[1.0, -0.5, 0.0], [2.0, 0.0, -9.0]])
    ax = axes_row()[0]
    mechanism.draw_push(ax, push, most=2.0)
    # The rows of a table are counted downwards: up is towards smaller numbers.
    lengths = [foot[1] - head[1] for foot, head in arrows(ax)]
    expected = [2 * mechanism.REACH * share for share in (0.5, -0.25, 1.0, -1.0)]
    assert lengths == pytest.approx(expected)
    assert [head[0] for _, head in arrows(ax)] == [0, 1, 0, 2]


def test_what_a_push_does_is_said():
    push = torch.tensor([[1.0, -0.5, 0.1], [2.0, 0.0, -9.0]])
    axes = mechanism.plot_push(PROBS, {"a step": push}, [0, 2])
    words = "a step: arrows in 3 of 6 cells, 2 of them up, 1 of these in right cells."
    assert alternative_text(axes[0].figure).endswith(words)


def test_a_group_is_bars_and_its_deltas_are_arrows_with_a_sign():
    rewards, deltas = torch.tensor([5.0, 3.0, 1.0]), torch.tensor([2.0, 0.0, -2.0])
    left, right = mechanism.plot_group(rewards, {"centered": deltas}, ["a", "b", "c"])
    assert [bar.get_width() for bar in left.patches] == [5, 3, 1]
    assert [head for _, head in arrows(right)] == [(2, 0), (-2, 2)]
    numbers = [t.get_text() for t in right.texts if t.get_text()]
    assert numbers == ["+2.00", "+0.00", "-2.00"]
    assert "centered 2, 0, -2." in alternative_text(left.figure)


def test_a_group_without_differences_has_no_arrow():
    rewards = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    rollout = Rollout(torch.tensor([[1, 0], [0, 1]]), torch.zeros(2, 2, 2).long())
    deltas = torch.tensor([[1.0, -1.0], [0.0, 0.0]])
    first, second = plot_batch(Batch(rollout, rewards, deltas, None, None))
    assert [head for _, head in arrows(first)] == [(1, 0), (-1, 1)]
    assert not arrows(second)
    names = [label.get_text() for label in second.get_yticklabels()]
    assert names == ["0 0   R 1"] * 2
    assert "prompt [0, 1] +0.00, +0.00" in alternative_text(first.figure)


def test_groups_below_each_other_share_the_scale_of_their_arrows():
    rewards = torch.tensor([[3.0, 1.0], [2.0, 2.0]])
    grid = groups.plot_groups(rewards, {"m": rewards, "n": rewards / 4}, ["a", "b"])
    assert [bar.get_width() for bar in grid[1][0].patches] == [2, 2]
    for ax in (*grid[0][1:], *grid[1][1:]):
        assert ax.get_xlim() == pytest.approx((-4.8, 4.8))
    assert [head for _, head in arrows(grid[1][2])] == [(0.5, 0), (0.5, 1)]
    assert not any(ax.get_xlabel() for ax in grid[0])
    assert all(ax.get_xlabel() for ax in grid[1])
    text = alternative_text(grid[0][0].figure)
    assert "Group 2: rewards 2, 2, m 2, 2, n 0.5, 0.5." in text
    (narrow,) = groups.plot_groups(rewards[:1], {"m": rewards}, ["a", "b"], reach=9)
    assert narrow[1].get_xlim() == (-9, 9)


def test_tokens_in_the_two_flat_corners_are_grey_and_hollow():
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1])
    deltas = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])
    ax = axes_row()[0]
    gone = clipping.draw_clip_plane(ax, ratio, deltas, epsilon=0.2)
    assert gone.tolist() == [True, False, False, True, False]
    live, lost = (line for line in ax.lines if line.get_marker() == "o")
    assert live.get_xdata().tolist() == pytest.approx([1.5, 0.5, 1.1])
    assert lost.get_markerfacecolor() == palette.GROUND


def test_gone_tokens_are_those_whose_gradient_the_loss_removes():
    from grpo_course import compute_loss

    torch.manual_seed(0)
    old = torch.randn(1, 40, 1) - 2
    new = (old + 0.5 * torch.randn(1, 40, 1)).requires_grad_()
    deltas = torch.randn(1, 40)
    compute_loss(new, deltas, "clipped", old, epsilon=0.3).backward()
    ratio = (new - old).detach().exp()
    gone = clipping.draw_clip_plane(axes_row()[0], ratio[0, :, 0], deltas[0], 0.3)
    assert gone.any() and torch.equal(gone, new.grad[0, :, 0] == 0)
