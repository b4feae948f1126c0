"""Countdown: reach a target from given numbers with + - *, each used exactly once.

A whole task in one file, to copy for one of your own: problems, rewards, settings.

    python3 -m grpo_course train --task countdown
"""

import ast
import operator
import random
from collections.abc import Sequence
from typing import ClassVar
from zlib import crc32

from pydantic import Field

from grpo_course.algorithm.settings import settings
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.task import Problem, TextTask, require_count
from grpo_course.language_model.template import (
    Completion,
    completion_texts,
    extract_answer,
    format_reward,
    in_template,
)

SYSTEM_PROMPT = """\
Write an expression that makes the target from the given numbers with + - * and
brackets, each number used once. First reason step by step between <think> and </think>.
Then write the expression, and nothing else, between <answer> and </answer>."""
SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
LONGEST = 100  # characters of an answer


def work_out(expression: str) -> tuple[int, list[int]]:
    """The value of an expression and the numbers in it; parsed, nothing of it is run.

    Raises ValueError for anything but whole numbers, + - * and brackets.
    """

    def walk(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            numbers.append(node.value)
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            return SIGNS[type(node.op)](walk(node.left), walk(node.right))
        raise ValueError("only whole numbers, + - * and brackets are read")

    numbers: list[int] = []
    if len(expression) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    try:
        return walk(ast.parse(expression.strip(), mode="eval").body), numbers
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("this is no expression") from None


def reaches_target(
    completions: Sequence[Completion], answer: Sequence[dict], **kwargs: object
) -> list[float]:
    """1.0 where the tagged answer makes the target of all the numbers, else 0.0."""
    pairs = zip(completion_texts(completions), answer, strict=True)
    return [float(solves(extract_answer(text) or "", **gold)) for text, gold in pairs]


def solves(expression: str, numbers: Sequence[int], target: int) -> bool:
    """Whether it makes the target of all the numbers."""
    try:
        value, used = work_out(expression.partition("=")[0])
    except ValueError:
        return False
    return value == target and sorted(used) == sorted(numbers)


@settings()
class Countdown(TextTask):
    """Puzzles that have a solution; the splits differ in numbers and target."""

    numbers: int = Field(3, ge=2, le=6)  # how many are given
    largest: int = Field(9, ge=2)  # of the numbers

    rewards: ClassVar = {
        "accuracy": (reaches_target, 1),
        "format": (format_reward, 0.2),
    }
    presets: ClassVar = {"laptop": GRPOConfig(task="countdown")}

    def problems(self, split: str, count: int | None, seed: int) -> list[Problem]:
        """`count` different puzzles of "train", "validation" or "test"."""
        rng, made = random.Random(f"{split} {seed}"), {}
        for _ in range(1000 * require_count(count)):
            problem = self.draw(rng)
            key = f"{sorted(problem.answer['numbers'])} {problem.answer['target']}"
            share = crc32(key.encode()) % 10
            if {0: "test", 1: "validation"}.get(share, "train") == split:
                made[problem.question] = problem
            if len(made) == count:
                return list(made.values())
        raise ValueError(f"{self} has fewer than {count} puzzles for {split!r}.")

    def draw(self, rng: random.Random) -> Problem:
        """One puzzle, made from its solution."""
        numbers = [rng.randint(1, self.largest) for _ in range(self.numbers)]
        first, *rest = numbers
        solution = str(first) + "".join(f"{rng.choice('+-*')}{n}" for n in rest)
        target, _ = work_out(solution)
        given = rng.sample(numbers, len(numbers))
        question = f"Make {target} of {' '.join(map(str, given))}."
        gold = {"numbers": given, "target": target}
        return Problem(question, gold, f"{solution}={target}")

    def gold(self, problem: Problem) -> str:
        """The solution, worked out and said."""
        return in_template(problem.solution, problem.solution.partition("=")[0])
