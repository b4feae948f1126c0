"""Careless demonstrations: a result is off by one, and the rest follows from it.

A model that learns from them knows its sums, but loosely: now and then it slips as
its teachers did. What it does most often is still right, so there is something that
a reward can make more likely.
"""

import random
from dataclasses import replace

from grpo_course.gsm8k.problems import Problem, compute


def with_slip(problem: Problem, rng: random.Random) -> Problem:
    """The made problem with one result off by one; the later ones follow from it.

    Its solution has no calculator marks; a result that would be negative goes up.
    Raises ValueError for a problem that was not made by rule.
    """
    if not problem.operations:
        raise ValueError(
            f"problem {problem.question[:40]!r} was not made by rule, so its steps are "
            "not known. Slips are for make_problems: set warm_start_slips=0."
        )
    step, change = rng.randrange(len(problem.operations)), rng.choice((-1, 1))
    results = slipped(problem, step, change)
    if min(result for *_, result in results) < 0:
        results = slipped(problem, step, 1)
    lines = [f"{a}{operation}{b}={result}" for a, operation, b, result in results]
    answer = str(results[-1][-1])
    solution = "\n".join([*lines, f"#### {answer}"])
    return replace(problem, solution=solution, answer=answer)


def slipped(problem: Problem, step: int, change: int) -> list[tuple]:
    """Each sum with its result, where `step` is off by `change`: (3, "+", 4, 8)."""
    value, results = problem.operands[0], []
    for i, operation in enumerate(problem.operations):
        operand = problem.operands[i + 1]
        result = compute(value, operation, operand) + (change if i == step else 0)
        results.append((value, operation, operand, result))
        value = result
    return results
