"""What the defects of the bug hunt cost: `python benchmarks/hunt_costs.py [cause ...]`.

Records all defects, or those whose cause holds one of the words: the cost after a short
run is printed, for the table in `grpo_course/lessons/hunt/defects.py`; the logs in
`healthy_runs.json` beside it are replaced.
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from grpo_course.files import write_atomically
from grpo_course.lessons.hunt import cases
from grpo_course.lessons.hunt.defects import (
    COMPLAINTS,
    DEFECTS,
    Cost,
    broken,
)
from grpo_course.lessons.hunt.script import Trainer

SEEDS = range(8)
SHORT = {"num_steps": 10}  # half a run
NUM_GRADED = 64  # prompts, eight responses each, for the reward at the end


def rewards_at_the_end(make_trainer: Callable, settings: dict) -> Tensor:
    """What the weights of a short run earn from the healthy script, on fresh prompts.
    -> [seed]"""
    rewards = []
    for seed in SEEDS:
        trainer = make_trainer(**(SHORT | settings | {"seed": seed}))
        trainer.train()
        grader = Trainer(seed=1000 + seed, num_prompts=NUM_GRADED)
        grader.model.load_state_dict(trainer.model.state_dict())
        rewards.append(round(grader.collect().rewards.mean().item(), 4))
    return torch.tensor(rewards, dtype=torch.double)


@cache
def healthy_rewards(settings: str) -> Tensor:
    """Those of the healthy script, with settings as JSON."""
    return rewards_at_the_end(Trainer, json.loads(settings))


def cost(number: int, settings: dict) -> Cost:
    """The reward with a defect minus without, paired by seed."""
    theirs = rewards_at_the_end(broken(number).Trainer, settings)
    gap = theirs - healthy_rewards(json.dumps(settings))
    return Cost(gap.mean().item(), (gap.std() / len(gap) ** 0.5).item())


def record(key: str) -> None:
    """Run the healthy script with these settings, and enter the logs, one a line."""
    path = Path(cases.__file__).with_name("healthy_runs.json")
    known = json.loads(path.read_text(encoding="utf-8"))
    known[key] = cases.run_healthy(key)
    lines = [f"{json.dumps(key)}: {json.dumps(row)}" for key, row in known.items()]
    write_atomically(path, "{\n" + ",\n".join(lines) + "\n}\n")


def main(words: list[str]) -> None:
    torch.set_num_threads(1)
    for number, defect in DEFECTS.items():
        if words and not any(word in defect.cause for word in words):
            continue
        print(f"{number} {defect.cause}: cost {cost(number, {})}", flush=True)
        if defect.settings:
            print(f"    awake {cost(number, defect.settings)}", flush=True)
        key = json.dumps(defect.settings, sort_keys=True)
        record(key)
    if not words:
        for each in COMPLAINTS.values():
            key = json.dumps(each.settings, sort_keys=True)
            record(key)


if __name__ == "__main__":
    main(sys.argv[1:])
