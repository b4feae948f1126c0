"""Wrong answers as learners write them: none is accepted, and most are named."""

import re
import runpy
from pathlib import Path

import pytest
import torch

from grpo_course.classroom.check.mutations import first_mutants
from grpo_course.classroom.exercises import EXERCISES

FOLDER = Path(__file__).parent
LEARNERS = runpy.run_path(str(FOLDER / "learners.py"))["LEARNERS"]
FORMS = runpy.run_path(str(FOLDER / "right_forms.py"))
HELD_OUT = runpy.run_path(str(FOLDER / "held_out.py"))["HELD_OUT"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answers", "share"), [(LEARNERS, 0.75), (HELD_OUT, 0.85)], ids=["seen", "held out"]
)
def test_no_wrong_answer_is_accepted_and_most_are_named(judge, answers, share):
    fitting = []
    for name, fits, answer in answers:
        verdict = judge(name, answer)
        assert verdict.text.startswith("[x]"), (name, fits, verdict.text)
        fitting.append(bool(re.search(fits, verdict.advice, re.IGNORECASE)))
    assert sum(fitting) > share * len(fitting)


@pytest.mark.parametrize(("name", "answer"), FORMS["RIGHT"])
def test_a_right_answer_of_unusual_form_is_accepted(judge, name, answer):
    verdict = judge(name, answer)
    assert verdict.text.startswith("[v]"), verdict.text


@pytest.mark.parametrize(("name", "answer"), FORMS["WRONG"])
def test_an_answer_that_is_wrong_in_rare_cases_only_is_refused(judge, name, answer):
    verdict = judge(name, answer)
    assert verdict.text.startswith("[x]"), verdict.text


def squeezed(answer, axis):
    return lambda *given: answer(*given).squeeze(axis)


def test_following_the_advice_to_squeeze_ends_at_a_right_answer(judge):
    """It is given only where the axis is left in every case, of any size elsewhere."""
    followed = set()
    for exercise in EXERCISES:
        for mutant in first_mutants(exercise):
            if mutant.kind != "axis left":
                continue
            advice = judge(exercise.name, mutant.function).advice
            if not (found := re.search(r"left: squeeze\((-?\d)\)", advice)):
                continue
            after = judge(exercise.name, squeezed(mutant.function, int(found[1])))
            assert after.text.startswith("[v]"), after.text
            followed.add(exercise.name)
    assert len(followed) > 2


def test_a_mean_left_open_is_no_axis_to_squeeze(judge):
    def answer(per_token, mask):
        kept = torch.where(mask, per_token, 0.0).sum(-1)
        return (kept / mask.sum(-1).clamp(min=1)).mean(-1)

    assert "squeeze" not in judge("masked_sequence_mean", answer).advice


def test_what_prints_alike_is_printed_in_full(judge):
    def answer(new, old, ref, deltas, beta):
        ratio, each = (new - old).exp(), deltas[..., None]
        gain = torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each)
        gap = ref - new
        return -gain.mean() + beta * (gap.expm1() - gap).mean() + 2e-5

    text = judge("inner_step_loss", answer).text
    yours, expected = re.findall(r"tensor\((-?[\d.]+)\)", text)
    assert yours != expected and f"{float(yours):.4g}" == f"{float(expected):.4g}"
