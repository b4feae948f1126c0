"""Gaps over a setting, points with names, arrows, and who waits for whom."""

import pytest
import torch

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.lessons.pictures.nb03 import plot_stretch
from grpo_course.lessons.pictures.nb07 import plot_agreement
from grpo_course.lessons.pictures.nb09 import plot_means_and_gap, plot_ways_from
from grpo_course.lessons.pictures.nb13 import plot_gaps, plot_waiting
from grpo_course.lessons.pictures.nb14 import (
    along_and_across,
    plot_before_after,
    plot_trade,
    plot_turned,
)
from grpo_course.off_policy import LEARNER, Span


def test_gaps_are_drawn_with_two_errors_around_a_line_on_zero():
    ax = plot_gaps(
        {"a": [(0.1, 0.02), (-0.2, 0.1)], "b": [(0, 1), (1, 1)]}, [1, 3], "x", "y"
    )
    first, *_ = [line for line in ax.lines if line.get_label() == "a"]
    assert list(first.get_ydata()) == [0.1, -0.2]
    (low, high) = ax.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert (round(low, 9), round(high, 9)) == (0.06, 0.14)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "3"]
    told = alternative_text(ax.figure)
    assert "against x, at 1, 3: a +0.100, -0.200; b +0.000, +1.000." in told


def test_the_gap_of_two_curves_is_taken_seed_by_seed():
    curves = {"a": torch.tensor([[1.0, 3.0], [2.0, 2.0]]), "b": torch.ones(2, 2)}
    means, gap = plot_means_and_gap(curves, ("a", "b"), "tokens", range(1, 2))
    assert [list(line.get_ydata()) for line in means.lines] == [[2, 2], [1, 1]]
    assert list(gap.lines[0].get_ydata()) == [1, 1]


def test_what_is_given_up_is_a_cross_near_zero():
    before, after = torch.tensor([0.01, 0.1, 0.5]), torch.tensor([0.0, 0.95, 1.0])
    (ax,) = plot_before_after({"weak": (before, after)}, "rate")
    same, kept, lost = ax.lines
    assert (kept.get_label(), lost.get_label()) == ("above 0.001", "given up")
    assert same.get_label() == "unchanged" and same.get_linestyle() == ":"
    assert list(same.get_xdata()) == list(same.get_ydata())
    assert 0.005 < ax.get_xlim()[0] < before[0], "the line makes room for itself"
    assert (kept.get_marker(), len(kept.get_xdata())) == ("o", 2)
    assert (lost.get_marker(), list(lost.get_xdata())) == ("x", [before[0]])
    assert abs(lost.get_ydata()[0]) <= 0.05
    told = alternative_text(ax.figure)
    assert "weak: 1 of 3 are given up, 2 end above 0.9, 1 lie below" in told


def test_what_agrees_lies_on_the_diagonal():
    one = torch.tensor([-0.25, 0.5, 0.75])
    ax = plot_agreement(one, one + 0.125, "x", "y")
    assert ax.get_title() == "2 of 3 above zero; between -0.125 and +0.875"
    assert "at most 0.12500 away" in alternative_text(ax.figure)


def test_a_bar_for_each_span_and_the_updates_are_counted():
    busy = [Span(0, 0.0, 3.0), Span(LEARNER, 3.0, 4.0), Span(LEARNER, 9.0, 12.0)]
    (ax,) = plot_waiting({"queue 1": busy}, writers=1, seconds=10)
    assert sum(len(each.get_paths()) for each in ax.collections) == 3
    assert "queue 1: 1 updates" in alternative_text(ax.figure)


def test_a_batch_of_the_age_is_framed_with_its_update_and_those_since():
    """The batch of writer 1 is ready first, so it is learned from first."""
    busy = [Span(0, 1.0, 9.0), Span(1, 2.0, 3.0), Span(0, 9.0, 10.0)]
    busy += [Span(LEARNER, 3.0, 5.0), Span(LEARNER, 9.0, 11.0)]
    (ax,) = plot_waiting({"queue 2": busy}, 2, 12, ages={"queue 2": 1})
    frames = [each for each in ax.collections if not each.get_facecolor().any()]
    starts = [frame.get_paths()[0].vertices[:, 0].min() for frame in frames]
    assert starts == [1.0, 9.0]
    arrow, number = ax.texts
    assert (arrow.xy[0], arrow.get_position()[0]) == (9.0, 1.0)
    assert (number.get_text(), number.get_position()[0]) == ("1", 4.0)
    assert "1 of them since the framed batch was begun" in alternative_text(ax.figure)
    with pytest.raises(ValueError, match="age=3"):
        plot_waiting({"queue 2": busy}, 2, 12, ages={"queue 2": 3})


def test_dots_that_coincide_share_names_and_a_bent_one_is_hollow():
    ax = plot_stretch(
        {"a": (1.0, 1.0, 1.0), "b": (0.1, 0.2, 0.95), "c": (1.01, 1.0, 1.0)}, "x", "y"
    )
    named = [note.get_text() for note in ax.texts]
    assert named == ["exact", "a, c", "b (cosine 0.95)"]
    (cross,) = (line for line in ax.lines if line.get_marker() == "+")
    assert (cross.get_xdata(), cross.get_ydata()) == ([1], [1])
    *_, kept, bent = ax.lines
    assert kept.get_markerfacecolor() == kept.get_markeredgecolor()
    assert bent.get_markerfacecolor() != bent.get_markeredgecolor()
    assert "b 0.10, 0.20" in alternative_text(ax.figure)


def test_an_update_is_drawn_along_its_gradient_and_across_it():
    true = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 4.0]])
    updates = torch.tensor([[1.0, 0.0, -2.0], [0.0, 0.0, 4.0]])
    assert along_and_across(updates, true).tolist() == [[0.5, 1.0], [1.0, 0.0]]
    kept, bent = plot_turned(
        {"a": torch.tensor([[1.0, 0.0]]), "b": torch.tensor([[1.0, 0.0], [0.0, 0.75]])}
    )
    assert [note.xy for note in kept.texts] == [(1, 0), (1, 0)]  # the true one is first
    assert [tuple(note.xy) for note in bent.texts[1:]] == [(1, 0), (0, 0.75)]
    assert bent.get_title() == "b\n45°, at worst 90°"
    assert "gradient: a 0°; b 45°, at worst 90°." in alternative_text(bent.figure)


def test_a_disc_is_as_wide_as_the_noise_and_the_smallest_error_is_bold():
    ends = {"off": torch.tensor([[0.4, 0.0]]), "loud": torch.tensor([[1.0, 0.0]])}
    noise = {"off": torch.tensor([0.8]), "loud": torch.tensor([2.0])}
    off, loud = plot_turned(ends, noise)
    (disc,) = off.patches
    dots, away = [line for line in off.lines if line.get_marker() == "o"]
    assert dots.get_xydata().tolist() == [ends["off"][0].tolist()]
    assert not len(away.get_xydata())
    assert (round(disc.center[0], 6), round(disc.radius, 6)) == (0.4, 0.8)
    assert (off.get_title(), loud.get_title()) == (
        "off\ntotal error 1.00",
        "loud\ntotal error 2.00",
    )
    assert [ax.title.get_weight() for ax in (off, loud)] == ["bold", "normal"]


def test_a_trade_is_what_is_won_across_and_what_is_kept_upwards():
    won = torch.tensor([[1.0, 0.5], [0.5, 0.5], [0.0, 0.0]])
    ax = plot_trade({"a": (won, 1 - won)}, (0, 0.1, 0.3), "new", "old", (0.9, 0.8))
    (line,) = [bar.lines[0] for bar in ax.containers]
    assert line.get_xydata().tolist() == [[0.75, 0.25], [0.5, 0.5], [0.0, 1.0]]
    ends = {note.get_text(): note.xy for note in ax.texts if "β" in note.get_text()}
    assert ends == {"β = 0": (0.75, 0.25), "β = 0.3": (0.0, 1.0)}
    assert "a from 0.75, 0.25 to 0.00, 1.00" in alternative_text(ax.figure)


def test_an_arrow_joins_the_mean_of_a_start_to_that_of_each_end():
    start = torch.tensor([0.5, 0.7]), torch.tensor([0.8, 0.6])
    end = torch.tensor([0.9, 1.0]), torch.tensor([0.1, 0.3])
    ax = plot_ways_from({"a": start}, {"a": {"β = 0": end}}, "new", "old")
    arrow, tip, name = ax.texts
    assert arrow.xyann == pytest.approx((0.6, 0.7)) and name.get_text() == "a"
    assert arrow.xy == tip.xy == pytest.approx((0.95, 0.2))
    assert ax.lines[0].get_xydata().tolist() == [pytest.approx([0.6, 0.7])]
    told = alternative_text(ax.figure)
    assert "a, β = 0: from 0.60, 0.70 to 0.95, 0.20" in told


def test_a_remedy_is_the_corner_where_enough_is_won_and_kept():
    runs = {"a": (torch.ones(2, 2), torch.zeros(2, 2))}
    ax = plot_trade(runs, (0, 0.1), "new", "old", (0.9, 0.75))
    (corner,) = ax.patches
    assert corner.get_xy() == (0.9, 0.75)
    assert corner.get_x() + corner.get_width() == ax.get_xlim()[1]
    assert "a remedy from 0.90, 0.75 on." in alternative_text(ax.figure)
