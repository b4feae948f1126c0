"""What was recorded is what comes out, and the sliders move what they say."""

import json

import matplotlib.pyplot as plt
import pytest
import torch

from grpo_course.classroom.hunt import costs, recorded
from grpo_course.classroom.hunt.broken import broken
from grpo_course.classroom.hunt.defects import DEFECTS, number_of
from grpo_course.classroom.hunt.findings import (
    cost_of,
    course_matrix,
    sweep_of,
    sweeps_of,
)
from grpo_course.classroom.hunt.judge import faults
from grpo_course.classroom.hunt.properties import PROPERTIES
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.classroom.hunt.sleeping import KNOBS, first_update, update_error
from grpo_course.classroom.plots.alt_text import alternative_text
from grpo_course.classroom.plots.palette import DOWN, LEVEL
from grpo_course.classroom.plots.sweeps import plot_costs, plot_gains, plot_sweeps

# Cause -> a value of its setting with which nothing is wrong.
ASLEEP = {
    "temperature missing from the scores": 1.0,
    "old scores that carry a gradient": 2,
    "old scores taken from the current policy": 1,
    "clip blind to the sign of delta": 1,
    "schedule too short for the inner steps": 1,
    "k3 upside down": 0.0,
    "k1 as a loss": 0.0,
    "KL with the wrong sign": 0.0,
    "KL computed and not used": 0.0,
    "reference is the policy itself": 0.0,
    "each part divided by its own tokens": 64,
    "gradient cleared for each part": 64,
}


def test_everything_is_recorded():
    for path, wanted in costs.jobs().items():
        assert set(wanted) == set(recorded.read(path)), path.name


@pytest.mark.parametrize("cause", ASLEEP)
def test_a_sleeping_defect_does_nothing(cause):
    assert update_error(cause, ASLEEP[cause]) < 1e-4


@pytest.mark.parametrize("cause", KNOBS)
def test_a_defect_can_be_woken(cause):
    _, values, errors = sweep_of(cause)
    assert len(values) == len(errors) >= 3
    assert errors.mean(dim=1).max() > 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "cause", ["k1 as a loss", "attention mask left out of the scores"]
)
def test_a_sweep_is_what_comes_out(cause):
    _, values, errors = sweep_of(cause)
    now = torch.tensor([update_error(cause, value, seed=1) for value in values])
    assert torch.allclose(now, errors[:, 1], rtol=0.1, atol=0.01)


def test_the_healthy_update_is_no_error_and_none_is_one():
    without = first_update(Trainer, 0, beta=0.0)
    again = first_update(broken(number_of("k1 as a loss")).Trainer, 0, beta=0.0)
    assert torch.equal(without, again) and without.norm() > 0.01
    ours = first_update(Trainer, 0)
    dead = first_update(
        broken(number_of("end token left in the graded text")).Trainer, 0
    )
    assert (dead - ours).norm() / ours.norm() > 0.5


def test_a_cost_is_the_paired_difference():
    key = recorded.key_of({})
    ends = recorded.stored(recorded.COSTS)
    theirs, ours = ends[f"loss negated twice {key}"], ends[f"healthy {key}"]
    gap = torch.tensor(theirs).double() - torch.tensor(ours).double()
    cost = cost_of("loss negated twice")
    assert cost.mean == pytest.approx(gap.mean().item()) and cost.num_seeds == 8
    assert cost.error == pytest.approx((gap.std() / 8**0.5).item())
    assert cost.is_seen and cost.mean < -0.4 and str(cost).startswith("-0.")


def test_costs_are_recorded_with_the_settings_that_wake():
    for defect in DEFECTS.values():
        for awake in (False, True):
            assert abs(cost_of(defect.cause, awake).mean) < 1
    gone = cost_of("old scores that carry a gradient", awake=True)
    assert gone.is_seen and gone.mean < 0
    assert cost_of("old scores that carry a gradient").mean == 0


def test_the_recorded_matrix_is_as_the_properties_say():
    rows = course_matrix()
    assert set(rows) == set(PROPERTIES)
    for name, row in rows.items():
        assert not [x for x in faults(row, PROPERTIES[name]) if "One call" not in x]
        assert set(row.broken) == set(DEFECTS)


def test_the_command_records_what_is_missing(tmp_path, monkeypatch, capsys):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"a": 1, "old": 2}), encoding="utf-8")
    runs = {path: {"a": lambda: 7, "b": lambda: 8}}
    monkeypatch.setattr(costs, "jobs", lambda: runs)
    assert costs.main([]) == 0 and recorded.read(path) == {"a": 1, "b": 8}
    costs.main(["--again", "a"])
    assert recorded.read(path) == {"a": 7, "b": 8}
    assert capsys.readouterr().out.count("record.json") == 2


def test_the_pictures_show_the_numbers():
    values, errors = sweeps_of("beta")
    ax = plot_sweeps("beta", values, errors)
    assert ax.get_xlabel() == r"$\beta$" and len(ax.get_xticks()) == len(values)
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert len(errors) == 5 and errors.keys() <= lines.keys()
    for cause, error in errors.items():
        assert lines[cause].get_ydata()[2] == error[2].mean()
    ax, near = plot_costs({"one": (-0.2, 0.05), "two": (0.0, 0.1)}, seen=["one"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["one", "two"]
    assert ax.yaxis_inverted() and near.yaxis_inverted()
    assert [bar.lines[0].get_color() for bar in ax.containers] == [DOWN, LEVEL]
    assert alternative_text(ax.figure).endswith("one -0.200; two +0.000. Orange: one.")
    plt.close("all")


def test_gains_stand_in_the_order_of_their_size():
    ax = plot_gains({"small": (0.1, 0.01), "large": (-0.3, 0.02)}, "gain")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["large", "small"]
    assert (
        alternative_text(ax.figure) == "A dot a row, gain: large -0.300; small +0.100."
    )
