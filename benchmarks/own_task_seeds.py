"""Record the task to copy over seeds: python benchmarks/own_task_seeds.py 0 1 2 3 4

Each seed draws other words, weights and samples, and takes about three minutes on one
core. What was recorded before is kept; a seed that is there is done again. Written to
grpo_course/lessons/own_task_seeds.json, which notebook 15 shows.
"""

import json
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import torch

from grpo_course.files import write_atomically
from grpo_course.text.evaluation import ways_to_answer
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_policy,
    make_start,
    presets_of,
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


def main(seeds: list[int]) -> None:
    """Record seed by seed; what is done is on the disk."""
    torch.set_num_threads(1)
    path = LESSONS / "own_task_seeds.json"
    for seed in seeds:
        before = json.loads(path.read_text("utf-8")) if path.exists() else []
        others = [row for row in before if row["seed"] != seed]
        rows = sorted([*others, record(seed)], key=lambda row: row["seed"])
        write_atomically(path, json.dumps(rows, indent=1) + "\n")
        print("recorded seed", seed, flush=True)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [*range(5)])
