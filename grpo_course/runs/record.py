"""What a run has written down so far, for people who look at it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpo_course.files import PARSING
from grpo_course.runs.folder import saved_config
from grpo_course.runs.journal import METRICS, SAMPLES, TIMES
from grpo_course.training import GRPOConfig

Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Record:
    """The files of one run; each line as it stands there."""

    name: str
    config: GRPOConfig
    metrics: Lines
    samples: Lines
    times: Lines


def read_record(out: Path) -> Record:
    """The record of a run, also of one that goes on. FileNotFoundError if none is."""
    config = saved_config(out)
    return Record(
        str(out), config, *(lines(out / n) for n in (METRICS, SAMPLES, TIMES))
    )


def lines(path: Path) -> Lines:
    """The lines of a file, up to one that is not whole: it is being written."""
    found: Lines = []
    if not path.exists():
        return found
    for text in path.read_bytes().splitlines():
        try:
            found.append(dict(json.loads(text)))
        except PARSING:
            break
    return found


def series(rows: Sequence[dict], name: str) -> tuple[list[int], list[float]]:
    """The epochs that have a column, and its values there."""
    there = [row for row in rows if name in row]
    return [row["epoch"] for row in there], [row[name] for row in there]
