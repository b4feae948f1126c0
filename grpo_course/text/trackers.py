"""Metrics to a logger that people know, beside the run's own file.

The loggers are those of `accelerate`. The run's own metrics.jsonl stays the record, and
what a run does is the same with a logger and without.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from grpo_course.text.config import GRPOConfig
from grpo_course.text.errors import require_installed

NO_LOGGER = "none"
LOGGERS = ("tensorboard", "wandb", "trackio")  # as transformers and accelerate say it
PROJECT = "grpo-course"  # that a service files its runs under
Log = Callable[[Mapping[str, Any], int], None]  # a line of the metrics, and its epoch


def require_logger(name: str) -> None:
    """Check that a logger's packages are there. Raises MissingExtra with the cure."""
    if name in LOGGERS:
        needs = f"--report-to {name} needs accelerate and {name}"
        require_installed(["accelerate", name], needs)


@contextmanager
def reporting(name: str, config: GRPOConfig, out: Path) -> Iterator[Log | None]:
    """Inside the block, what each epoch's metrics are handed to; None for no logger.

    TensorBoard writes into a folder of the run, the others name their run as it.
    """
    if name == NO_LOGGER:
        yield None
        return
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS

    kind: Any = LOGGER_TYPE_TO_CLASS[name]
    if kind.requires_logging_directory:
        tracker = kind(name, logging_dir=str(out))
    else:
        tracker = kind(PROJECT, name=out.name)
    tracker.start()
    plain = {
        key: value if isinstance(value, int | float | str) else json.dumps(value)
        for key, value in asdict(config).items()
    }
    tracker.store_init_configuration(plain)

    def log(line: Mapping[str, Any], epoch: int) -> None:
        numbers = {
            key: value
            for key, value in line.items()
            if isinstance(value, int | float) and isfinite(value)
        }
        tracker.log(numbers, step=epoch)

    try:
        yield log
    finally:
        tracker.finish()
