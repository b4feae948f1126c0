"""Measures of one or several models as lines of text and as flat data."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from grpo_course.gsm8k.evaluation import (
    Scores,
    bootstrap_interval,
    greedy_scores,
    per_problem,
    sampled_scores,
)
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.task import Task

LABEL, COLUMN, WIDTH = 25, 23, 75  # characters
NAMES = {
    "accuracy": "strict accuracy",
    "lenient_accuracy": "lenient accuracy",
    "format": "format",
}


class Measures(dict[str, Tensor]):
    """name -> [problem], and the calculation of each problem, for the intervals."""

    def __init__(self, values: Mapping[str, Tensor], calculations: Sequence[str]):
        super().__init__(values)
        self.calculations = calculations


def evaluate_policy(
    policy: CausalPolicy,
    task: Task,
    num_samples: int = 8,
    *,
    temperature: float | None = None,
) -> Measures:
    """Everything there is to report, one number a problem. name -> [problem]

    Greedy and sampled accuracy, strict and lenient, format, and pass@1 and
    pass@num_samples from the samples.
    """
    sampled = sampled_scores(policy, task, num_samples, temperature=temperature)
    return name_measures(greedy_scores(policy, task), sampled)


def name_measures(greedy: Scores, sampled: Scores) -> Measures:
    """The measures of both by the name that a reader sees."""
    n = sampled.accuracy.shape[-1]
    measures = {f"greedy {NAMES[k]}": v for k, v in per_problem(greedy).items()}
    for name, values in per_problem(sampled, ks=sorted({1, n})).items():
        measures[f"sampled {NAMES.get(name, name)}"] = values
    return Measures(measures, sampled.calculations)


def summary_rows(
    measured: Mapping[str, Measures], seed: int = 0
) -> list[dict[str, str | float]]:
    """One row for each measure of each model: mean and 95 % interval over problems.

    For the interval, problems with the same calculation are drawn together.
    """
    rows = []
    for model, measures in measured.items():
        for name, values in measures.items():
            groups = measures.calculations
            low, high = bootstrap_interval(values, groups, seed=seed)
            row = {"model": model, "measure": name, "mean": values.mean().item()}
            rows.append(row | {"low": low, "high": high, "problems": len(values)})
    return rows


def evaluation_table(measured: Mapping[str, Measures], seed: int = 0) -> str:
    """A line for each measure, a column for each model, intervals where they fit.

    `measured` has a model's name and what `evaluate_policy` returned for it.
    """
    rows = summary_rows(measured, seed)
    models = list(measured)
    width = min(COLUMN, (WIDTH - LABEL) // len(models))
    cells = {(row["measure"], row["model"]): cell(row, width) for row in rows}
    counts = sorted({row["problems"] for row in rows})
    head = f"{' or '.join(map(str, counts))} problems"
    lines = [line(head, models, width)]
    for name in dict.fromkeys(row["measure"] for row in rows):
        lines.append(line(name, [cells.get((name, m), "") for m in models], width))
    return "\n".join(lines)


def cell(row: Mapping, width: int) -> str:
    """The mean, with its interval if there is room."""
    full = f"{row['mean']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    return full if len(full) < width else f"{row['mean']:.3f}"


def line(label: str, cells: Sequence[str], width: int) -> str:
    """One line of the table."""
    return f"{label:<{LABEL}}" + "".join(f"{c[: width - 1]:>{width}}" for c in cells)
