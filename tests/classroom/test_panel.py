"""The panel's measures: a mean over the inner steps, however many there were."""

import torch

from grpo_course.lessons.pictures.nb07 import measure, plot_panel
from grpo_course.loop import History

RUN = History(
    [
        {"epoch": 0, "step": 0, "loss": torch.tensor([1.0, 4.0]), "entropy": 3.0},
        {"epoch": 0, "step": 1, "loss": torch.tensor([3.0, 0.0])},
        {"epoch": 1, "step": 0, "loss": torch.tensor([5.0, 6.0]), "entropy": 2.0},
        {"epoch": 2, "entropy": 1.0},  # the last look after training
    ]
)


def test_epochs_may_have_different_numbers_of_steps():
    assert measure(RUN, "loss").tolist() == [[2, 2], [5, 6]]
    assert measure(RUN, "entropy").tolist() == [[3], [2]]


def test_the_clip_fraction_is_both_sides_of_each_step():
    low, high = "clip_fraction_low", "clip_fraction_high"
    shares = [(0.25, 0.5), (0.0, 0.25)]
    steps = [
        {"epoch": 0, "step": i, low: a, high: b} for i, (a, b) in enumerate(shares)
    ]
    assert measure(History(steps), "clip_fraction").tolist() == [[0.5]]


def test_a_point_for_each_epoch_is_drawn():
    (ax,) = plot_panel({"run": RUN}, ("loss",))
    assert ax.lines[0].get_ydata().tolist() == [2, 5.5]


def test_ties_of_a_single_run_are_split_by_kind():
    shares = {"tied_groups": 0.5, "tied_right": 0.375, "tied_wrong": 0.125}
    steps = [{"epoch": i, "step": 0, "loss": 0.0} | shares for i in range(2)]
    run, told = History(steps), {}
    ties = plot_panel({"run": run}, ("loss", "tied_groups"))[1]
    for line in ties.lines:
        told[line.get_label()] = line.get_ydata().tolist()
    assert told == {
        "run": [0.5, 0.5],
        "tied, all right": [0.375, 0.375],
        "tied, all wrong": [0.125, 0.125],
    }
    (legend,) = ties.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [*told]
    ties, _ = plot_panel({"run": run, "other": run})  # no kind has a plot of its own
    assert [line.get_label() for line in ties.lines] == ["run", "other"]


def test_ties_are_split_where_that_is_asked_for():
    record = {"epoch": 0, "step": 0, "loss": 0.0, "tied_groups": 0.5, "tied_right": 0.4}
    run = History([record | {"epoch": epoch} for epoch in range(2)])
    ties, right = plot_panel({"run": run}, ("tied_groups", "tied_right", "tied_wrong"))
    assert right.get_title() == "tied, all right (share)"
    assert right.get_ylim() == ties.get_ylim() == (-0.05, 1.05)


def test_of_more_than_two_runs_the_means_alone_are_drawn():
    runs = {name: RUN for name in ("a", "b", "c")}
    (ax,) = plot_panel(runs, ("loss",))
    assert [line.get_ydata().tolist() for line in ax.lines] == [[2, 5.5]] * 3
    (ax,) = plot_panel(dict(list(runs.items())[:2]), ("loss",))
    assert len(ax.collections) == 2  # a band each


def test_the_axes_reach_no_further_than_what_is_drawn():
    def run(*values):
        return History([{"epoch": 0, "step": 0, "loss": torch.tensor(values)}])

    three = {"a": run(0.0, 0.0), "b": run(0.0, 8.0), "c": run(1.0, 1.0)}
    (ax,) = plot_panel(three, ("loss",))  # the means: 0, 4 and 1
    assert ax.get_ylim() == (-0.2, 4.2)
