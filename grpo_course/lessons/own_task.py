"""15: a task of three functions, a reward with a hole, what recorded seeds say."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any, ClassVar

from pandas import DataFrame, Series

from grpo_course.checks import settings
from grpo_course.loop import half_width
from grpo_course.text.responses import extract_answer, graded
from grpo_course.text.tasks import Problem, TextTask


def task_of(
    problems: Callable[[str, int, int], Sequence[Problem]],
    is_right: Callable[[str, str], bool],
    gold: Callable[[Problem], str],
) -> TextTask:
    """A task, as WordOrder is one, made of three functions."""

    def accuracy(completions, answer, **kwargs):
        return graded(is_right, completions, answer)

    @settings()
    class Mine(TextTask):
        rewards: ClassVar = {"accuracy": (accuracy, 1.0)}

        def problems(self, split, count, seed):
            return problems(split, count, seed)

        def gold(self, problem):
            return gold(problem)

    return Mine()


def letters(text: str, word: str) -> float:
    """What share of the answer's letters are right and in their places."""
    given = extract_answer(text) or ""
    same = sum(a == b for a, b in zip(given, word, strict=False))
    return same / max(len(given), 1)


def ends_of(run: DataFrame) -> DataFrame:
    """What was paid and what was right, as means of ten epochs, first and last."""
    ends = {"first ten epochs": run[:10], "last ten epochs": run[-10:]}
    return DataFrame({name: part.mean() for name, part in ends.items()}).loc[
        ["paid", "right"]
    ]


def recorded_seeds() -> list[dict[str, Any]]:
    """A row a seed, as benchmarks/own_task_seeds.py recorded: by model and way."""
    return read_json("own_task_seeds")


def smollm2_texts() -> DataFrame:
    """What it wrote, untrained, to 32 questions, eight rows each.

    Recorded by benchmarks/real_texts.py.
    """
    asked = read_json("real_texts")["order"]
    return DataFrame(asked).explode("texts", True).rename(columns={"texts": "text"})


def read_json(name: str) -> Any:
    path = files("grpo_course.lessons") / f"{name}.json"
    return json.loads(path.read_text("utf-8"))


def starts_of(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """What share of groups is mixed after so many steps, a column for each seed."""
    mixed = {
        f"seed {row['seed']}": {n: look["mixed"] for n, look in row["starts"].items()}
        for row in rows
    }
    return DataFrame(mixed).rename_axis("steps")


def means_of(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """The share right, as a mean over seeds: a row for each way, a column a model."""
    models = [name for name in rows[0] if name not in ("seed", "starts")]
    return DataFrame({m: DataFrame([row[m] for row in rows]).mean() for m in models})


def try_gain(
    rows: Sequence[Mapping[str, Any]], before: Sequence[str], after: Sequence[str]
) -> None:
    """Print a gain over seeds, and what it lacks. Each model comes with its way."""
    means = means_of(rows).round(2)  # as the table prints them: equal is equal
    for model, way in (before, after):
        if model not in means or way not in means.index:
            models, ways = ", ".join(map(str, means)), "; ".join(means.index)
            raise ValueError(f"({model!r}, {way!r}): one of {models}; one of {ways}.")
    (old, how), (new, so) = before, after
    gains = Series([row[new][so] - row[old][how] for row in rows])
    mean, half, up = gains.mean(), half_width(gains), (gains > 0).sum()
    print(f"the gain: {mean:+.2f} ± {half:.2f}")
    for holds, finding in (
        (old != new, "two models are compared"),
        (means[old][how] == means[old].max(), f"{old} answers in its best way"),
        (means[new][so] == means[new].max(), f"{new} answers in its best way"),
        (mean > half, "the interval lies above 0"),
        (up == len(rows), f"there is a gain in {up} of {len(rows)} seeds"),
    ):
        print(f"[{'v' if holds else 'x'}] {finding}")
