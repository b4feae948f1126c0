"""What the model is told, what a good response looks like, and careless ones.

A careless demonstration has a result that is off by one, and the rest follows from it.
A model that learns from such ones knows its sums, but loosely: now and then it slips as
its teachers did. What it does most often is still right, so there is something that a
reward can make more likely.
"""

import random
from dataclasses import replace

from grpo_course.algorithm.validation import unknown_name
from grpo_course.gsm8k.problems import WordProblem, compute
from grpo_course.language_model.template import (
    ANSWER,
    CLOSE_ANSWER,
    CLOSE_THINK,
    THINK,
    in_template,
)
from grpo_course.language_model.text_task import Problem

# For a model that was instructed already: it reads, so tell it.
SYSTEM_PROMPT = """\
Solve the problem. First reason step by step between <think> and </think>. Then write \
the final number, and nothing else, between <answer> and </answer>.

Example
Problem: A box holds 12 pencils. How many pencils do 3 boxes hold?
<think>
Each box holds 12 pencils, so 3 boxes hold 3 * 12 = 36 pencils.
</think>
<answer>36</answer>"""

# For a model that starts from nothing: every token of a prompt costs time.
SHORT_SYSTEM_PROMPT = "Think, then answer."

FORMS = ("full", "no_tags", "no_answer_tag", "no_think_tag")


def plain_thinking(solution: str) -> str:
    """A worked solution without its calculator marks <<...>> and its last #### line."""
    worked = solution.partition("####")[0].rstrip()
    first, *rest = worked.split("<<")
    return first + "".join(part.partition(">>")[2] for part in rest)


def demonstration(problem: Problem, form: str = "full") -> str:
    """The gold response to a problem: its own solution and answer, in one of FORMS.

    The forms leave out tags, never the right answer: it is always the last number.
    """
    thinking, answer = plain_thinking(problem.solution), problem.answer
    if form == "full":
        return in_template(thinking, answer)
    if form == "no_tags":
        return f"{thinking}\n{answer}"
    if form == "no_answer_tag":
        return f"{THINK}{thinking}{CLOSE_THINK}{answer}"
    if form == "no_think_tag":
        return f"{thinking}{ANSWER}{answer}{CLOSE_ANSWER}"
    raise unknown_name("form", form, FORMS)


def with_slip(problem: WordProblem, rng: random.Random) -> WordProblem:
    """The made problem with one result off by one; the later ones follow from it.

    Its solution has no calculator marks; a result that would be negative goes up.
    Raises ValueError for a problem that was not made by rule.
    """
    if not problem.operations:
        raise ValueError(
            f"problem {problem.question[:40]!r} was not made by rule, so its steps are "
            "not known. Slips are for make_problems: set slips=0."
        )
    step, change = rng.randrange(len(problem.operations)), rng.choice((-1, 1))
    results = slipped(problem, step, change)
    if min(result for *_, result in results) < 0:
        results = slipped(problem, step, 1)
    lines = [f"{a}{operation}{b}={result}" for a, operation, b, result in results]
    answer = str(results[-1][-1])
    solution = "\n".join([*lines, f"#### {answer}"])
    return replace(problem, solution=solution, answer=answer)


def slipped(problem: WordProblem, step: int, change: int) -> list[tuple]:
    """Each sum with its result, where `step` is off by `change`: (3, "+", 4, 8)."""
    value, results = problem.operands[0], []
    for i, operation in enumerate(problem.operations):
        operand = problem.operands[i + 1]
        result = compute(value, operation, operand) + (change if i == step else 0)
        results.append((value, operation, operand, result))
        value = result
    return results
