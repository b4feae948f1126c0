"""Wrong answers as learners write them: each must get the hint that names it."""

import inspect
import runpy
from pathlib import Path

import pytest

from grpo_course.classroom.check.diagnosis import diagnose
from grpo_course.classroom.check.exercise import Exercise
from grpo_course.classroom.exercises import EXERCISES, MODULES

RIGHT = "is right"  # what check prints of a right answer
FOLDER = Path(__file__).parent / "planted"
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def planted(path):
    """(exercise, words, answer) of every answer in a file of `planted/`."""
    return [
        (name, words, answer)
        for name, answers in runpy.run_path(str(path)).items()
        if inspect.isgeneratorfunction(answers)
        for words, answer in answers()
    ]


PLANTED = {path.stem: planted(path) for path in sorted(FOLDER.glob("*.py"))}
ANSWERS = [each for answers in PLANTED.values() for each in answers]
WRONG = [each for each in ANSWERS if each[1] != RIGHT]
WRITTEN_DIFFERENTLY = [each for each in ANSWERS if each[1] == RIGHT]


@pytest.mark.parametrize(("name", "words", "answer"), WRONG)
def test_a_planted_mistake_gets_its_hint(judge, name, words, answer):
    verdict = judge(name, answer)
    assert verdict.text.startswith("[x]"), verdict.text
    assert words in verdict.advice
    assert verdict.returned is not answer


@pytest.mark.parametrize(("name", "words", "answer"), WRITTEN_DIFFERENTLY)
def test_a_right_answer_written_differently_is_right(judge, name, words, answer):
    verdict = judge(name, answer)
    assert verdict.text.startswith("[v]") and words in verdict.text, verdict.text
    assert verdict.returned is answer


def chapter_name(module):
    return module.__name__.rpartition(".")[2]


@pytest.mark.parametrize("module", MODULES, ids=chapter_name)
def test_each_exercise_has_three_hints_and_a_right_answer_planted(module):
    exercises = [each for each in vars(module).values() if isinstance(each, Exercise)]
    hints = {exercise.name: set() for exercise in exercises}
    for name, words, _ in PLANTED[chapter_name(module)]:
        hints[name].add(words)
    # Different hints, or one mistake would stand for three.
    few = {n: words for n, words in hints.items() if len(words - {RIGHT}) < 3}
    assert not few
    assert not [n for n, words in hints.items() if RIGHT not in words]


@pytest.mark.parametrize("module", MODULES, ids=chapter_name)
def test_a_module_is_named_after_the_notebook_of_its_exercises(module):
    notebook = chapter_name(module).removeprefix("nb")
    assert (NOTEBOOKS / f"{notebook}.ipynb").exists()
    keys = [each.key for each in vars(module).values() if isinstance(each, Exercise)]
    assert {int(key.split(".")[0]) for key in keys} == {int(notebook[:2])}


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_catalogue_tells_its_own_mistakes_apart(exercise):
    for mistake in exercise.mistakes:
        assert diagnose(exercise, mistake.answer).hint == mistake.hint


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_course_answers_its_own_exercise(exercise):
    assert diagnose(exercise, exercise.solution) is None


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_course_s_own_answer_takes_the_stub_s_arguments(exercise):
    """By name too: it stands in for the learner's function in all later cells."""
    wanted = list(exercise.cases[0].args)
    parameters = list(inspect.signature(exercise.solution).parameters)
    assert parameters[: len(wanted)] == wanted


def test_keys_and_names_are_unique():
    for attribute in ("key", "name", "solution"):
        values = [getattr(exercise, attribute) for exercise in EXERCISES]
        assert len(values) == len(set(values))


def test_the_exercises_come_in_the_order_of_the_course():
    keys = [tuple(map(int, exercise.key.split("."))) for exercise in EXERCISES]
    assert keys == sorted(keys) and keys[0] == (0, 1)
