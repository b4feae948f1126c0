"""Which misconception explains a wrong answer: the one that behaves in the same way."""

from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic

from torch import Tensor

from grpo_course.classroom.old_check.exercise import TOLERANCE, Exercise
from grpo_course.classroom.old_check.mutations import (
    Mutant,
    first_mutants,
    pairs_of_mutants,
)
from grpo_course.classroom.old_check.outcome import (
    Outcome,
    Pair,
    agrees,
    run,
    same_gradients,
    tolerance_of,
)

MOST_PAIRS = 600  # looked at where one mistake does not explain: a moment
PATIENCE = 6.0  # seconds for them: an answer that trains a model takes longer


def name_mistake(exercise: Exercise, pairs: list[Pair], with_gradient: bool) -> str:
    """The words for a mistake that explains all cases, else two thirds of the wrong.

    A wrong name for a mistake misleads more than none: words of a rule for all stand
    back where the first wrong case has a hint, or words of the exercise's own fit.
    """
    wrong = _wrong(exercise, pairs, with_gradient)
    if not wrong:  # only the type is
        return ""
    hint, value = pairs[wrong[0]].case.hint, pairs[wrong[0]].theirs.value
    own, fits_all = _best(_own(exercise), exercise, pairs, wrong, with_gradient)
    if fits_all:
        return own
    if len(wrong) == 1 and hint:
        return ""
    # Among a few whole numbers or words a mutant may agree by chance.
    many_agree = not isinstance(value, Tensor)
    if many_agree and (own or hint):
        return own
    if with_gradient and not own and _is_cut(pairs[wrong[0]]):
        return ""  # general advice names the argument
    shared, fits_all = _best(_shared(exercise), exercise, pairs, wrong, with_gradient)
    return shared if fits_all else own or ("" if many_agree else shared)


def _best(
    candidates: Iterator[tuple[str, Callable, bool]],
    exercise: Exercise,
    pairs: list[Pair],
    wrong: list[int],
    with_gradient: bool,
) -> tuple[str, bool]:
    """The words that explain most, and whether they explain every case."""
    first, partial, most = wrong[0], "", 0
    told = [index for index in wrong if pairs[index].theirs.error is None]
    for words, answer, by_hand in candidates:
        same = _compare(answer, exercise, pairs, first, with_gradient)
        # That both fail says little: a mutant has to agree on a wrong value as well.
        if all(same) and (by_hand or any(same[index] for index in told)):
            return words, True
        explained = sum(same[index] for index in wrong)
        # Of a single number that is picked from a list, one is enough.
        enough = exercise.choice or 3 * explained >= 2 * len(wrong)
        # Where theirs is right, the mistake must not be made either.
        enough = enough and (exercise.choice or 3 * sum(same) >= 2 * len(same))
        if same[first] and first in told and enough and explained > most:
            partial, most = words, explained
    return partial, False


def _is_cut(pair: Pair) -> bool:
    """No gradient at all where one is expected."""
    return not any(grad.any() for grad in pair.theirs.gradients.values())


def _wrong(exercise: Exercise, pairs: list[Pair], with_gradient: bool) -> list[int]:
    """The places of the cases that came out wrong."""
    return [
        index
        for index, pair in enumerate(pairs)
        if not _same(
            pair.theirs, pair.ours, with_gradient, tolerance_of(exercise, pair.case)
        )
    ]


def name_two_mistakes(
    exercise: Exercise, pairs: list[Pair], with_gradient: bool
) -> str:
    """Two mutations at once, if they explain every case; empty if none do.

    Only for tensors: among small whole numbers two of many would agree by chance.
    """
    first = _wrong(exercise, pairs, with_gradient)[0]
    if not isinstance(pairs[first].theirs.value, Tensor) or len(pairs) == 1:
        return ""
    start = monotonic()
    for one, both in islice(pairs_of_mutants(exercise), MOST_PAIRS):
        if monotonic() - start > PATIENCE:
            break
        if all(_compare(both.function, exercise, pairs, first, with_gradient)):
            words = words_for(exercise, one), words_for(exercise, both)
            same = words[0] == words[1]
            return words[0] if same else f"Two things. {words[0]} And: {words[1]}"
    return ""


def words_for(exercise: Exercise, mutant: Mutant) -> str:
    """The exercise's own words for a mutant, else those of its rule."""
    own = exercise.words
    return own.get(mutant.change) or own.get(mutant.kind) or mutant.words


def _own(exercise: Exercise) -> Iterator[tuple[str, Callable, bool]]:
    """(words, answer, whether by hand) of what has words of the exercise's own."""
    for mistake in exercise.mistakes:
        yield mistake.hint, mistake.answer, True
    for mutant in first_mutants(exercise):
        words = words_for(exercise, mutant)
        if words != mutant.words or mutant.kind == "own":
            yield words, mutant.function, False


def _shared(exercise: Exercise) -> Iterator[tuple[str, Callable, bool]]:
    """The same of mutants that have only the words of their rule."""
    for mutant in first_mutants(exercise):
        if words_for(exercise, mutant) == mutant.words and mutant.kind != "own":
            yield mutant.words, mutant.function, False


def _compare(
    answer: Callable,
    exercise: Exercise,
    pairs: list[Pair],
    first: int,
    with_gradient: bool,
) -> list[bool]:
    """Where an answer does what theirs did. The first wrong case is looked at first:
    most answers differ there already, and need not be run on the others."""

    def alike(index: int) -> bool:
        other = run(answer, exercise, pairs[index].case)
        return _same(pairs[index].theirs, other, with_gradient, exercise.tolerance)

    if not alike(first):
        return [False] * len(pairs)
    return [alike(index) for index in range(len(pairs))]


def _same(
    their: Outcome, other: Outcome, with_gradient: bool, tolerance: float = TOLERANCE
) -> bool:
    if their.error is not None or other.error is not None:
        return type(their.error) is type(other.error)
    if not agrees(their.value, other.value, tolerance):
        return False
    return not with_gradient or same_gradients(their.gradients, other.gradients)
