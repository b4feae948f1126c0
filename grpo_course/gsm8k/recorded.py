"""The finale with other seeds, as `benchmarks/finale_seeds.py` recorded it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

PATH = Path(__file__).parent / "finale_seeds.json"
SHOWN = {  # column of the table -> measure
    "strict": "sampled strict accuracy",
    "lenient": "sampled lenient accuracy",
    "pass@8": "sampled pass@8",
    "greedy": "greedy strict accuracy",
    "gr. lenient": "greedy lenient accuracy",
}
LABEL, COLUMN = 8, 13  # characters
WITH_INTERVALS = ("strict", "lenient")
WIDE = 16  # a column of an interval


def read_finale() -> list[dict]:
    """One row for each seed and split: seed, split, problems, before, after.

    `before` and `after` map the name of a measure to its mean over the problems, and
    `before_intervals` and `after_intervals` to the ends of its 95 % interval.
    """
    return json.loads(PATH.read_text("utf-8"))


def recorded_table(rows: Sequence[dict], split: str) -> str:
    """Lines of text: before > after for each seed, one column for each measure.

    The last line is the mean change over the seeds, with its standard error.
    """
    chosen = [row for row in rows if row["split"] == split]
    lines = [line("", SHOWN)]
    for row in chosen:
        pairs = [(row["before"][name], row["after"][name]) for name in SHOWN.values()]
        cells = [f"{before:.2f} > {after:.2f}" for before, after in pairs]
        lines.append(line(f"seed {row['seed']}", cells))
    changes = []
    for name in SHOWN.values():
        change = torch.tensor([r["after"][name] - r["before"][name] for r in chosen])
        error = change.std().item() / len(change) ** 0.5
        changes.append(f"{change.mean().item():+.2f} ±{error:.2f}")
    return "\n".join([*lines, line("change", changes)])


def recorded_intervals(rows: Sequence[dict], split: str) -> str:
    """Lines of text: each seed's 95 % intervals over problems, before and after.

    Raises ValueError for a record that holds means alone.
    """
    times = ("before", "after")
    heads = [f"{column} {time}" for column in WITH_INTERVALS for time in times]
    lines = [line("", heads, WIDE)]
    for row in (row for row in rows if row["split"] == split):
        if not {f"{time}_intervals" for time in times} <= row.keys():
            raise ValueError(
                f"seed {row['seed']} was recorded without intervals. Record it again: "
                f"python benchmarks/finale_seeds.py {row['seed']}"
            )
        ends = [
            row[f"{time}_intervals"][SHOWN[column]]
            for column in WITH_INTERVALS
            for time in times
        ]
        cells = [f"[{low:.2f}, {high:.2f}]" for low, high in ends]
        lines.append(line(f"seed {row['seed']}", cells, WIDE))
    return "\n".join(lines)


def line(label: str, cells: Iterable[str], width: int = COLUMN) -> str:
    """One line of a table."""
    return f"{label:{LABEL}}" + "".join(f"{cell:>{width}}" for cell in cells)
