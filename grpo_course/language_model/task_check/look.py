"""A task under examination, worked out once for all checks."""

from collections.abc import Sequence
from functools import cached_property

from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.task_check.attack import cheap_policies, earn, total
from grpo_course.language_model.text_task import Problem, TextTask

LOOKED_AT = 64  # problems that rewards are tried on


class Look:
    """What a task asks, and what is right. Rewards are tried on `some` problems."""

    def __init__(self, task: TextTask, config: GRPOConfig | None = None):
        self.task = task
        presets = task.presets or {"laptop": GRPOConfig()}
        self.config = config or next(iter(presets.values()))

    def ask(self, split: str) -> list[Problem]:
        """The problems of a split, as a run asks for them."""
        config = self.config
        count = config.num_problems if split == "train" else config.eval_problems
        return list(self.task.problems(split, count, config.seed))

    @cached_property
    def problems(self) -> list[Problem]:
        """All to train on."""
        return self.ask("train")

    @cached_property
    def some(self) -> list[Problem]:
        """The first of them."""
        return self.problems[:LOOKED_AT]

    @cached_property
    def golds(self) -> list[str]:
        """The right response to each of those."""
        return [self.task.gold(problem) for problem in self.some]

    @cached_property
    def cheap(self) -> dict[str, list[str]]:
        """What policies that know nothing say to them."""
        return cheap_policies(self.task, self.some)

    def paid(self, texts: Sequence[str]) -> list[float]:
        """What GRPO is paid for a response to each."""
        return total(self.task, earn(self.task, texts, self.some)).tolist()

    def right(self, texts: Sequence[str]) -> list[float]:
        """The first reward of a response to each: whether it is right."""
        return next(iter(earn(self.task, texts, self.some).values())).tolist()
