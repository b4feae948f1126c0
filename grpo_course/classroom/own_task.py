"""The task to copy over several seeds, as `benchmarks/own_task_seeds.py` recorded."""

import json
from collections.abc import Sequence
from pathlib import Path

from pandas import DataFrame

from grpo_course.loop import mean_and_error

PATH = Path(__file__).parent / "own_task_seeds.json"


def read_own_task() -> list[dict]:
    """A row for each seed: `seed`, and for each model a way to answer -> accuracy."""
    return json.loads(PATH.read_text("utf-8"))


def own_task_table(rows: Sequence[dict]) -> DataFrame:
    """A row for each way to answer, a column for each model: mean and error of seeds"""
    models = [name for name in rows[0] if name != "seed"]
    table = {
        model: {
            way: "{:.2f} ±{:.2f}".format(
                *mean_and_error([row[model][way] for row in rows])
            )
            for way in rows[0][model]
        }
        for model in models
    }
    return DataFrame(table).rename_axis(index=f"{len(rows)} seeds")
