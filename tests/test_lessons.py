"""What one notebook alone uses: a film of one policy, silent runs, recorded seeds."""

from itertools import pairwise, permutations

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.colors import same_color

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.classroom.plots import DOWN, LEVEL, UP, plot_threads
from grpo_course.lessons.exercises.nb07 import log_line
from grpo_course.lessons.one_prompt import PROMPT, Moment, learn_one
from grpo_course.lessons.own_task import (
    means_of,
    recorded_seeds,
    smollm2_texts,
    try_gain,
)
from grpo_course.lessons.pictures.nb00 import plot_moment
from grpo_course.lessons.pictures.nb01 import plot_hacking, plot_means
from grpo_course.lessons.silent_runs import run_of
from grpo_course.lessons.word_order import accuracy
from grpo_course.sort import sort_distance_reward
from grpo_course.text.task_check import find_fault
from grpo_course.text.tasks import find_task


def test_moments_are_seen_before_each_step_and_after_the_last():
    moments = learn_one(3, 0.02, num_responses=5)
    assert len(moments) == 4
    assert all(not torch.equal(a.probs, b.probs) for a, b in pairwise(moments))
    for each in moments:
        assert torch.allclose(each.probs.sum(dim=-1), torch.ones(3))
        paid = [sort_distance_reward(list(PROMPT), row) for row in each.responses]
        assert each.rewards.tolist() == paid and abs(each.deltas.sum()) < 1e-5


def test_twice_the_rate_is_twice_the_step_on_the_same_group():
    small, large = learn_one(1, 1e-4), learn_one(1, 2e-4)
    assert torch.equal(small[0].responses, large[0].responses)
    steps = [each[1].probs - each[0].probs for each in (small, large)]
    assert torch.allclose(steps[1], 2 * steps[0], atol=1e-5)
    assert steps[0].abs().max() > 1e-4


def test_bars_of_a_moment_have_the_sign_and_the_colour_of_their_deltas():
    rewards, deltas = torch.tensor([2.0, 0.0, 1.0]), torch.tensor([1.0, -1.0, 0.0])
    group = torch.tensor([[0, 1], [1, 0], [1, 1]])
    moment = Moment(torch.full((2, 2), 0.5), group, rewards, deltas)
    _, right = plot_moment(moment, [0, 1], most=2)
    bars = zip(right.patches, (UP, DOWN, LEVEL), strict=True)
    assert all(same_color(bar.get_facecolor(), colour) for bar, colour in bars)
    signs = [text.get_text() for text in right.texts][3:]
    assert signs == ["+", "\N{MINUS SIGN}", "0"]
    assert "0 1 at 2, 1 0 at 0, 1 1 at 1" in alternative_text(right.figure)
    plt.close("all")


def test_threads_are_a_line_for_each_seed_and_their_median():
    curve = torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.4, 0.9]])
    ax = plot_threads(curve, "P(sorted)")
    ends = [line.get_ydata()[-1] for line in ax.lines]
    assert [round(float(end), 3) for end in ends] == [0.2, 0.4, 0.9, 0.4]
    ax = plot_threads(curve, "P(sorted)", named=[1])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["run 1", "median of the seeds"]
    ax = plot_means({"a": torch.tensor([[0.0, 0.2], [0.4, 0.8]])})
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([0.1, 0.6])
    plt.close("all")


def test_wrong_answers_are_hatched_and_counted():
    curves = {"with the hole": torch.rand(4, 3), "repaired": torch.rand(4, 3)}
    answers = torch.tensor([[3, 3, 3], [0, 3, 3], [0, 3, 3]])
    *_, right = plot_hacking(curves, curves, torch.tensor([3, 3, 3]), answers)
    bars = {bar.get_y() + 0.35: bar for bar in right.patches}
    assert [bars[row].get_width() for row in sorted(bars)] == [2, 1]
    assert [bool(bars[row].get_hatch()) for row in sorted(bars)] == [True, False]
    assert "2 of 3 wrong" in right.get_title()
    plt.close("all")


SIGNS = {  # what the log shows: the reward's way, whether ratios leave 1, a gradient
    "A": ("falls", True, True),  # deltas with the wrong sign
    "B": ("stays", False, True),  # no step is taken
    "C": ("rises", True, True),  # healthy
    "D": ("stays", False, False),  # all groups tied
    "E": ("rises", False, True),  # old log-probs noted anew
    "F": ("rises", True, True),  # learning rate far too large
}


@pytest.mark.parametrize("letter", SIGNS)
def test_a_log_shows_the_signs_of_its_cause(letter):
    log = run_of(letter, log_line.solution).frame()
    first, end = log.loc[0, 0], log.loc[19, 0]
    assert log.xs(0, level="step").loss.abs().max() < 1e-5  # this says nothing
    gain = end.mean_reward - first.mean_reward
    way = "rises" if gain > 0.5 else "falls" if gain < -0.4 else "stays"
    leaves = (log.ratio_max - 1).abs().max() > 1e-5
    assert (way, leaves, first.gradient_norm > 1) == SIGNS[letter]


ROWS = recorded_seeds()
WAYS = [*ROWS[0]["the start"]]
HOT, GREEDY, VOTE = "one sample, temperature 1", "greedy", "majority of 8"


def test_each_seed_shows_what_the_notebook_says():
    assert [row["seed"] for row in ROWS] == list(range(5))
    for row in ROWS:
        early, start, late = row["starts"].values()
        assert early["mixed"] == 0 < start["mixed"] and late["right"] > 0.8
        assert all(row["letters"][way] < row["the start"][way] for way in WAYS)
        for model in ("accuracy", "credit", "imitation"):
            assert row[model][HOT] > row["the start"][HOT] + 0.05
    means = means_of(ROWS)
    assert (means["imitation"] > means["accuracy"]).all()
    assert (means["credit"] < means["accuracy"]).all()


def test_only_harm_is_settled_where_each_model_answers_in_its_best_way(capsys):
    best = means_of(ROWS).idxmax()
    for one, other in permutations(best.index, 2):
        try_gain(ROWS, (one, best[one]), (other, best[other]))
        settled = "[v] the interval lies above 0" in capsys.readouterr().out
        assert settled == (one == "letters")


def test_the_texts_of_a_real_model_are_graded_by_an_exact_task():
    texts = smollm2_texts()
    assert len(texts) == 32 * 8
    right = accuracy([*texts["text"]], [*texts["answer"]])
    assert sum(right) == 33  # one of them with a capital letter
    task = find_task("grpo_course.lessons.word_order:WordOrder")()
    assert find_fault(task) == ""


@pytest.mark.parametrize(
    ("before", "after", "gain", "marks"),
    [
        (("the start", HOT), ("accuracy", HOT), "+0.24 ± 0.11", "vxxvv"),
        (("the start", HOT), ("accuracy", GREEDY), "+0.48 ± 0.10", "vxvvv"),
        (("the start", GREEDY), ("accuracy", GREEDY), "+0.06 ± 0.07", "vvvxx"),
        (("accuracy", HOT), ("imitation", HOT), "+0.29 ± 0.26", "vxxvv"),
        (("the start", GREEDY), ("letters", GREEDY), "-0.51 ± 0.27", "vvvxx"),
        (("the start", HOT), ("the start", GREEDY), "+0.43 ± 0.09", "xxvvv"),
        # By five thousandths the vote is behind: what is printed alike counts alike.
        (("the start", GREEDY), ("imitation", VOTE), "+0.20 ± 0.27", "vvvxx"),
    ],
)
def test_a_gain_is_marked_by_what_it_lacks(before, after, gain, marks, capsys):
    try_gain(ROWS, before, after)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.endswith(gain)
    assert "".join(line[1] for line in lines) == marks


def test_a_way_that_is_none_is_named():
    with pytest.raises(ValueError, match=r"greedily.*one of .*credit.*majority of 8"):
        try_gain(ROWS, ("the start", HOT), ("credit", "greedily"))
