"""What each defect costs, over seeds: `python -m grpo_course.classroom.hunt.costs`.

Runs what is not yet recorded, and records after each defect; `--again` runs all.
Further words choose entries that hold one of them: `sweep`, `matrix.json`, a cause.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from grpo_course.classroom.hunt import recorded
from grpo_course.classroom.hunt.broken import broken
from grpo_course.classroom.hunt.defects import DEFECTS
from grpo_course.classroom.hunt.judge import run_probe
from grpo_course.classroom.hunt.properties import COURSE_PROBES
from grpo_course.classroom.hunt.script import Trainer
from grpo_course.classroom.hunt.sleeping import KNOBS, update_error
from grpo_course.files import write_atomically

SEEDS = range(8)
SHORT = {"num_steps": 10}  # half a run: eight seeds of each defect take minutes
NUM_GRADED = 64  # prompts, eight responses each, for the reward at the end
SWEPT = range(3)  # seeds of a sweep


def true_reward(trainer: Trainer, seed: int) -> float:
    """What the trained weights earn from the healthy script, on fresh prompts."""
    grader = Trainer(seed=1000 + seed, num_prompts=NUM_GRADED)
    grader.model.load_state_dict(trainer.model.state_dict())
    return round(grader.collect().rewards.mean().item(), 4)


def rewards_at_the_end(make_trainer: Callable, settings: dict) -> list[float]:
    """The reward after a short run, for each seed."""
    rewards = []
    for seed in SEEDS:
        trainer = make_trainer(**(SHORT | settings | {"seed": seed}))
        trainer.train()
        rewards.append(true_reward(trainer, seed))
    return rewards


def jobs() -> dict[Path, dict[str, Callable]]:
    """What is recorded in which file, by key."""
    wanted = [{}, *(defect.settings for defect in DEFECTS.values())]
    settings = {recorded.key_of(each): each for each in wanted}
    runs = {key: lambda k=key: recorded.run_healthy(k) for key in settings}
    ends: dict[str, Callable] = {
        f"healthy {key}": lambda s=known: rewards_at_the_end(Trainer, s)
        for key, known in settings.items()
    }
    for number, defect in DEFECTS.items():
        for known in {recorded.key_of({}), recorded.key_of(defect.settings)}:
            ends[f"{defect.cause} {known}"] = lambda n=number, k=known: (
                rewards_at_the_end(broken(n).Trainer, json.loads(k))
            )
    sweeps = {f"sweep {cause}": lambda c=cause: sweep(c) for cause in KNOBS}
    rows = {
        name: lambda p=probe: asdict(run_probe(p))
        for name, probe in COURSE_PROBES.items()
    }
    return {recorded.MATRIX: rows, recorded.RUNS: runs, recorded.COSTS: ends | sweeps}


def sweep(cause: str) -> list[list[float]]:
    """The error of the first update: [value seed]."""
    return [
        [round(update_error(cause, value, seed), 5) for seed in SWEPT]
        for value in KNOBS[cause][1]
    ]


def main(arguments: list[str]) -> int:
    """Record what is missing."""
    torch.set_num_threads(1)
    named = [each for each in arguments if each != "--again"]
    for path, wanted in jobs().items():
        for key, job in wanted.items():
            if named and not any(each in f"{path.name}: {key}" for each in named):
                continue
            if "--again" in arguments or key not in recorded.read(path):
                done = job()
                # Read once more: another process may have written in the meantime.
                known = {k: v for k, v in recorded.read(path).items() if k in wanted}
                write_atomically(path, as_lines(known | {key: done}))
                print(f"{path.name}: {key}", flush=True)
    return 0


def as_lines(record: dict) -> str:
    """A record as JSON, one entry a line, in order."""
    lines = [f"{json.dumps(key)}: {json.dumps(record[key])}" for key in sorted(record)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
