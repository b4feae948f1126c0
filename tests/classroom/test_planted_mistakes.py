"""Wrong answers as learners write them: each must get the hint that names it."""

import runpy
from pathlib import Path

import pytest

from grpo_course.classroom.check.diagnosis import diagnose
from grpo_course.classroom.exercises import EXERCISES

# One file of data for each group of notebooks; each has a PLANTED and a LOOPS.
ANSWERS = [
    runpy.run_path(str(path))
    for path in sorted((Path(__file__).parent / "planted").glob("*.py"))
]
PLANTED = {n: wrong for data in ANSWERS for n, wrong in data["PLANTED"].items()}
LOOPS = {name: right for data in ANSWERS for name, right in data["LOOPS"].items()}


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [(name, *plant) for name, plants in PLANTED.items() for plant in plants],
)
def test_a_planted_mistake_gets_its_hint(judge, name, body, words):
    verdict = judge(name, body)
    assert verdict.text.startswith("[x]"), verdict.text
    assert words in verdict.text
    assert verdict.returned is not verdict.function


@pytest.mark.parametrize("name", LOOPS)
def test_a_right_answer_written_differently_is_right(judge, name):
    verdict = judge(name, LOOPS[name])
    assert verdict.text.startswith("[v]"), verdict.text
    assert verdict.returned is verdict.function


def test_every_exercise_has_three_planted_mistakes_and_a_loop():
    names = {exercise.name for exercise in EXERCISES}
    assert names == PLANTED.keys() == LOOPS.keys()
    # Different hints, or one mistake would stand for three.
    few = [n for n, plants in PLANTED.items() if len({w for _, w in plants}) < 3]
    assert not few


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_catalogue_tells_its_own_mistakes_apart(exercise):
    for mistake in exercise.mistakes:
        finding = diagnose(exercise, mistake.answer)
        assert (finding.state, finding.hint) == ("x", mistake.hint)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_course_answers_its_own_exercise(exercise):
    assert diagnose(exercise, exercise.solution).state == "v"


def test_keys_and_names_are_unique():
    for attribute in ("key", "name"):
        values = [getattr(exercise, attribute) for exercise in EXERCISES]
        assert len(values) == len(set(values))
