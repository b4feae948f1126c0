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
    "greedy len.": "greedy lenient accuracy",
}
LABEL, COLUMN = 8, 13  # characters


def read_finale(path: str | Path = PATH) -> list[dict]:
    """One row for each seed and split: seed, split, problems, before, after.

    `before` and `after` map the name of a measure to its mean over the problems.
    """
    return json.loads(Path(path).read_text("utf-8"))


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


def line(label: str, cells: Iterable[str]) -> str:
    """One line of the table."""
    return f"{label:{LABEL}}" + "".join(f"{cell:>{COLUMN}}" for cell in cells)
