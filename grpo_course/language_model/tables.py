"""Measures of one or several models as pandas tables, which notebooks render."""

from collections.abc import Mapping, Sequence

from pandas import DataFrame
from torch import Tensor

from grpo_course.language_model.environment import Environment
from grpo_course.language_model.evaluation import (
    Scores,
    bootstrap_interval,
    greedy_scores,
    majority,
    per_problem,
    sampled_scores,
)
from grpo_course.language_model.policy import CausalPolicy

# What a reader sees for the name of a reward; the others are named as they are.
LABELS = {"accuracy": "strict accuracy", "lenient_accuracy": "lenient accuracy"}


class Measures(dict[str, Tensor]):
    """name -> [problem], and the group of each problem, for the intervals."""

    def __init__(self, values: Mapping[str, Tensor], groups: Sequence[str]):
        super().__init__(values)
        self.groups = groups


def evaluate_policy(
    policy: CausalPolicy,
    environment: Environment,
    num_samples: int = 8,
    *,
    temperature: float | None = None,
) -> Measures:
    """Everything there is to report, one number a problem. name -> [problem]

    Each measure of greedy and of sampled responses, and pass@1 and pass@num_samples
    from the samples.
    """
    sampled = sampled_scores(policy, environment, num_samples, temperature=temperature)
    return name_measures(greedy_scores(policy, environment), sampled)


def ways_to_answer(
    policy: CausalPolicy,
    environment: Environment,
    num_samples: int = 8,
    *,
    temperature: float = 1.0,
    cooled: float = 0.3,
    seed: int = 0,
    batch_size: int = 64,
) -> Measures:
    """The accuracy of one model in four ways, of which three cost no training.

    One sample, one at a lower temperature, the majority of all, the likeliest.
    """
    how = {"seed": seed, "batch_size": batch_size}
    warm, cold = (
        sampled_scores(policy, environment, num_samples, temperature=heat, **how)
        for heat in (temperature, cooled)
    )
    greedy = greedy_scores(policy, environment, batch_size)
    ways = {
        f"one sample, temperature {temperature:g}": warm.accuracy.double().mean(-1),
        f"one sample, temperature {cooled:g}": cold.accuracy.double().mean(-1),
        f"majority of {num_samples}": majority(warm),
        "greedy": greedy.accuracy.double().mean(-1),
    }
    return Measures(ways, warm.groups)


def name_measures(greedy: Scores, sampled: Scores) -> Measures:
    """The measures of both by the name that a reader sees."""
    n = sampled.accuracy.shape[-1]
    measures = {f"greedy {LABELS.get(k, k)}": v for k, v in per_problem(greedy).items()}
    for name, values in per_problem(sampled, ks=sorted({1, n})).items():
        measures[f"sampled {LABELS.get(name, name)}"] = values
    return Measures(measures, sampled.groups)


def summary(measured: Mapping[str, Measures], seed: int = 0) -> DataFrame:
    """A row for each measure of each model: mean and 95 % interval over problems.

    For the interval, problems of one group are drawn together.
    """
    rows = []
    for model, measures in measured.items():
        for name, values in measures.items():
            low, high = bootstrap_interval(values, measures.groups, seed=seed)
            row = {"model": model, "measure": name, "mean": values.mean().item()}
            rows.append(row | {"low": low, "high": high, "problems": len(values)})
    return DataFrame(rows)


def evaluation_table(measured: Mapping[str, Measures], seed: int = 0) -> DataFrame:
    """A row for each measure, a column for each model: the mean and its interval.

    `measured` has a model's name and what `evaluate_policy` returned for it.
    """
    rows = summary(measured, seed)
    rows["text"] = [
        f"{mean:.3f} [{low:.3f}, {high:.3f}]"
        for mean, low, high in rows[["mean", "low", "high"]].itertuples(index=False)
    ]
    table = rows.pivot(index="measure", columns="model", values="text")
    counts = " or ".join(map(str, sorted(set(rows["problems"]))))
    names = dict.fromkeys(rows["measure"])
    table = table.reindex(index=list(names), columns=list(measured)).fillna("")
    return table.rename_axis(index=f"{counts} problems", columns=None)
