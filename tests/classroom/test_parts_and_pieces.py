"""The pictures of the last notebooks: pieces of text, parts of a reward, ratios."""

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Annotation

from grpo_course import correctness_reward, format_reward, length_reward
from grpo_course.classroom.plots import (
    forks,
    groups,
    palette,
    ratio_levels,
    reward_parts,
    text_pieces,
    word_problems,
)
from grpo_course.classroom.plots.alt_text import alternative_text
from grpo_course.tasks import in_template

PLAIN = [in_template("3+4=7", "7"), in_template("3+4=8", "8"), "3+4=7"]
GROUP = [*PLAIN, in_template("so " * 400 + "3+4=7", "7")]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def paid(length_weight):
    """The parts of the reward of notebook 11."""
    parts = {"right number": torch.tensor(correctness_reward(GROUP, ["7"] * 4))}
    parts["form"] = 0.2 * torch.tensor(format_reward(GROUP))
    return parts | {"length": length_weight * torch.tensor(length_reward(GROUP))}


@pytest.mark.parametrize(("weight", "goes_up"), [(0, True), (1.25, True), (1.5, False)])
def test_a_large_weight_of_the_length_turns_the_arrow_of_a_right_answer(
    weight, goes_up
):
    left, right = reward_parts.plot_parts(paid(weight), ["a", "b", "c", "d"])
    total = sum(paid(weight).values())
    assert [t.get_text() for t in left.texts] == [f"{v:.2f}" for v in total.tolist()]
    arrow = [text for text in right.texts if text.arrow_patch][-1]
    points_up = arrow.xy[0] > arrow.xyann[0]
    assert points_up == goes_up == bool(total[3] > total.mean())


def test_at_two_the_right_answer_earns_less_than_the_wrong_one():
    total = sum(paid(2.0).values())
    assert total[3] < total[1]


def test_a_part_below_zero_goes_left_and_the_text_tells_all():
    ax = reward_parts.plot_earned(paid(1.0), ["a", "b", "c", "d"])
    lowest = min(patch.get_x() + patch.get_width() for patch in ax.patches)
    assert lowest == pytest.approx(length_reward(GROUP)[3])
    assert "form 0.20, 0.20, 0.00, 0.20" in alternative_text(ax.figure)


def test_pieces_stand_side_by_side_and_begin_a_new_line_where_none_is_left():
    places = text_pieces.places_of([("a" * 40, "tag"), ("b" * 40, "tag"), ("c", "tag")])
    assert [(place.x, place.line) for place in places] == [(0, 0), (41, 0), (82, 0)]
    places = text_pieces.places_of([("a" * 60, "tag"), ("b" * 40, "tag")])
    assert [(place.x, place.line) for place in places] == [(0, 0), (0, 1)]


def test_a_bar_stands_below_the_pieces_that_count_and_below_no_other():
    rows = {"first": [("a", "prompt")], "last": [("a", "prompt"), ("b\n", "response")]}
    ax = text_pieces.plot_pieces(rows, [False, True])
    bars = [p for p in ax.patches if p.get_height() < 0.2]
    assert [bar.get_x() for bar in bars[:-1]] == [2.0]  # the last is in the legend
    assert "b↵" in [text.get_text() for text in ax.texts]
    told = alternative_text(ax.figure)
    assert "first: a (prompt)" in told and "1 of the last row's pieces" in told


def test_an_arc_leads_from_the_scorer_to_the_next_piece():
    pieces = [("aa", "template"), ("b", "tag"), ("c", "response")]
    ax = text_pieces.plot_pieces({"a row": pieces}, [False, True, True], scorer=0)
    (arc,) = (p for p in ax.patches if isinstance(p, FancyArrowPatch))
    (start, _), (end, _) = arc._posA_posB
    first, second, _ = text_pieces.places_of(pieces)
    assert start == first.x + first.width / 2 and end == second.x + second.width / 2
    assert alternative_text(ax.figure).endswith("from the one before it.")


def test_each_response_has_its_dots_and_its_diamond():
    ratio = torch.tensor([[1.5, 0.9, 1.0], [4.0, 1.0, 0.5]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    whole = torch.tensor([1.16, 1.26])
    ax = ratio_levels.plot_levels(ratio, mask, whole)
    counts = [len(line.get_xdata()) for line in ax.lines[:4]]
    assert counts == [2, 1, 3, 1]
    assert "responses from 1.16 to 1.26, 1 of 2 outside" in alternative_text(ax.figure)


def test_a_token_that_pulls_not_at_all_has_a_cross():
    ratio, mask = torch.tensor([[1.5, 0.9]]), torch.tensor([[True, True]])
    pulls = {"clip": torch.tensor([[0.0, 0.9]]), "cispo": torch.tensor([[1.2, 0.9]])}
    (ax,) = ratio_levels.plot_pulls(ratio, mask, torch.ones(1), pulls)
    crosses = [line.get_xdata().tolist() for line in ax.lines[:2]]
    assert [len(each) for each in crosses] == [1, 0]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(
        [0.0, 0.9, 1.2, 0.9]
    )


@pytest.mark.parametrize(("length", "clipped"), [(2, True), (600, False)])
def test_the_ratio_of_a_long_response_stays_near_one(length, clipped):
    torch.manual_seed(0)
    whole = (0.35 * torch.randn(8, length)).mean(-1).exp()
    assert bool(ratio_levels.outside(whole, 0.2)) == clipped


def test_shares_of_a_split_lie_side_by_side():
    shares = {"old": torch.tensor([0.75, 0.0]), "new": torch.tensor([0.25, 1.0])}
    ax = word_problems.plot_shares(shares, ["a", "b"])
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [
        (0, 0.75),
        (0, 0),
        (0.75, 0.25),
        (0, 1),
    ]
    assert "old 0.75, 0.00; new 0.25, 1.00" in alternative_text(ax.figure)


def test_a_frame_holds_two_copies():
    deltas = {"list": torch.tensor([0.5, -0.5, 0.5, -0.5])}
    ax = word_problems.plot_orders({"list": "ABAB"}, {"A": 1.0, "B": 0.0}, deltas)
    frames = [p for p in ax.patches if p.get_width() == 2]
    assert [frame.get_x() for frame in frames] == [0, 2]
    assert [t.get_text() for t in ax.texts if t.get_text() in ("0", "1")] == [*"1010"]
    arrows = [text for text in ax.texts if isinstance(text, Annotation)]
    heads = [arrow.xyann[1] > arrow.xy[1] for arrow in arrows]
    assert heads == [True, False, True, False], "up on the page is up"
    assert "list: ABAB, deltas 0.50, -0.50" in alternative_text(ax.figure)


def test_the_best_paid_of_each_column_are_framed():
    ax = word_problems.plot_paid({"a": [1.0, 0.2], "b": [1.0, 0.4]}, ["x", "y"])
    assert [p.get_xy() for p in ax.patches] == [
        (-0.47, -0.45),
        (-0.47, 0.55),
        (0.53, 0.55),
    ]
    assert "b 1.00, 0.40" in alternative_text(ax.figure)


def test_a_bar_runs_from_the_start_of_a_search_to_its_end():
    short, long = {"a": [(0, 4)], "b": [(1, 3)]}, {"a": [(0, 8), (4, 8)], "b": [(0, 8)]}
    left, right = word_problems.plot_searches({"one tag": short, "two tags": long})
    bars = [(bar.get_x(), bar.get_width()) for bar in right.patches]
    assert bars == [(0, 8), (4, 4), (0, 8)]
    assert right.get_title() == "two tags\na 12, b 8"
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim()
    assert right.get_ylim()[0] > right.patches[-1].get_y() + 0.75, "a bar is cut off"
    told = alternative_text(left.figure)
    assert "one tag: 1 of a, 4 characters" in told and "two tags: 2 of a, 12" in told


def test_lines_on_each_other_differ_in_width_and_the_average_is_dashed():
    runs = {"x": torch.full((3, 2), 0.5), "y": torch.full((3, 2), 0.5)}
    averages = {"x": torch.full((3,), 0.25), "y": torch.full((3,), 0.75)}
    row = word_problems.plot_choices(runs, ["a", "b"], averages)
    for ax, (name, average) in zip(row, averages.items(), strict=True):
        first, second, dashed = ax.lines
        assert first.get_linewidth() > second.get_linewidth()
        assert dashed.get_linestyle() == "--" and ax.get_title() == name
        assert dashed.get_ydata().tolist() == average.tolist()
    (alone,) = word_problems.plot_choices({"x": runs["x"]}, ["a", "b"], averages)
    assert alone.get_title() == "x" and len(alone.figure.axes) == 1


def test_a_level_lies_across_one_picture_and_is_told():
    runs = {"x": torch.full((3, 2), 0.5), "y": torch.full((3, 2), 0.5)}
    averages = dict.fromkeys(runs, torch.full((3,), 0.25))
    row = word_problems.plot_choices(runs, ["a", "b"], averages)
    word_problems.mark_level(row[1], 0.6, "a earns 0.6")
    assert list(row[1].lines[-1].get_ydata()) == [0.6, 0.6]
    assert [text.get_text() for text in row[1].texts] == ["a earns 0.6"]
    told = alternative_text(row[0].figure)
    assert told.count("a earns 0.6 from 0.6 to 0.6") == 1


def test_arrows_lead_from_the_average_of_the_policy_to_each_reward():
    chances, rewards = torch.tensor([0.75, 0.25]), torch.tensor([0.6, 1.0])
    left, right = groups.plot_over_average(chances, rewards, ["a", "b"])
    arrows = [text for text in right.texts if isinstance(text, Annotation)]
    ends = [(arrow.xyann[0], arrow.xy[0]) for arrow in arrows]
    assert ends == [pytest.approx((0.7, 0.6)), pytest.approx((0.7, 1.0))]
    words = [text.get_text() for text in right.texts if text.get_text()]
    assert words == ["-0.10", "+0.30"]
    assert [text.get_text() for text in left.texts] == ["0.75", "0.25"]
    assert "from the average 0.70: a chosen 0.75" in alternative_text(left.figure)


def test_an_error_of_zero_has_its_number_too():
    left, right = word_problems.plot_errors(
        {"m": {"a": 1.0, "b": 0.0}, "n": {"a": 0.5, "b": 0.25}}, "nats"
    )
    assert [text.get_text() for text in left.texts] == ["1.000", "0.000"]
    assert left.get_xlim() == right.get_xlim()
    assert "n, a: 0.500; n, b: 0.250" in alternative_text(left.figure)


THOUGHT = ["<think>", "7", "+", "3", "Ċ", "</think>", "<answer>", "7"]


def test_a_token_that_moved_has_its_colour_and_both_chances():
    then = torch.tensor([[1.0, 0.9, 0.2, 1, 1, 0.5, 1, 1, 0], [1.0] * 9])
    now = torch.tensor([[1.0, 0.9, 0.8, 1, 1, 0.25, 1, 0.5, 9], [1.0] * 9])
    ax = forks.plot_forks(["a", "b"], [THOUGHT, ["7"]], then, now)
    fills = [patch for patch in ax.patches if patch.get_linewidth() == 0]
    colours = [to_hex(fill.get_facecolor()) for fill in fills if fill.get_alpha()]
    assert colours == [palette.UP.lower(), palette.DOWN.lower()]
    # The factor is of the whole answer, its tags too, and of no padding behind it.
    words = ["a  × 1", "7", "+", ".20→.80", "3", ",", "□", ".50→.25", "b  × 1", "7"]
    assert [text.get_text() for text in ax.texts] == words
    told = "a  × 1: + at 2 0.20→0.80, □ at 5 0.50→0.25; b  × 1: no token."
    assert alternative_text(ax.figure).endswith(told)


def test_the_numbers_of_neighbours_do_not_cover_each_other():
    then, now = torch.full((1, 6), 0.8), torch.full((1, 6), 0.4)
    ax = forks.plot_forks(["a"], [list("123456")], then, now)
    pairs = [t.get_position()[0] for t in ax.texts if "→" in t.get_text()]
    assert pairs == [0.5, 3.5]


def test_bands_lie_on_each_other_and_bear_their_names():
    names = ("right", "mixed", "wrong")
    shares = dict(
        zip(names, torch.tensor([[0.2, 0.5], [0.5, 0.2], [0.3, 0.3]]), strict=True)
    )
    layers = {name: share.repeat_interleave(5) for name, share in shares.items()}
    ax = word_problems.plot_layers(layers, range(10), "epoch", "share")
    tops = [band.get_datalim(ax.transData).y1 for band in ax.collections]
    assert tops == pytest.approx([0.5, 0.7, 1.0])
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert places["right"] == pytest.approx((5, 0.25))
    assert places["mixed"] == pytest.approx((1, 0.45))
    assert "mixed from 0.50 to 0.20" in alternative_text(ax.figure)
