"""Where the time of an epoch goes."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from grpo_course.loop import Trainer

# part -> the trainer's method that does it; what one does inside another is not counted
# twice
PARTS = {
    "sampling": "sample",
    "rewards": "reward_fn",
    "scoring": "collect",
    "update": "improve",
    "evaluation": "observe",
}
OTHER = "other"  # all else: reading, writing, saving


class Stopwatch:
    """Seconds of wall-clock time since the last lap, each charged to one part."""

    def __init__(self) -> None:
        self.inside = [OTHER]  # the innermost part is the last
        self.restart()

    def restart(self) -> None:
        """Set all parts to zero."""
        self.seconds = dict.fromkeys([*PARTS, OTHER], 0.0)
        self.since = now()

    def attach(self, trainer: Trainer) -> None:
        """Measure the parts of a trainer from now on."""
        for part, method in PARTS.items():
            setattr(trainer, method, self.timed(part, getattr(trainer, method)))

    def timed(self, part: str, work: Callable) -> Callable:
        """The same function, its time charged to a part."""

        @wraps(work)
        def measured(*args: Any, **kwargs: Any) -> Any:
            self.charge()
            self.inside.append(part)
            try:
                return work(*args, **kwargs)
            finally:
                self.charge()
                self.inside.pop()

        return measured

    def charge(self) -> None:
        """Give the time since the last look to the part that is running."""
        moment = now()
        self.seconds[self.inside[-1]] += moment - self.since
        self.since = moment

    def lap(self) -> dict[str, float]:
        """The seconds of each part since the last lap; they begin anew."""
        self.charge()
        seconds = {part: round(value, 6) for part, value in self.seconds.items()}
        self.restart()
        return seconds


def now() -> float:
    """The time, in seconds, once a GPU has done what it was told."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()
