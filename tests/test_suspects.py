"""The inquiry of notebook 02 agrees with its numbers, and says what is missing."""

import pytest
import torch

from grpo_course.lessons.suspects import judge_suspects

USUAL = torch.tensor([0.3, 0.6, 0.3, 0.6])
ENDS = {"time": USUAL + 0.01 * torch.tensor([1.0, -1.0, 1.0, -1.0])}
ENDS |= {"noise": USUAL + 0.3, "step": USUAL + torch.tensor([0.2, 0.3, 0.2, 0.3])}
ENDS |= {"worse": USUAL - 0.2}
KNOBS = {"time": {"a": 1}, "noise": {"b": 2}, "step": {"c": 3}, "worse": {"d": 4}}


def say(capsys, guilty, ends=ENDS, **knobs):
    closed = judge_suspects(KNOBS | knobs, ENDS | ends, USUAL, guilty)
    return closed, " ".join(capsys.readouterr().out.split())


def test_a_case_is_closed_where_the_accused_are_those_whose_change_helps(capsys):
    closed, told = say(capsys, ["noise", "step"])
    assert closed and "Guilty: noise, step. No help was seen from: time, worse" in told
    assert "worse: 0.450 -> 0.250, a change of -0.200 ± 0.000. It harms." in told


@pytest.mark.parametrize(
    "guilty, changed, told",
    [
        (["noise"], {}, "convict 'step', and you do not name it"),
        (["noise", "step", "time"], {}, "accuse 'time', and your own numbers do not"),
        (["nobody"], {}, "No experiment is called 'nobody'"),
        (["step"], {"noise": {"b": 2, "c": 3}, "time": {}}, "noise: two things were"),
        (["step"], {"noise": {}, "time": {}}, "noise: nothing was changed"),
        ([], {"noise": {}, "step": {}}, "that show something: 2."),
        ([], {"noise": {"d": 1}, "step": {"d": 2}}, "they change: 2. The case"),
    ],
)
def test_a_case_stays_open_and_says_why(capsys, guilty, changed, told):
    closed, said = say(capsys, guilty, **changed)
    assert not closed and told in said


def test_what_moves_no_number_is_no_experiment_and_one_has_to_help(capsys):
    same = dict.fromkeys(("noise", "step"), USUAL)
    assert "every number is what it was" in say(capsys, [], same)[1]
    worse = {name: USUAL - 0.1 for name in ("noise", "step")}
    assert "Nothing has helped yet" in say(capsys, [], worse)[1]
