"""Runs in rows beside a healthy one; training beside held out; what seeds gained."""

import torch
from matplotlib.colors import to_hex

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.lessons.pictures.nb15 import (
    GIVES_AWAY,
    plot_answers,
    plot_held_out,
    plot_run_rows,
    plot_ways,
)
from grpo_course.loop import History


def run_of(values):
    history = History()
    for epoch, value in enumerate(values):
        history.add(epoch, 0, {"kl": torch.tensor(value)})
    return history


def test_a_group_is_tied_by_its_pay_and_not_by_its_answers():
    same, paid = ("7", ["7", "7"], [1.0, 0.2]), ("8", ["1", "12"], [0.0, 0.0])
    ax = plot_answers({"a": [same, paid], "b": [paid, paid]})
    words = [text.get_text() for text in ax.texts]
    assert words[:9] == ["a", "7", "7", "7", "✓", "8", "1", "12", "×"]
    paid_more, paid_less = (patch.get_facecolor() for patch in ax.patches[:2])
    assert paid_more[0] < paid_less[0], "more pay is darker"
    told = "2 groups of answers a run. a 1 tied, different answers 3; b 2 tied"
    assert alternative_text(ax.figure).startswith(told)


def test_each_run_stands_before_the_healthy_one_as_means_of_a_window():
    runs = {"healthy": run_of([0.0, 2.0, 4.0]), "broken": run_of([1.0, 1.0, 4.0])}
    ((ax,),) = plot_run_rows(runs, {"kl": "KL"}, window=2)
    behind, before = (list(line.get_ydata()) for line in ax.lines)
    assert behind == [1, 3] and before == [1, 2.5]
    assert list(ax.lines[0].get_xdata()) == [2, 3]
    assert "broken: KL from 1.00 to 2.50" in alternative_text(ax.figure)


def test_the_panel_that_gives_a_run_away_is_shaded():
    runs = {name: run_of([0.0, 1.0]) for name in ("healthy", "fine", "broken")}
    rows = plot_run_rows(runs, {"kl": "KL"}, window=1, tells={"broken": "kl"})
    grounds = [to_hex(ax.get_facecolor()) for (ax,) in rows]
    assert grounds[0] != GIVES_AWAY and grounds[1] == GIVES_AWAY
    assert alternative_text(rows[0][0].figure).endswith("shaded for broken: KL.")


def test_the_last_dot_stands_where_training_ends():
    (ax,) = plot_held_out({"a": torch.rand(18)}, {"a": [0.1, 0.2, 0.4]}, every=10)
    training, looks = (list(line.get_xdata()) for line in ax.lines)
    assert training[-1] == looks[-1] == 20 and len(training) == 18


def test_each_seed_is_a_line_and_the_weakest_start_is_dashed():
    rows = [
        {"seed": seed, "a": {"x": start}, "b": {"x": 0.9}}
        for seed, start in enumerate((0.3, 0.1, 0.5))
    ]
    (ax,) = plot_ways(rows, ("a", "b"))
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert len(ax.lines) == 3
    assert [list(line.get_ydata()) for line in dashed] == [[0.1, 0.9]]
    assert dashed[0].get_label() == "seed 1, the weakest start"
