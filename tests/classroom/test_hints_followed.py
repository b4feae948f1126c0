"""Whoever follows a hint does not end at an accepted wrong answer.

A hint names one thing to change. So a mutant with a second change, or with something
done to its result, is what comes out. Whatever of all that `check` accepts has to agree
with the solution on inputs that no case holds: else the cases have a hole.
"""

import random
import runpy
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

import pytest
import torch
from torch import Tensor

from grpo_course.classroom.check.advice import advise
from grpo_course.classroom.check.diagnosis import judged
from grpo_course.classroom.check.exercise import Case, Exercise
from grpo_course.classroom.check.mutations import first_mutants, second_mutants
from grpo_course.classroom.check.outcome import (
    Pair,
    agrees,
    run,
    same_gradients,
    tolerance_of,
)
from grpo_course.classroom.exercises import EXERCISES

fresh_cases = runpy.run_path(str(Path(__file__).parent / "fresh_inputs.py"))[
    "fresh_cases"
]
CHANGED_AGAIN = 2  # mutants of each exercise; all their mutants were looked at once
LONG = "parts_make_no_difference"  # two trainers a case; looked at once, too
FOLLOWED = [exercise for exercise in EXERCISES if exercise.name != LONG]

# What hints ask to do, done to the result.
DONE_TO_IT = {
    "a minus": lambda value: -value,
    "the other way round": lambda value: ~value,
    "detach it": lambda value: value.detach(),
    "no NaN": lambda value: value.nan_to_num(),
    "an axis squeezed": lambda value: value.squeeze(-1),
    "another one squeezed": lambda value: value.squeeze(0),
    "an axis kept": lambda value: value[..., None],
    "axes exchanged": lambda value: value.transpose(-1, -2),
    "a mean over all": lambda value: value.mean(),
    "a mean": lambda value: value.mean(-1),
    "a mean of the batch": lambda value: value.mean(0),
    "a sum": lambda value: value.sum(-1),
    "log": lambda value: value.log(),
    "exp": lambda value: value.exp(),
    "log_softmax": lambda value: value.log_softmax(-1),
    "softmax": lambda value: value.softmax(-1),
    "a root": lambda value: value**0.5,
    "another dtype": lambda value: value.bool(),
    "stripped": lambda value: value.strip(),
}


def changed_once(exercise) -> Iterator:
    for mutant in first_mutants(exercise):
        yield mutant.change, mutant.function


def changed_twice(exercise) -> Iterator:
    mutants = first_mutants(exercise)
    for one in random.Random(0).sample(mutants, min(CHANGED_AGAIN, len(mutants))):
        for both in second_mutants(exercise, one):
            yield f"{one.change}, then {both.change}", both.function


def with_something_done(exercise) -> Iterator:
    """Only what makes the first value right: the others need not be run."""
    case = exercise.cases[0]
    ours = run(exercise.solution, exercise, case).value
    for mutant in first_mutants(exercise):
        value = run(mutant.function, exercise, case).value
        for name, do in DONE_TO_IT.items():
            with suppress(Exception):  # not every value can be treated in every way
                if agrees(do(value), ours, tolerance_of(exercise, case)):
                    yield f"{mutant.change}, then {name}", after(mutant.function, do)


def with_the_relation_undone(exercise) -> Iterator:
    """`Always 2 times the expected`, `Always 0.5 too large`: done as it says."""
    ours = [(case, run(exercise.solution, exercise, case)) for case in exercise.cases]
    for mutant in first_mutants(exercise):
        pairs = [Pair(c, run(mutant.function, exercise, c), our) for c, our in ours]
        failed = any(pair.theirs.error for pair in pairs)
        told = "" if failed else advise("values", pairs, 0)
        if told.startswith("Always "):
            yield f"{mutant.change}, {told}", after(mutant.function, undoing(told))


def undoing(told):
    size = float(told.split()[1])
    if "times" in told:
        return lambda value: value / size
    return lambda value: value - size if "large" in told else value + size


def after(answer, do):
    return lambda *given: do(answer(*given))


def same(exercise, case, ours, answer, slack=1.0):
    """Whether an answer does on a case what the solution did."""
    tolerance = slack * tolerance_of(exercise, case)
    theirs = run(answer, exercise, case)
    if theirs.error is not None or theirs.changed:
        return False
    values = agrees(theirs.value, ours.value, tolerance)
    return values and same_gradients(theirs.gradients, ours.gradients, tolerance)


def outcomes(exercise, cases):
    """(case, what the solution did) wherever it gives finite numbers."""
    for case in cases:
        ours = run(exercise.solution, exercise, case)
        finite = not isinstance(ours.value, Tensor) or ours.value.isfinite().all()
        if ours.error is None and finite:
            yield case, ours


def holes(exercise: Exercise, answers: Iterator) -> list[str]:
    """Answers that `check` accepts and that are wrong on fresh inputs."""
    known = list(outcomes(exercise, exercise.cases))
    fresh = list(outcomes(exercise, fresh_cases(exercise)))
    assert fresh or exercise.choice
    return [
        name
        for name, answer in answers
        if all(same(exercise, *each, answer) for each in known)  # soon refused, mostly
        if not judged(exercise, answer)[0]
        if not all(same(exercise, *each, answer, slack=10) for each in fresh)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("exercise", FOLLOWED, ids=lambda exercise: exercise.name)
def test_no_step_from_a_mutant_ends_at_an_accepted_wrong_answer(exercise):
    kinds = changed_once, changed_twice, with_something_done, with_the_relation_undone
    answers = chain.from_iterable(kind(exercise) for kind in kinds)
    assert not holes(exercise, answers)


def centered(rewards):
    return rewards - rewards.mean(dim=-1, keepdim=True)


def exercise_of(*rewards):
    cases = tuple(Case("", {"rewards": torch.tensor(each)}) for each in rewards)
    return Exercise("99.9", "centered", centered, cases, "", axes={"return": "b t"})


def test_cases_with_a_hole_are_found():
    """With two rewards of opposite signs the mean is zero and need not be taken off."""
    alone = exercise_of([[1.0, -1.0], [2.0, -2.0]])
    assert "rewards" in holes(alone, changed_once(alone))
    both = exercise_of([[1.0, -1.0], [2.0, -2.0]], [[3.0, 1.0, 5.0], [2.0, 0.0, 9.0]])
    assert not holes(both, changed_once(both))


def test_a_relation_that_holds_by_chance_is_found():
    exercise = exercise_of([[3.0, 1.0]], [[5.0, 3.0]])

    def answer(rewards):
        return 2 * torch.tensor([[1.0, -1.0]])

    undone = after(answer, undoing("Always 2 times the expected"))
    assert holes(exercise, [("undone", undone)]) == ["undone"]


def test_what_is_right_for_all_inputs_is_no_hole():
    exercise = exercise_of([[3.0, 1.0, 5.0]])
    turned = after(
        lambda rewards: rewards.mean(-1, True) - rewards, DONE_TO_IT["a minus"]
    )
    assert not judged(exercise, turned)[0]
    assert not holes(exercise, [("turned", turned)])
