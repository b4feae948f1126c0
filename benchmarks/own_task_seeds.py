"""Record the task of notebook 15 over seeds: python benchmarks/own_task_seeds.py 5 6

Each seed draws other words, weights and samples, and takes about four minutes on one
core. What was recorded before is kept; a seed that is there is done again. Written to
grpo_course/lessons/own_task_seeds.json, which the notebook shows.
"""

import copy
import json
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import torch

from grpo_course.files import write_atomically
from grpo_course.lessons.exercises.nb15 import credit
from grpo_course.lessons.own_task import letters
from grpo_course.loop import tied_groups
from grpo_course.text.environment import Environment
from grpo_course.text.evaluation import sampled_scores, ways_to_answer
from grpo_course.text.responses import graded
from grpo_course.text.reverse import is_reversed
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_policy,
    make_start,
    presets_of,
    train_policy,
)

LESSONS = Path(str(files("grpo_course.lessons")))
RUN = replace(
    presets_of("reverse")["words"],
    task_settings={"longest": 4},
    max_new_tokens=16,
    warm_start_steps=200,
    num_epochs=150,
    kl_penalty=0.01,
)
STARTS = 100, 200, 350  # the last imitates for as long as start and GRPO together


RULES = {"letters": letters, "accuracy": is_reversed, "credit": credit}


def record(seed: int) -> dict:
    """What starts can do, and what GRPO makes of the one in the middle, by its pay."""
    config = replace(RUN, seed=seed)
    problems = load_problems(config)
    made = {
        steps: make_start(replace(config, warm_start_steps=steps), problems, show=False)
        for steps in STARTS
    }
    start, tokenizer = made[200]
    asked = {
        split: make_environment(config, load_problems(config, split, count), tokenizer)
        for split, count in (("validation", 64), ("test", 256))
    }

    def look(model):
        policy = make_policy(config, model, tokenizer)
        right = sampled_scores(policy, asked["validation"], 8).accuracy
        mixed = 1 - tied_groups(right).float().mean().item()
        shares = {"right": right.mean().item(), "mixed": mixed}
        return {name: round(share, 4) for name, share in shares.items()}

    def measure(model):
        policy = make_policy(config, model, tokenizer)
        ways = ways_to_answer(policy, asked["test"], 8)
        return {way: round(x.mean().item(), 4) for way, x in ways.items()}

    def paid_by(rule):
        def reward(completions, answer, **kwargs):
            return graded(rule, completions, answer)

        model = copy.deepcopy(start)
        rewards = {"paid": (reward, 1.0)}
        environment = Environment(problems, tokenizer, rewards)
        train_policy(config, model, tokenizer, environment)
        return measure(model)

    return {
        "seed": seed,
        "starts": {steps: look(model) for steps, (model, _) in made.items()},
        "the start": measure(start),
        **{name: paid_by(rule) for name, rule in RULES.items()},
        "imitation": measure(made[350][0]),
    }


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
