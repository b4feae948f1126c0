"""Which misconception explains a wrong answer: the one that behaves in the same way."""

from collections.abc import Callable, Iterator
from itertools import islice

from torch import Tensor

from grpo_course.classroom.check.exercise import TOLERANCE, Exercise
from grpo_course.classroom.check.mutations import (
    Mutant,
    first_mutants,
    pairs_of_mutants,
)
from grpo_course.classroom.check.outcome import (
    Outcome,
    Pair,
    agrees,
    run,
    same_gradients,
)

MOST_PAIRS = 1500  # looked at where one mistake does not explain: about a second


def name_mistake(exercise: Exercise, pairs: list[Pair], with_gradient: bool) -> str:
    """The words for a mistake that explains all cases, else two thirds of the wrong.

    A wrong name for a mistake misleads more than none.
    """
    wrong = [
        index
        for index, pair in enumerate(pairs)
        if not _same(pair.theirs, pair.ours, with_gradient, exercise.tolerance)
    ]
    first, partial, most = wrong[0], "", 0
    told = [index for index in wrong if pairs[index].theirs.error is None]
    for words, answer, by_hand in _candidates(exercise):
        same = _compare(answer, exercise, pairs, first, with_gradient)
        # That both fail says little: a mutant has to agree on a wrong value as well.
        if all(same) and (by_hand or any(same[index] for index in told)):
            return words
        explained = sum(same[index] for index in wrong)
        # Of a single number that is picked from a list, one is enough.
        enough = exercise.choice or 3 * explained >= 2 * len(wrong)
        if same[first] and first in told and enough and explained > most:
            partial, most = words, explained
    # A single wrong case that has a hint of its own needs no other name.
    if len(wrong) == 1 and pairs[first].case.hint:
        return ""
    return partial or _two_mistakes(exercise, pairs, first, with_gradient)


def words_for(exercise: Exercise, mutant: Mutant) -> str:
    """The exercise's own words for a mutant, else those of its rule."""
    own = exercise.words
    return own.get(mutant.change) or own.get(mutant.kind) or mutant.words


def _candidates(exercise: Exercise) -> Iterator[tuple[str, Callable, bool]]:
    """(words, answer, whether by hand); words of the exercise's own come first."""
    for mistake in exercise.mistakes:
        yield mistake.hint, mistake.answer, True
    found = first_mutants(exercise)
    named = [(words_for(exercise, mutant), mutant) for mutant in found]
    for words, mutant in sorted(named, key=lambda pair: pair[0] == pair[1].words):
        yield words, mutant.function, False


def _two_mistakes(
    exercise: Exercise, pairs: list[Pair], first: int, with_gradient: bool
) -> str:
    """Two mutations at once, if they explain every case; empty if none do.

    Only for tensors: among small whole numbers two of many would agree by chance.
    """
    if not isinstance(pairs[first].theirs.value, Tensor) or len(pairs) == 1:
        return ""
    for one, both in islice(pairs_of_mutants(exercise), MOST_PAIRS):
        if all(_compare(both.function, exercise, pairs, first, with_gradient)):
            words = words_for(exercise, one), words_for(exercise, both)
            same = words[0] == words[1]
            return words[0] if same else f"Two things. {words[0]} And: {words[1]}"
    return ""


def _compare(
    answer: Callable,
    exercise: Exercise,
    pairs: list[Pair],
    first: int,
    with_gradient: bool,
) -> list[bool]:
    """Where an answer does what theirs did. The first wrong case is looked at first:
    most answers differ there already, and need not be run on the others."""
    failed = [False] * len(pairs)
    other = run(answer, exercise, pairs[first].case)
    if not _same(pairs[first].theirs, other, with_gradient):
        return failed
    runs = [run(answer, exercise, pair.case) for pair in pairs]
    return [
        _same(pair.theirs, other, with_gradient)
        for pair, other in zip(pairs, runs, strict=True)
    ]


def _same(
    their: Outcome, other: Outcome, with_gradient: bool, tolerance: float = TOLERANCE
) -> bool:
    if their.error is not None or other.error is not None:
        return type(their.error) is type(other.error)
    if not agrees(their.value, other.value, tolerance):
        return False
    return not with_gradient or same_gradients(their.gradients, other.gradients)
