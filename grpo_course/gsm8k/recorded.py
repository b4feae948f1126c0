"""The finale with other seeds, as `benchmarks/finale_seeds.py` recorded it."""

import json
from collections.abc import Sequence
from pathlib import Path

from pandas import DataFrame

from grpo_course.algorithm.seeds import mean_and_error
from grpo_course.algorithm.validation import unknown_name

PATH = Path(__file__).parent / "finale_seeds.json"
SHOWN = {  # column of the table -> measure
    "strict": "sampled strict accuracy",
    "lenient": "sampled lenient accuracy",
    "pass@8": "sampled pass@8",
    "greedy": "greedy strict accuracy",
    "gr. lenient": "greedy lenient accuracy",
}
WITH_INTERVALS = ("strict", "lenient")
TIMES = ("before", "after")


def read_finale() -> list[dict]:
    """One row for each seed and split: seed, split, problems, before, after.

    `before` and `after` map the name of a measure to its mean over the problems, and
    `before_intervals` and `after_intervals` to the ends of its 95 % interval.
    """
    return json.loads(PATH.read_text("utf-8"))


def recorded_table(rows: Sequence[dict], split: str) -> DataFrame:
    """A row for each seed, a column for each measure: its mean before → after.

    The last row is the mean change over the seeds, with its standard error.
    """
    table = {}
    for column, name in SHOWN.items():
        means = DataFrame(
            {t: [r[t][name] for r in of_split(rows, split)] for t in TIMES}
        )
        cells = [f"{before:.2f} → {after:.2f}" for before, after in means.to_numpy()]
        mean, error = mean_and_error((means["after"] - means["before"]).tolist())
        table[column] = [*cells, f"{mean:+.2f} ±{error:.2f}"]
    frame = DataFrame(table, index=[*seeds(rows, split), "change"])
    return frame.rename_axis(columns=split)


def recorded_intervals(rows: Sequence[dict], split: str) -> DataFrame:
    """A row for each seed: its 95 % intervals over problems, before and after.

    Raises ValueError for a record that holds means alone.
    """
    table = {}
    for column in WITH_INTERVALS:
        for time in TIMES:
            ends = [interval(row, time, column) for row in of_split(rows, split)]
            table[f"{column} {time}"] = [
                f"[{low:.2f}, {high:.2f}]" for low, high in ends
            ]
    return DataFrame(table, index=seeds(rows, split)).rename_axis(columns=split)


def interval(row: dict, time: str, column: str) -> list[float]:
    """The ends of one interval. Raises ValueError if it was not recorded."""
    if f"{time}_intervals" not in row:
        raise ValueError(
            f"seed {row['seed']} was recorded without intervals. Record it again: "
            f"python benchmarks/finale_seeds.py {row['seed']}"
        )
    return row[f"{time}_intervals"][SHOWN[column]]


def of_split(rows: Sequence[dict], split: str) -> list[dict]:
    """The rows of one split. Raises ValueError if there is none."""
    chosen = [row for row in rows if row["split"] == split]
    if not chosen:
        raise unknown_name("split", split, sorted({row["split"] for row in rows}))
    return chosen


def seeds(rows: Sequence[dict], split: str) -> list[str]:
    """What the rows of a table are called."""
    return [f"seed {row['seed']}" for row in of_split(rows, split)]
