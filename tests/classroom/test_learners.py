"""Wrong answers as learners write them: none is accepted, and most are named."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
LEARNERS = runpy.run_path(str(FOLDER / "learners.py"))["LEARNERS"]
FORMS = runpy.run_path(str(FOLDER / "right_forms.py"))
HELD_OUT = runpy.run_path(str(FOLDER / "held_out.py"))["HELD_OUT"]


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
