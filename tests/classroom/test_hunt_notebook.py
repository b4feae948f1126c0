"""The notebook of the hunt gives no cause away; its exercises agree with the hunt."""

import ast
from pathlib import Path

import nbformat
import pytest

from grpo_course.classroom.exercises import EXERCISES
from grpo_course.classroom.exercises.nb10_bug_hunt import (
    DECOYS,
    diagnosis,
    verdict_on,
)
from grpo_course.classroom.hunt.defects import CAUSES, DEFECTS
from grpo_course.classroom.hunt.roles import DIAGNOSED, GUIDED, HUNTED, REPAIRED

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "10_bug_hunt.ipynb"
CELLS = nbformat.read(NOTEBOOK, as_version=4).cells
SOURCES = [cell.source for cell in CELLS]
SOLVED = {DEFECTS[number].cause for number in GUIDED.values()}


def place_of(text):
    """The one cell that holds a text."""
    (place,) = [i for i, source in enumerate(SOURCES) if text in source]
    return place


def printed(cell):
    """What a cell shows: text and pictures' words."""
    outputs = cell.get("outputs", [])
    data = [o.get("text", "") + str(o.get("data", "")) for o in outputs]
    return " ".join(" ".join([*data, str(cell.metadata)]).split())


@pytest.mark.parametrize("letter", GUIDED)
def test_no_cell_above_the_guess_names_the_cause(letter):
    opened = place_of(f'open_case("{letter}")')
    asked = opened + 1
    assert "predict" in CELLS[asked].metadata.tags
    defect = DEFECTS[GUIDED[letter]]
    for cell in CELLS[: asked + 1]:
        told = cell.source + printed(cell)
        assert defect.cause not in told and defect.why not in told
    below = " ".join(SOURCES[asked + 1 :])
    assert f'"{defect.cause}"' in below


@pytest.mark.parametrize("letter", GUIDED)
def test_the_suspects_of_a_case_are_causes_and_the_guilty_is_among_them(letter):
    asked = CELLS[place_of(f'"Case {letter}: whom do you accuse?"')]
    names = [each for each in CAUSES if f'"{each}"' in asked.source]
    assert len(names) == 4 and DEFECTS[GUIDED[letter]].cause in names


@pytest.mark.parametrize("number", [*DIAGNOSED, REPAIRED, *HUNTED])
def test_no_cause_of_an_open_case_stands_in_the_notebook(number):
    """But in solutions, in the list of all causes, and in the table at the end."""
    cause = DEFECTS[number].cause
    known = {"solution", "predict"}
    told = [
        cell.source
        for cell in CELLS
        if cause in cell.source and not known & {*cell.metadata.get("tags", [])}
    ]
    # A wrong accusation, the pair that hides, and the slider's example.
    allowed = {"loss negated twice", "end token left in the graded text"}
    allowed |= {"temperature missing from the scores"}
    assert not told or cause in allowed
    table = place_of("decision_table()")
    for cell in CELLS[:table]:
        names = [each for each in CAUSES if each in printed(cell)]
        pair = "pair.accuse" in cell.source or "case_e.accuse" in cell.source
        everything = len(names) == len(CAUSES)
        slider = "slide(" in cell.source or "harmless" in cell.source
        suspects = "predict" in cell.metadata.get("tags", []) and len(names) == 4
        assert cause not in names or pair or everything or slider or suspects


def test_the_cases_of_the_diagnosis_are_open_ones_that_no_other_exercise_uses():
    assert REPAIRED not in DIAGNOSED and not {*HUNTED} & {REPAIRED, *DIAGNOSED}
    complaints = SOURCES[place_of("for number in (")]
    (numbers,) = [
        ast.literal_eval(node.iter)
        for node in ast.walk(ast.parse(complaints))
        if isinstance(node, ast.For) and ast.unparse(node.target) == "number"
    ]
    assert numbers == DIAGNOSED
    assert f"fires for trainer {REPAIRED}." in SOURCES[place_of("Exercise 10.7")]


@pytest.mark.parametrize("number", DIAGNOSED)
def test_a_wrong_diagnosis_does_not_tell_the_right_name(judge, number):
    def one_wrong(asked):
        return "loss negated twice" if asked == number else diagnosis(asked)

    text = judge("diagnosis", one_wrong).text
    assert "'loss negated twice' would have shown" in text
    assert DEFECTS[number].first_look in text
    assert DEFECTS[number].cause not in text


def test_a_probe_is_told_that_it_returns_several_answers():
    with pytest.raises(TypeError, match="one yes or no"):
        verdict_on(lambda make: make().collect().mask, "healthy, as it is")
    assert verdict_on(lambda make: None, "healthy, as it is") is None


def test_every_decoy_is_used():
    used = {case.args.get("make_trainer") for each in EXERCISES for case in each.cases}
    assert {*DECOYS} <= used
