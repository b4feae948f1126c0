"""What a text task is: one file with its problems, its rewards and its settings.

`gsm8k/task.py` is one, `countdown.py` another. A run is given a task by name, a file of
your own by `module:name`.
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import inf
from typing import Any, ClassVar, Generic, TypeVar

from grpo_course.algorithm.settings import settings
from grpo_course.algorithm.validation import choices, unknown_name

# name: where its class is. A name with a colon says so itself.
TASKS = {
    "gsm8k": "grpo_course.gsm8k.task:GSM8K",
    "countdown": "grpo_course.countdown:Countdown",
    "stories": "grpo_course.stories.task:Stories",
}
PLACE = re.compile(r"\w+(\.\w+)*:\w+")  # module:name

# completions and `answer`, one for each, in; one float for each out: as TRL calls it
Reward = Callable[..., Sequence[float]]


@dataclass(frozen=True)
class Problem:
    """One thing to ask, and what is needed to judge an answer to it."""

    question: str
    answer: Any  # what the rewards compare with, of any type
    solution: str = ""  # worked, for a demonstration

    @property
    def group(self) -> str:
        """Who knows one of a group knows all: intervals draw them together."""
        return self.question


Asked = TypeVar("Asked", bound=Problem)


@settings()
class TextTask(ABC, Generic[Asked]):
    """Problems of one kind, rewards, and what a run should know of them.

    A subclass is decorated with `settings()` too; its fields are the task's own
    settings, on the command line too.
    """

    # name: (function, weight). The first says whether a response is right: it is the
    # accuracy. A weight of 0 measures only.
    rewards: ClassVar[Mapping[str, tuple[Reward, float]]]
    # of the rewards, those that an evaluation reports; none: all of them
    measures: ClassVar[Sequence[str]] = ()
    # settings of whole runs by name; "laptop" is the one that is taken unless named
    presets: ClassVar[Mapping[str, Any]] = {}  # language_model.config.GRPOConfig

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there are beside "train"; the first is the one to report."""
        return ("test", "validation")

    @abstractmethod
    def problems(self, split: str, count: int | None, seed: int) -> Sequence[Asked]:
        """At most `count` problems of one split, all with None, if that is a number.

        Equal arguments give equal problems.
        """

    @abstractmethod
    def gold(self, problem: Asked) -> str:
        """A response that earns every reward."""

    def demonstration(self, problem: Asked, rng: random.Random) -> str:
        """What a model from nothing imitates before GRPO; it need not be perfect."""
        return self.gold(problem)


def require_count(count: int | None) -> int:
    """A number of problems, for a task that could make them for ever."""
    if count is None:
        raise ValueError(
            "num_problems=None asks for all problems, but this task makes as many as "
            "are wanted. Say how many: num_problems=4096."
        )
    return count


def find_task(name: str) -> type[TextTask]:
    """The class of a task: one of TASKS, or "module:name" for one of your own.

    Raises ValueError for what cannot be found or is no task, and says why.
    """
    place = TASKS.get(name, name) if isinstance(name, str) else ""
    if not PLACE.fullmatch(place):
        raise ValueError(
            f"task={name!r} {choices(TASKS)} Or name a class of your own, module:name, "
            "in a file of the current folder."
        )
    module, _, attribute = place.partition(":")
    try:
        task = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as problem:
        raise ValueError(
            f"task={name!r} cannot be loaded: {problem}. Run from the folder of "
            f"{module.replace('.', '/')}.py, or put it on the PYTHONPATH."
        ) from problem
    require_task(name, task)
    return task


def require_task(name: str, task: object) -> None:
    """Check that this is a class with all that a task needs."""
    if not (isinstance(task, type) and issubclass(task, TextTask)):
        raise ValueError(f"task={name!r} must be a subclass of TextTask.")
    if task.__abstractmethods__:
        lacks = ", ".join(sorted(task.__abstractmethods__))
        raise ValueError(f"task={name!r} lacks {lacks}: define what TextTask asks for.")
    if "__pydantic_fields__" not in vars(task):
        raise ValueError(f"task={name!r} must be decorated with @settings().")
    require_rewards(getattr(task, "rewards", None), task.measures)


def require_rewards(rewards: Any, measures: Sequence[str]) -> None:
    """Check a task's rewards, a function and a weight under each name, and measures."""
    pairs = list(rewards.values()) if isinstance(rewards, Mapping) else []
    if not (pairs and all(map(is_weighted, pairs))):
        raise ValueError(
            f"rewards={rewards!r}, but it must hold a function and its weight under "
            'each name, at least 0: {"accuracy": (my_reward, 1.0)}.'
        )
    for measure in measures:
        if measure not in rewards:
            raise unknown_name("measures", measure, rewards)


def is_weighted(pair: object) -> bool:
    """Whether this is a function and its weight."""
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        return False
    function, weight = pair
    return callable(function) and isinstance(weight, int | float) and 0 <= weight < inf
