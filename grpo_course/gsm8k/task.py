"""GSM8K as a task: its problems, real or generated, its rewards and its settings."""

import random
from math import inf
from typing import ClassVar

from pydantic import Field

from grpo_course.algorithm.settings import settings
from grpo_course.gsm8k.data import RUN_SPLITS, load_run_split
from grpo_course.gsm8k.presets import PRESETS, SMALLER_GPUS
from grpo_course.gsm8k.problems import (
    SPLITS,
    WordProblem,
    make_problems,
    require_choices,
)
from grpo_course.gsm8k.prompts import FORMS, demonstration, with_slip
from grpo_course.gsm8k.rewards import correctness_reward, length_reward, lenient_reward
from grpo_course.language_model.template import format_reward
from grpo_course.language_model.text_task import TextTask, require_count

GENERATED = "generated"
MADE_OF = ("operands", "operations", "steps")


@settings()
class GSM8K(TextTask[WordProblem]):
    """Word problems. Raises ValueError for settings that no problem fits."""

    # "generated", "gsm8k" (hub or GSM8K_DIR), or a folder with JSONL
    data: str = GENERATED
    # smallest and largest number in a generated problem
    operands: tuple[int, int] = Field(default=(1, 9), strict=False)
    operations: str = "+-"  # those in a generated problem, of + - *
    # operations in a generated problem; (1, 2, 2): two in three have two
    steps: tuple[int, ...] = Field(default=(1, 2), strict=False)
    # how often a demonstration has each of prompts.FORMS, as weights
    forms: tuple[float, ...] = Field(default=(3, 3, 3, 1), strict=False)
    # share of demonstrations with a wrong result
    slips: float = Field(default=0.0, ge=0, le=1)

    rewards: ClassVar = {
        "accuracy": (correctness_reward, 1.0),
        "lenient_accuracy": (lenient_reward, 0.0),
        "format": (format_reward, 0.2),
        "length_reward": (length_reward, 0.0),
    }
    measures: ClassVar = ("accuracy", "lenient_accuracy", "format")
    presets: ClassVar = PRESETS | SMALLER_GPUS

    def __post_init__(self) -> None:
        require_choices("train", self.operands, self.operations, self.steps)
        weights = self.forms
        if len(weights) != len(FORMS) or min(weights) < 0 or not 0 < sum(weights) < inf:
            raise ValueError(
                f"forms={weights}, but it must hold {len(FORMS)} weights, none below 0 "
                "and one above."
            )

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are; the first is the one to report."""
        if self.data != GENERATED:
            return RUN_SPLITS
        return ("unseen_problems", *(s for s in SPLITS if s != "unseen_problems"))

    def problems(self, split: str, count: int | None, seed: int) -> list[WordProblem]:
        """At most `count` problems of one split; GSM8K's own depend on no seed."""
        if self.data != GENERATED:
            path = None if self.data == "gsm8k" else self.data
            return load_run_split(split, path)[:count]
        made_of = {name: getattr(self, name) for name in MADE_OF}
        return make_problems(split, require_count(count), seed, **made_of)

    def gold(self, problem: WordProblem) -> str:
        """The problem's own solution and answer in the full form."""
        return demonstration(problem)

    def demonstration(self, problem: WordProblem, rng: random.Random) -> str:
        """Now and then with a slip, in a form that lacks tags or does not."""
        if rng.random() < self.slips:
            problem = with_slip(problem, rng)
        return demonstration(problem, rng.choices(FORMS, weights=self.forms)[0])
