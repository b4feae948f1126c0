"""Record the finale over several seeds: python benchmarks/finale_seeds.py 0 1 2 3 4

Each seed draws other problems, other weights and other samples. A seed takes three to
four minutes on one core. What was recorded before is kept; a seed that is there is
done again. Written to grpo_course/gsm8k/finale_seeds.json, which notebook 12 shows.
"""

import json
import sys
from dataclasses import replace

import torch

from grpo_course.files import write_atomically
from grpo_course.gsm8k.presets import LAPTOP
from grpo_course.gsm8k.recorded import PATH, read_finale
from grpo_course.language_model.build import (
    load_problems,
    make_environment,
    make_policy,
    make_start,
)
from grpo_course.language_model.environment import Environment
from grpo_course.language_model.policy import CausalPolicy
from grpo_course.language_model.tables import evaluate_policy, summary
from grpo_course.language_model.training import train_policy

SPLITS = ("unseen_problems", "unseen_phrasings", "unseen_facts")
PROBLEMS = 512


def record(seed: int) -> list[dict]:
    """One row for each split, as `recorded.read_finale` describes it."""
    config = replace(LAPTOP, seed=seed)
    problems = load_problems(config)
    model, tokenizer = make_start(config, problems, show=False)
    held_out = {split: load_problems(config, split, PROBLEMS) for split in SPLITS}
    asked = {s: make_environment(config, held_out[s], tokenizer) for s in SPLITS}
    before = measure(asked, make_policy(config, model, tokenizer))
    environment = make_environment(config, problems, tokenizer)
    policy, _ = train_policy(config, model, tokenizer, environment)
    after = measure(asked, policy)
    return [
        {"seed": seed, "split": split, "problems": PROBLEMS}
        | named("before", before[split])
        | named("after", after[split])
        for split in SPLITS
    ]


def measure(
    asked: dict[str, Environment], policy: CausalPolicy
) -> dict[str, list[dict]]:
    """Every measure of every split, a row each: mean and interval over the problems."""
    return {
        split: summary({"": evaluate_policy(policy, environment)}).to_dict("records")
        for split, environment in asked.items()
    }


def named(time: str, rows: list[dict]) -> dict[str, dict]:
    """The means of the measures and their intervals, under the names in the file."""
    return {
        time: {row["measure"]: round(row["mean"], 4) for row in rows},
        f"{time}_intervals": {
            row["measure"]: [round(row[end], 4) for end in ("low", "high")]
            for row in rows
        },
    }


def main(seeds: list[int]) -> None:
    """Record seed by seed; what is done is on the disk."""
    torch.set_num_threads(1)
    for seed in seeds:
        rows = record(seed)
        kept = [r for r in read_finale() if r["seed"] != seed] if PATH.exists() else []
        rows = sorted([*kept, *rows], key=lambda r: (r["seed"], r["split"]))
        write_atomically(PATH, json.dumps(rows, indent=1) + "\n")
        print("recorded seed", seed, flush=True)


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [0, 1, 2, 3, 4])
