"""Pictures of the guided cases: each shows the defect, and nothing of it repaired."""

from functools import partial

import pytest

from grpo_course.classroom.alt_text import alternative_text
from grpo_course.lessons.hunt.defects import GUIDED, broken
from grpo_course.lessons.hunt.probes import token_with
from grpo_course.lessons.hunt.script import Trainer
from grpo_course.lessons.pictures import nb10 as case_mechanisms


def trainer_of(letter):
    return broken(GUIDED[letter]).Trainer


def curves(ax):
    return {line.get_label(): list(line.get_ydata()) for line in ax.lines}


def test_lines_miss_their_own_problem_in_the_case_alone():
    axes = case_mechanisms.plot_pairing(trainer_of("A"), Trainer)
    dashed = [sum(line.get_linestyle() == "--" for line in ax.lines) for ax in axes]
    assert dashed == [4, 0]


def test_the_rate_of_the_case_is_at_zero_after_a_quarter_of_the_steps():
    drawn = curves(case_mechanisms.plot_rates(trainer_of("B"), Trainer))
    assert drawn["this case"].index(0) == 20 and drawn["repaired"].index(0) == 80


def test_padding_is_kept_in_the_case_alone():
    ax = case_mechanisms.plot_kept(trainer_of("C"), Trainer)
    orange = [p for p in ax.patches if p.get_facecolor()[:2] == (213 / 255, 94 / 255)]
    assert f": {len(orange)} padding" in alternative_text(ax.figure) and orange


def test_a_healthy_ratio_is_one_however_often_it_is_scored():
    drawn = curves(case_mechanisms.plot_twice(trainer_of("D"), Trainer))
    assert drawn["repaired"] == pytest.approx([1] * len(drawn["repaired"]), abs=1e-4)
    assert max(drawn["this case"]) > 2


def test_the_ratios_part_at_the_old_log_probability():
    token = token_with(old_log_probs=-1.0, ref_log_probs=-1.0, deltas=1.0)
    drawn = curves(case_mechanisms.plot_ratio(trainer_of("E"), Trainer, token))
    here, healthy = drawn["this case"], drawn["repaired"]
    assert here == sorted(here, reverse=True) and healthy == sorted(healthy)


@pytest.mark.slow
def test_the_reference_goes_with_the_policy_in_the_case():
    short = [partial(make, num_steps=3) for make in (trainer_of("F"), Trainer)]
    drawn = curves(case_mechanisms.plot_left_behind(*short))
    assert drawn['from "its reference"'] == [0, 0, 0]
    assert drawn["this case, from its start"][-1] > 0
