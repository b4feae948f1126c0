"""The decision table says what the matrix measured."""

import inspect

import pytest

from grpo_course.classroom.hunt.broken import broken
from grpo_course.classroom.hunt.cases import Case
from grpo_course.classroom.hunt.debrief import stage_of
from grpo_course.classroom.hunt.defects import CAUSES, number_of
from grpo_course.classroom.hunt.findings import course_matrix
from grpo_course.classroom.hunt.judge import SILENT, ask
from grpo_course.classroom.hunt.properties import COURSE_PROBES, PROPERTIES
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.classroom.hunt.table import advice, decision_table

ROWS = {row.cause: row for row in advice()}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_probe_of_a_row_fires_for_its_cause_and_for_no_healthy_trainer(cause):
    name = ROWS[cause].probes[0]
    recorded = course_matrix()[name]
    assert number_of(cause) in recorded.found() and not recorded.alarms()
    assert ask(COURSE_PROBES[name], broken(number_of(cause)).Trainer) != SILENT
    assert ask(COURSE_PROBES[name], Trainer) == SILENT


def test_a_row_lists_all_probes_that_fire():
    for cause, row in ROWS.items():
        fired = [
            name
            for name, recorded in course_matrix().items()
            if number_of(cause) in recorded.found()
        ]
        assert sorted(row.probes) == sorted(fired)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_stage_holds_a_line_that_differs(cause):
    module = Case("case", (number_of(cause),)).module
    theirs, ours = (
        inspect.getsource(getattr(kind, ROWS[cause].stage))
        for kind in (module.Trainer, Trainer)
    )
    assert theirs != ours


def test_the_table_has_a_line_for_each_cause():
    text = decision_table()
    assert all(f"| {cause} |" in text for cause in CAUSES)
    assert text.count("\n") == len(CAUSES) + 1
    assert all(asked.says in text for asked in PROPERTIES.values())
    assert stage_of("num_tokens = self.settings.micro_batch_size") == "update"
