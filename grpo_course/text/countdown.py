"""Countdown: reach a target from given numbers with + - *, each used exactly once.

A whole task in one file, to copy for one of your own: problems, rewards, settings.

    python3 -m grpo_course train --task countdown
"""

import ast
import operator
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from grpo_course.checks import require_known, settings
from grpo_course.text.responses import (
    Completion,
    extract_answer,
    format_reward,
    graded,
    in_template,
)
from grpo_course.text.tasks import Problem, TextTask, require_count, split_of

SIGNS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
READ = re.compile(r"[0-9+*() -]{1,100}")  # no name, no call, nothing long
TYPED = str.maketrans("×⋅·−–", "***--")  # other signs for the same
SPLITS = ("test", "train", "validation")
MOST_MISSES = 10_000  # draws in a row without a new puzzle: then there are no more


def work_out(expression: str) -> tuple[int, list[int]]:
    """The value of an expression and the numbers in it; nothing of it is run."""

    def walk(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            numbers.append(node.value)
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
            return SIGNS[type(node.op)](walk(node.left), walk(node.right))
        raise ValueError("a sign stands between two numbers or brackets")

    numbers: list[int] = []
    expression = expression.translate(TYPED)
    if not READ.fullmatch(expression):
        raise ValueError("only a few numbers, + - * and brackets are read")
    try:
        return walk(ast.parse(expression.strip(), mode="eval").body), numbers
    except SyntaxError:
        raise ValueError("this is no expression") from None


def meaning(completion: str) -> tuple[int, ...] | None:
    """The value of the tagged answer and its numbers, in order; None if it is none."""
    try:
        value, used = work_out(extract_answer(completion) or "")
    except ValueError:
        return None
    return value, *sorted(used)


def solves(completion: str, gold: dict) -> bool:
    """Whether the tagged answer makes the target of all the numbers."""
    return meaning(completion) == (gold["target"], *sorted(gold["numbers"]))


def reaches_target(
    completions: Sequence[Completion], answer: Sequence[dict], **kwargs: object
) -> list[float]:
    """1.0 where the tagged answer makes the target of all the numbers, else 0.0."""
    return graded(solves, completions, answer)


reaches_target.meaning = meaning  # type: ignore[attr-defined]  # 3+4 is 4+3


@dataclass(frozen=True)
class Puzzle(Problem):
    """One problem; the order of its numbers does not make it another."""

    @property
    def group(self) -> str:
        """Numbers and target."""
        return f"{sorted(self.answer['numbers'])} {self.answer['target']}"


@settings()
class Countdown(TextTask[Puzzle]):
    """Puzzles that have a solution; no two splits share one."""

    numbers: int = Field(default=3, ge=2, le=6)  # how many are given
    largest: int = Field(default=9, ge=2, le=99)  # of the numbers

    rewards: ClassVar = {
        "accuracy": (reaches_target, 1.0),
        "format": (format_reward, 0.2),
    }
    # Two numbers: what a small model can learn. A longer warm start alone would do it.
    presets: ClassVar = {
        "pairs": {
            "task_settings": {"numbers": 2, "largest": 20},
            "warm_start_steps": 150,
            "learning_rate": 1e-3,
        }
    }

    def problems(self, split: str, count: int | None, seed: int) -> list[Puzzle]:
        """At most `count` different puzzles of "train", "validation" or "test"."""
        require_known("split", split, SPLITS)
        wanted, rng, misses = require_count(count), random.Random(f"{split} {seed}"), 0
        made: dict[str, Puzzle] = {}
        while len(made) < wanted and misses < MOST_MISSES:
            problem, misses = self.draw(rng), misses + 1
            if split_of(problem.group) == split and problem.question not in made:
                made[problem.question], misses = problem, 0
        return list(made.values())

    def draw(self, rng: random.Random) -> Puzzle:
        """One puzzle, made from its solution."""
        numbers = [rng.randint(1, self.largest) for _ in range(self.numbers)]
        first, *rest = numbers
        solution = str(first) + "".join(f"{rng.choice('+-*')}{n}" for n in rest)
        target, shuffled = work_out(solution)[0], rng.sample(numbers, len(numbers))
        question = f"Make {target} of {' '.join(map(str, shuffled))}."
        return Puzzle(question, {"numbers": shuffled, "target": target}, solution)

    def gold(self, problem: Puzzle) -> str:
        """The solution, worked out and said."""
        worked = f"{problem.solution}={problem.answer['target']}"
        return in_template(worked, problem.solution)
