"""Runs, costs and answers of probes, as the command of `costs` recorded them."""

import json
from functools import cache
from pathlib import Path

from grpo_course.classroom.hunt.script import Trainer

HEALTHY_SEEDS = range(5)
RUNS = Path(__file__).with_name("healthy_runs.json")
COSTS = Path(__file__).with_name("costs.json")
MATRIX = Path(__file__).with_name("matrix.json")
DIGITS = 5


def key_of(settings: dict) -> str:
    """Settings as a key of a record."""
    return json.dumps(settings, sort_keys=True)


@cache
def stored(path: Path) -> dict:
    """A record, read once."""
    return read(path)


def read(path: Path) -> dict:
    """A record, or nothing where none was made."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def healthy_runs(settings: dict) -> list[list[dict]]:
    """Logs of the healthy script, one for each seed: recorded, or else run now."""
    if (key := key_of(settings)) in stored(RUNS):
        return stored(RUNS)[key]
    return run_healthy(key)


@cache
def run_healthy(key: str) -> list[list[dict]]:
    """Run the healthy script with each seed."""
    return [
        [rounded(row) for row in Trainer(**(json.loads(key) | {"seed": seed})).train()]
        for seed in HEALTHY_SEEDS
    ]


def rounded(row: dict) -> dict:
    """A row of a log with as many digits as a picture shows."""
    return {name: float(f"{value:.{DIGITS}g}") for name, value in row.items()}
