"""Generated problems: right, repeatable, and with splits that do not leak."""

import re
from itertools import product

import pytest

from grpo_course.gsm8k import (
    HELD_OUT_SCENES,
    SPLITS,
    TRAINING_SCENES,
    compute,
    fact_key,
    make_problems,
    pool_of,
    problem_key,
    work_out,
)

HELD_OUT_SPLITS = [split for split in SPLITS if split != "train"]


def every_problem(pool: str) -> list[tuple]:
    """Operations and operands of every problem of a pool, by enumeration."""
    found = []
    for steps in (1, 2):
        for kind in product("+-", repeat=steps):
            for numbers in product(range(1, 10), repeat=steps + 1):
                results = [compute(*fact) for fact in work_out(kind, numbers)]
                if min(results) >= 0 and pool_of(kind, numbers) == pool:
                    found.append((kind, numbers))
    return found


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("split", SPLITS)
def test_same_arguments_same_problems(split: str) -> None:
    first, again = (make_problems(split, 20, seed=3) for _ in range(2))
    assert first == again
    assert first != make_problems(split, 20, seed=4)
    assert first[:5] == make_problems(split, 5, seed=3)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("operations", ["+-", "+-*"])
def test_solution_and_answer_are_right(split: str, operations: str) -> None:
    for problem in make_problems(split, 300, seed=0, operations=operations):
        expression = str(problem.operands[0])
        for sign, number in zip(problem.operations, problem.operands[1:], strict=True):
            expression = f"({expression}{sign}{number})"
        assert int(problem.answer) == eval(expression) >= 0
        *lines, last = problem.solution.split("\n")
        assert last == f"#### {problem.answer}"
        for line in lines:
            left, mark, right = re.fullmatch(r"(.+)=<<(.+)>>(\d+)", line).groups()
            assert mark == f"{left}={right}" and eval(left) == int(right)
        numbers = [int(number) for number in re.findall(r"\d+", problem.question)]
        assert sorted(numbers) == sorted(problem.operands)


def test_both_numbers_of_steps_and_every_kind_are_there() -> None:
    kinds = {problem.kind for problem in make_problems("train", 500, seed=0)}
    assert kinds == {"+", "-", "++", "+-", "-+", "--"}
    three = make_problems("train", 20, seed=0, steps=(3,))
    assert {len(problem.operations) for problem in three} == {3}


@pytest.mark.parametrize("split", ["validation", "unseen_problems", "unseen_facts"])
def test_operations_and_operands_are_disjoint_from_training(split: str) -> None:
    training = {problem_key(*problem) for problem in every_problem("train")}
    held_out = {problem_key(*problem) for problem in every_problem(split)}
    assert training and held_out and not training & held_out
    for problem in make_problems(split, 300, seed=1):
        assert problem_key(problem.operations, problem.operands) in held_out


def test_validation_is_disjoint_from_what_is_reported() -> None:
    keys = [
        {problem_key(*problem) for problem in every_problem(split)}
        for split in ("validation", "unseen_problems", "unseen_facts")
    ]
    assert not (keys[0] & keys[1] or keys[0] & keys[2] or keys[1] & keys[2])


def test_no_held_out_fact_leaks_through_any_step() -> None:
    """Facts by enumeration, not by the rule that made the split."""
    known = {
        fact_key(fact)
        for split in ("train", "validation", "unseen_problems")
        for problem in every_problem(split)
        for fact in work_out(*problem)
    }
    for problem in make_problems("unseen_facts", 500, seed=2):
        assert any(fact_key(fact) not in known for fact in problem.facts)
    assert fact_key((3, "+", 4)) == fact_key((4, "+", 3))


def test_unseen_phrasings_are_training_problems_in_other_sentences() -> None:
    training = {problem_key(*problem) for problem in every_problem("train")}
    shape = re.compile(r"\d+")
    seen = {shape.sub("N", p.question) for p in make_problems("train", 5000, seed=0)}
    for problem in make_problems("unseen_phrasings", 300, seed=0):
        assert problem_key(problem.operations, problem.operands) in training
        assert shape.sub("N", problem.question) not in seen


def test_held_out_scenes_have_no_sentence_but_only_words_of_training() -> None:
    told = set().union(*(scene.sentences() for scene in TRAINING_SCENES))
    vocabulary = words(" ".join(told))
    for scene in HELD_OUT_SCENES:
        assert not scene.sentences() & told
        assert words(" ".join(scene.sentences())) <= vocabulary


@pytest.mark.slow
def test_every_split_has_every_kind_in_several_phrasings() -> None:
    for split in SPLITS:
        told: dict[str, set] = {}
        for problem in make_problems(split, 3000, seed=0):
            shape = re.sub(r"\d+|Mia|Tom|Ana|Ben|Sue|Leo", "N", problem.question)
            shape = re.sub(r"apples|coins|cards|pens|eggs|stars", "T", shape)
            told.setdefault(problem.kind, set()).add(shape)
        assert len(told) == 6
        assert min(map(len, told.values())) >= 8


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match=r"split='test' is not known.*'unseen_facts'"):
        make_problems("test", 1, seed=0)
    with pytest.raises(ValueError, match="operations='/' is not known"):
        make_problems("train", 1, seed=0, operations="+/")
    with pytest.raises(ValueError, match=r"operands\[1\]=2, but it must be at least 5"):
        make_problems("train", 1, seed=0, operands=(5, 2))
    with pytest.raises(ValueError, match="widen the range of operands"):
        make_problems("unseen_facts", 1, seed=0, operands=(3, 3))
