"""Mutants of the solutions: what they are, that they are refused, and their words."""

import ast
from functools import cache

import pytest
import torch

from grpo_course.classroom.check.diagnosis import diagnose, judged
from grpo_course.classroom.check.exercise import Case, Exercise
from grpo_course.classroom.check.misconception import words_for
from grpo_course.classroom.check.mutations import ARROW, first_mutants
from grpo_course.classroom.check.rules import RULES
from grpo_course.classroom.exercises import EXERCISES

every_exercise = pytest.mark.parametrize(
    "exercise", EXERCISES, ids=lambda exercise: exercise.name
)


@cache
def accepted_of(name):
    """The mutants of an exercise that its cases let through."""
    exercise = next(each for each in EXERCISES if each.name == name)
    mutants = first_mutants(exercise)
    return [each for each in mutants if not judged(exercise, each.function)[0]]


def names(mutant):
    return {mutant.change, mutant.kind}


@pytest.mark.slow
@every_exercise
def test_every_mutant_is_refused_or_listed_as_equivalent(exercise):
    mutants = first_mutants(exercise)
    assert len(mutants) > 3
    accepted = accepted_of(exercise.name)
    unlisted = [each for each in accepted if not names(each) & {*exercise.equivalent}]
    assert not [(each.kind, each.change) for each in unlisted]
    listed = {name for each in accepted for name in names(each)}
    assert exercise.equivalent.keys() <= listed, "listed, and refused or never made"


@pytest.mark.slow
@every_exercise
def test_words_of_an_exercise_s_own_belong_to_a_mutant_that_is_refused(exercise):
    found = {
        name
        for mutant in first_mutants(exercise)
        for name in (words_for(exercise, mutant), mutant.change, mutant.kind)
        if mutant not in accepted_of(exercise.name)
    }
    for name, words in exercise.words.items():
        assert words in found and (ARROW in name or name in found), name


def two_sums(rewards, weights):
    return (rewards * weights).sum(-1) - rewards.mean(dim=-1)


EXAMPLE = Exercise(
    key="99.2",
    name="two_sums",
    solution=two_sums,
    cases=(
        Case(
            "two rows",
            {
                "rewards": torch.tensor([[1.0, 2.0, 4.0], [0.5, 3.0, 8.0]]),
                "weights": torch.tensor([[0.5, 1.0, 2.0], [3.0, 0.1, 1.0]]),
            },
        ),
        Case(
            "one row",
            {
                "rewards": torch.tensor([[7.0, 3.0]]),
                "weights": torch.tensor([[2.0, 5]]),
            },
        ),
    ),
    words={
        "whole": "everything at once",
        "A * B => A ** B": "a power",
    },
    insight="",
    axes={"return": "batch"},
)


def test_a_mutant_is_the_solution_with_one_piece_changed():
    changes = {mutant.change: mutant for mutant in first_mutants(EXAMPLE)}
    mutant = changes["(rewards * weights).sum(dim=0)"]
    expected = two_sums.__code__.co_varnames
    assert mutant.function.__code__.co_varnames == expected
    rewards, weights = torch.ones(3, 3) * 2, torch.ones(3, 3)
    assert mutant.function(rewards, weights).tolist() == [4.0, 4.0, 4.0]
    assert "rewards ** weights" in changes and "weights" in changes
    for each in changes.values():
        assert ast.unparse(each.tree) != ast.unparse(ast.parse("pass"))


ANSWERS = [
    (lambda r, w: torch.einsum("ij,ij->i", r, w) - r.mean(), "everything at once"),
    (lambda r, w: (r**w).sum(-1) - r.mean(-1), "a power"),
    (lambda r, w: r.mean(-1) - (r * w).sum(-1), "wrong way round"),
    (lambda r, w: (r * w).mean(-1) - r.mean(-1), "mean where a sum is asked for"),
    (lambda r, w: (r.sin() + w.cos()).sum(-1), ""),
    # Two mistakes: the sum is a mean, and the difference is turned.
    (lambda r, w: r.mean(-1) - (r * w).mean(-1), "Two things."),
]


@pytest.mark.parametrize(("answer", "words"), ANSWERS)
def test_an_answer_that_behaves_like_a_mutant_gets_its_words(answer, words):
    hint = diagnose(EXAMPLE, answer).hint
    assert words in hint and bool(words) == bool(hint)


def test_two_thirds_of_the_wrong_cases_are_needed():
    rows = [torch.tensor([[1.0, 2.0, 4.0 + i], [0.5, 3.0, 8.0]]) for i in range(4)]
    cases = tuple(
        Case(f"case {i}", {"rewards": row, "weights": row / 2})
        for i, row in enumerate(rows)
    )
    exercise = Exercise(**{**vars(EXAMPLE), "cases": cases})

    def like_a_mutant_in(some):
        def answer(rewards, weights):
            wrong = (rewards * weights).sum(-1) - rewards.mean()
            number = int(rewards[0, 2].item() - 4)
            return wrong if number in some else wrong.sin() * 7

        return answer

    assert diagnose(exercise, like_a_mutant_in({0, 1, 2})).hint == "everything at once"
    assert diagnose(exercise, like_a_mutant_in({0, 1})).hint != "everything at once"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.kind)
def test_a_rule_is_met_by_some_exercise(rule):
    """A rule that fits no solution of the course would be dead weight."""
    kinds = {each.kind for exercise in EXERCISES for each in first_mutants(exercise)}
    assert rule.kind in kinds


def test_rules_have_words_in_sentences_and_kinds_of_their_own():
    kinds = [rule.kind for rule in RULES]
    assert len(kinds) == len(set(kinds))
    assert [rule.kind for rule in RULES if not rule.words] == [
        "axis left",
        "detach lost",
    ]
    for rule in RULES:
        assert len(rule.words) < 200 and not rule.words.rstrip(".?").endswith(" ")
