"""Record the task to copy over seeds: python benchmarks/own_task_seeds.py 0 1 2 3 4

Each seed draws other words, weights and samples, and takes about three minutes on one
core. What was recorded before is kept; a seed that is there is done again. Written to
grpo_course/lessons/own_task_seeds.json, which notebook 15 shows. With `--runs`, what
three runs that fail and one that learns show, a minute a seed: failing_runs.json.
"""

import copy
import json
import sys
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import torch

from grpo_course.checks import settings
from grpo_course.files import write_atomically
from grpo_course.text.config import GRPOConfig
from grpo_course.text.evaluation import sampled_scores, ways_to_answer
from grpo_course.text.responses import format_reward
from grpo_course.text.reverse import Reverse, accuracy
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_model,
    make_policy,
    make_start,
    presets_of,
    run_warm_start,
    train_policy,
)

LESSONS = Path(str(files("grpo_course.lessons")))


def record(seed: int) -> dict:
    """The accuracy of the start, of the trained model, and of a longer warm start.

    That is longer by as many steps as GRPO takes epochs.
    """
    config = replace(presets_of("reverse")["words"], seed=seed)
    problems = load_problems(config)
    held_out = load_problems(config, "test", config.eval_problems)
    measured = {}

    def measure(name, policy, tokenizer):
        asked = make_environment(config, held_out, tokenizer)
        ways = ways_to_answer(policy, asked, config.eval_samples)
        measured[name] = {way: round(x.mean().item(), 4) for way, x in ways.items()}

    steps = config.warm_start_steps + config.num_epochs
    longer = replace(config, warm_start_steps=steps)
    for name, how in (("imitation", longer), ("the start", config)):
        model, tokenizer = make_start(how, problems, show=False)
        measure(name, make_policy(how, model, tokenizer), tokenizer)
    environment = make_environment(config, problems, tokenizer)
    policy, _ = train_policy(config, model, tokenizer, environment)
    measure("GRPO", policy, tokenizer)
    order = ("the start", "GRPO", "imitation")
    return {"seed": seed} | {name: measured[name] for name in order}


@settings()
class Words(Reverse):
    """Words of some lengths, and the form measured beside what is right."""

    shortest: int = 3
    longest: int = 4
    rewards: ClassVar = {"accuracy": (accuracy, 1.0), "format": (format_reward, 0.0)}

    def problems(self, split, count, seed):
        words = super().problems(split, 4 * count, seed)
        return [word for word in words if len(word.answer) >= self.shortest][:count]


class GoodEnough(Exception):
    """Ends a warm start."""


def find_start(config: GRPOConfig) -> tuple:
    """The first model of 100, 125, 150... steps that has three in ten right."""
    problems = load_problems(config)
    model, tokenizer = make_model(config, problems)
    unseen = load_problems(config, "validation", config.eval_problems)
    asked = make_environment(config, unseen, tokenizer)

    def look(losses):
        if len(losses) >= 100 and len(losses) % 25 == 0:
            scores = sampled_scores(make_policy(config, model, tokenizer), asked)
            if scores.accuracy.mean() >= 0.3:
                raise GoodEnough

    with suppress(GoodEnough):
        run_warm_start(config, model, tokenizer, problems, look)
    return model, tokenizer


def causes(mild: bool) -> dict[str, dict[str, Any]]:
    """What each run changes; `mild`: by less, or for a shorter time."""
    longer = 5 if mild else 10
    return {
        "learns": {},
        "rate too high": {"learning_rate": 2e-3 if mild else 1e-2, "num_epochs": 16},
        "form alone": {
            "reward_weights": {"accuracy": 0.0, "format": 1.0},
            "num_epochs": 8 if mild else 16,
        },
        "too hard": {
            "task_settings": {"longest": longer, "shortest": longer},
            "max_new_tokens": 16 if mild else 28,
            "num_epochs": 8,
        },
    }


def record_runs(seed: int) -> list[dict]:
    """Signs of four runs from one start; from seed 4 on the failures are milder."""
    config = replace(
        presets_of("reverse")["words"],
        seed=seed,
        task=f"{__file__}:Words",
        max_new_tokens=16,
        num_epochs=40,
        kl_penalty=0.01,
        eval_problems=64,
    )
    start, tokenizer = find_start(config)
    rows = []
    for cause, changes in causes(mild=seed >= 4).items():
        run = replace(config, **changes)
        model = copy.deepcopy(start)
        unseen = load_problems(run, "validation", run.eval_problems)
        asked = make_environment(run, unseen, tokenizer)
        before = sampled_scores(make_policy(run, model, tokenizer), asked)
        environment = make_environment(run, load_problems(run), tokenizer)
        policy, seen = train_policy(run, model, tokenizer, environment)
        after = sampled_scores(policy, asked)
        paid = "format" if run.reward_weights else "accuracy"
        row = {"seed": seed, "cause": cause}
        row["start"] = reading(seen.records[:3], paid, before.accuracy.mean().item())
        row["end"] = reading(seen.records[-5:], paid, after.accuracy.mean().item())
        rows.append(row)
    return rows


def reading(records: list[dict], paid: str, right: float) -> dict[str, float]:
    """What some epochs show on average; `right` was measured on unseen words."""
    columns = {"paid": paid, "form": "format", "tied": "tied_groups"}
    columns |= {"all wrong": "tied_wrong", "all right": "tied_right", "kl": "kl"}
    means = {
        name: sum(float(record[column]) for record in records) / len(records)
        for name, column in columns.items()
    }
    return {name: round(x, 3) for name, x in ({"right": right} | means).items()}


def main(seeds: list[int], runs: bool) -> None:
    """Record seed by seed; what is done is on the disk."""
    torch.set_num_threads(1)
    path = LESSONS / ("failing_runs.json" if runs else "own_task_seeds.json")
    for seed in seeds:
        before = json.loads(path.read_text("utf-8")) if path.exists() else []
        others = [row for row in before if row["seed"] != seed]
        new = record_runs(seed) if runs else [record(seed)]
        rows = sorted([*others, *new], key=lambda row: row["seed"])
        if runs:  # a run a line
            text = "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n"
        else:
            text = json.dumps(rows, indent=1) + "\n"
        write_atomically(path, text)
        print("recorded seed", seed, flush=True)


if __name__ == "__main__":
    runs = "--runs" in sys.argv
    given = [int(word) for word in sys.argv[1:] if word != "--runs"]
    main(given or ([*range(8)] if runs else [*range(5)]), runs)
