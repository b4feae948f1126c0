"""The pictures of 04: what they draw and say, against the numbers they take."""

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import DOWN, UP, axes_row, draw_clip_plane, plot_stairs
from grpo_course.lessons.pictures.nb04 import (
    MEANS,
    draw_mean_weights,
    draw_price,
    draw_then_and_now,
    plot_directions,
    plot_pulls,
    plot_reach,
    price_moves,
    pull_of,
    token_weights,
)
from grpo_course.lessons.pictures.nb13 import plot_weights
from grpo_course.off_policy import PenaltyForm


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("mean", "short", "long"),
    [
        ("sequence_mean", 1 / 4, 1 / 16),
        ("token_mean", 1 / 10, 1 / 10),
        ("constant", 1 / 24, 1 / 24),
    ],
)
def test_the_weight_of_a_token_under_each_mean(mean, short, long):
    weights = token_weights(8, mean)
    torch.testing.assert_close(weights[0, :2], torch.full((2,), short))
    torch.testing.assert_close(weights[1, :8], torch.full((8,), long))
    assert not weights[0, 2:].any() and not weights[1, 8:].any()


def test_the_area_of_a_block_is_the_weight_of_its_token():
    told = draw_mean_weights(6)
    areas = [sum(p.get_height() for p in ax.patches) for ax in plt.gcf().axes]
    wanted = [token_weights(6, mean).sum().item() for mean in MEANS]
    scale = areas[0] / wanted[0]
    assert areas == [pytest.approx(scale * weight) for weight in wanted]
    assert told.endswith("sequence_mean 0.50, token_mean 0.75, constant 0.75.")
    assert "token_mean 0.125 and 0.125" in alternative_text(plt.gcf())


def test_the_tallest_block_of_a_panel_has_height_1():
    mean = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.25, 0.25]])
    one, other = plot_weights({"mean": mean, "sum": 4.0 * (mean > 0)})
    assert [patch.get_height() for patch in one.patches] == [1, 1, 0.5, 0.5, 0.5]
    assert {patch.get_height() for patch in other.patches} == {1}
    told = alternative_text(one.figure)
    assert "mean 0.500 and 0.250; sum 4.000 and 4.000" in told


def test_the_marks_say_what_the_price_does():
    """As the price of the penalty form moves, rollout after rollout."""
    kl, form, prices = torch.tensor([0.3, 0.1, 0.02, 0.14, 0.16]), PenaltyForm(0.1), []
    for value in kl:
        prices.append(form.price)
        form.adapt(type("Run", (), {"records": [{"old_kl": value}]}))
    price = torch.stack(prices)
    far, near, on_target = price_moves(kl, form.target).values()
    after = torch.cat([price[1:], form.price[None]]) / price
    assert after[far].eq(2).all() and after[near].eq(0.5).all()
    assert after[on_target].eq(1).all() and (far | near | on_target).all()
    told = draw_price(kl, price, form.target)
    assert told == "It doubles 2 times, halves 1, stays 2."
    upper, lower = plt.gcf().axes
    assert lower.lines[0].get_ydata().tolist() == price.tolist()
    assert upper.lines[0].get_ydata()[0] == 0.1  # the target


def test_a_token_far_from_the_diagonal_is_counted():
    then = torch.tensor([[[0.1, 0.2, 0.4]], [[0.3, 0.3, 0.3]]]).log()
    now = torch.tensor([[[0.3, 0.3, 0.1]], [[0.3, 0.3, 0.3]]]).log()
    right = torch.ones_like(then, dtype=torch.bool)
    told = draw_then_and_now(then, now, torch.tensor([[1.0], [-1.0]]), right)
    assert "2 of 6 are over twice" in alternative_text(plt.gcf())
    assert told == "1 of 3 good tokens fall, 0 hollow."
    good = next(line for line in plt.gca().lines if "good" in str(line.get_label()))
    assert good.get_marker() == "^"
    assert good.get_ydata() == pytest.approx([0.3, 0.3, 0.1])


def test_a_wrong_number_is_hollow():
    then = torch.tensor([[[0.1, 0.2, 0.4]], [[0.3, 0.3, 0.3]]]).log()
    now = torch.tensor([[[0.05, 0.3, 0.2]], [[0.1, 0.3, 0.3]]]).log()
    right = torch.tensor([[[False, True, True]], [[False, True, True]]])
    told = draw_then_and_now(then, now, torch.tensor([[1.0], [-1.0]]), right)
    assert told == "2 of 3 good tokens fall, 1 hollow."
    marks = [line for line in plt.gca().lines if line.get_marker() in ("^", "v")]
    hollow = [x for x in marks if x.get_markerfacecolor() == "none"][:2]
    assert [line.get_xdata().tolist() for line in hollow] == [
        pytest.approx([0.1]),
        pytest.approx([0.3]),
    ]
    sizes = [line.get_markersize() for line in hollow]
    assert sizes[0] > sizes[1]  # a good one under a bad one keeps a rim
    names = [text.get_text() for text in plt.gca().get_legend().get_texts()]
    assert len([name for name in names if "good (" in name or "hollow" in name]) == 2


def test_good_tokens_that_fell_have_a_dark_edge_above_all_others():
    then = torch.tensor([[[0.1, 0.2, 0.4]], [[0.3, 0.3, 0.3]]]).log()
    now = torch.tensor([[[0.05, 0.3, 0.2]], [[0.1, 0.3, 0.3]]]).log()
    right = torch.tensor([[[False, True, True]], [[False, True, True]]])
    draw_then_and_now(then, now, torch.tensor([[1.0], [-1.0]]), right, joined=(0, 0))
    lines = plt.gca().lines
    fallen = next(line for line in lines if "fallen" in str(line.get_label()))
    assert fallen.get_xdata().tolist() == pytest.approx([0.1, 0.4])
    assert fallen.get_markeredgecolor() == "black"
    assert fallen.get_zorder() > max(x.get_zorder() for x in lines if x is not fallen)


def test_the_clip_takes_the_pull_on_one_side_for_each_sign():
    ratios = torch.tensor([0.5, 0.9, 1.1, 1.5])
    assert pull_of("naive", ratios, -1.0).tolist() == [-1.0] * 4
    good, bad = (pull_of("clipped", ratios, delta) for delta in (1.0, -1.0))
    assert good.tolist() == pytest.approx([0.5, 0.9, 1.1, 0])
    assert bad.tolist() == pytest.approx([0, -0.9, -1.1, -1.5])
    axes = plot_pulls(ratios)
    assert [ax.get_title() for ax in axes] == [r"$\delta = +1$", r"$\delta = -1$"]


def test_the_objective_of_a_bad_token_reaches_below_the_floor():
    ratios = torch.tensor([0.1, 1.0, 50.0])
    objectives = {1.0: ratios.clamp(max=1.2), -1.0: -ratios.clamp(min=0.8)}
    ax = plot_reach(ratios, objectives, floor=-3)
    good, bad, floor = ax.lines
    assert (good.get_color(), bad.get_color()) == (UP, DOWN)
    assert good.get_ydata().tolist() == pytest.approx([0.1, 1.0, 1.2])
    assert floor.get_ydata()[0] == -3 > bad.get_ydata()[-1]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "symlog")
    text = alternative_text(ax.figure)
    assert "delta = -1 from -0.8 to -50" in text


def test_a_stair_is_a_rollout():
    stairs = {r"from $\varepsilon$": [0.1, 0.12, 0.144], "from 1": [0.1, 0.128]}
    ax = plot_stairs(stairs, "rounds")
    assert [note.get_text() for note in ax.texts] == ["2", "1"]
    slow, fast = (line for line in ax.lines if line.get_label().startswith("from"))
    assert slow.get_ydata() == pytest.approx([0.1, 0.12, 0.144])
    assert fast.get_drawstyle() == "steps-post" and ax.get_yscale() == "log"
    assert "rounds that each takes: from epsilon: 2, from 1: 1." in alternative_text(
        ax.figure
    )
    assert ax.get_xlabel() == "rounds"


def test_a_tail_shows_the_last_step_of_a_token():
    ratio, before = torch.tensor([1.5, 0.5]), torch.tensor([1.1, 1.0])
    ax = axes_row()[0]
    draw_clip_plane(ax, ratio, torch.tensor([1.0, 1.0]), 0.2, before)
    one, other = (list(line.get_xdata()) for line in ax.lines[1:3])
    assert one == pytest.approx([1.1, 1.5]) and other == pytest.approx([1.0, 0.5])


def test_a_line_joins_the_tokens_of_one_response():
    then = torch.tensor([[[0.1, 0.2, 0.4]], [[0.3, 0.3, 0.3]]]).log()
    right = torch.ones_like(then, dtype=torch.bool)
    draw_then_and_now(then, then, torch.tensor([[1.0], [-1.0]]), right, joined=(0, 0))
    joined = next(x for x in plt.gca().lines if x.get_label() == "one response")
    assert joined.get_xdata().tolist() == pytest.approx([0.1, 0.2, 0.4])


def test_an_arrow_stands_at_its_angle_to_the_exact_gradient():
    exact = torch.tensor([2.0, 0.0, 0.0])
    gradients = {"same": 3 * exact, "off": torch.tensor([0.0, 0.0, -5.0])}
    ax = plot_directions(exact, gradients, colours=("black", "grey"))
    tips = [(arrow.U.item(), arrow.V.item()) for arrow in ax.collections]
    assert tips == [pytest.approx((1, 0)), pytest.approx((0, 1))]
    assert "same: 0°, off: 90°." in alternative_text(ax.figure)
