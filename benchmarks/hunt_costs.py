"""What the defects of the bug hunt cost: `python benchmarks/hunt_costs.py [cause ...]`.

Records all defects, or those whose cause holds one of the words: the cost after a short
run is printed, for the table in `grpo_course/lessons/hunt/defects.py`; the errors in
`sweeps.json` and the logs in `healthy_runs.json` beside it are replaced, and, without
words, `matrix.json`: what the course's probes say of all trainers.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
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
    number_of,
)
from grpo_course.lessons.hunt.probes import COURSE_PROBES, run_probe
from grpo_course.lessons.hunt.script import Trainer

SEEDS = range(8)
SHORT = {"num_steps": 10}  # half a run
NUM_GRADED = 64  # prompts, eight responses each, for the reward at the end

SWEPT = range(3)  # seeds of a sweep
WARM_UP = 3  # healthy rollouts before, so that the policy has left its reference
SHORTEST = ("min_numbers", (4, 3, 2))  # of up to 4: the shorter, the more padding
HEAT = ("temperature", (0.4, 0.6, 0.8, 1.0, 1.2, 1.5))
INNER = ("num_inner_steps", (1, 2, 4, 8))
PARTS = ("micro_batch_size", (64, 32, 16, 8, 4))
BETA = ("beta", (0.0, 0.02, 0.04, 0.1, 0.3, 1.0))
# Cause -> the setting that wakes it, and values to try.
KNOBS: dict[str, tuple[str, tuple[float, ...]]] = {
    "temperature missing from the scores": HEAT,
    "rare tokens never sampled, yet scored": HEAT,
    "attention mask left out of the scores": SHORTEST,
    "cut-off responses paid": ("max_new_tokens", (6, 8, 10, 14, 20)),
    "old scores in low precision": ("epsilon", (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)),
    "old scores taken from the current policy": INNER,
    "clip blind to the sign of delta": INNER,
    "old scores that carry a gradient": INNER,
    "schedule too short for the inner steps": INNER,
    "k3 upside down": BETA,
    "k1 as a loss": BETA,
    "KL with the wrong sign": BETA,
    "KL computed and not used": BETA,
    "reference is the policy itself": BETA,
    "each part divided by its own tokens": PARTS,
    "gradient cleared for each part": PARTS,
}


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


@cache
def warm_weights(seed: int) -> dict[str, Tensor]:
    """Weights after a few healthy rollouts."""
    trainer = Trainer(seed=seed)
    for _ in range(WARM_UP):
        trainer.step()
    return trainer.model.state_dict()


def first_update(make_trainer: Callable, seed: int, **settings: float) -> Tensor:
    """How far one rollout moves warm weights. -> [weight]

    With a large eps, AdamW moves each weight in proportion to its gradient, so that
    small gradients count as small.
    """
    trainer = make_trainer(**({"seed": seed, "learning_rate": 0.1} | settings))
    trainer.model.load_state_dict(warm_weights(seed))
    trainer.optimizer.param_groups[0]["eps"] = 1.0
    before = {k: w.clone() for k, w in trainer.model.state_dict().items()}
    torch.manual_seed(seed)
    trainer.step()
    after = trainer.model.state_dict()
    return torch.cat([(after[name] - before[name]).flatten() for name in after])


@cache
def healthy_update(seed: int, setting: str, value: float) -> Tensor:
    """That of the healthy script."""
    return first_update(Trainer, seed, **{setting: value})


def update_error(cause: str, value: float, seed: int = 0) -> float:
    """The distance between the update with a defect and the healthy one, relative to
    the healthy one; `value` is that of the setting which wakes it.

    Same weights, prompts and random numbers. 0: nothing is wrong; 1: as wrong as no
    update at all.
    """
    setting, _ = KNOBS[cause]
    theirs = first_update(broken(number_of(cause)).Trainer, seed, **{setting: value})
    ours = healthy_update(seed, setting, value)
    return ((theirs - ours).norm() / ours.norm()).item()


def sweep(cause: str) -> dict:
    """The error of the first update at each value: [value seed]."""
    setting, values = KNOBS[cause]
    errors = [[round(update_error(cause, v, s), 5) for s in SWEPT] for v in values]
    return {"setting": setting, "values": values, "errors": errors}


def record(name: str, rows: dict) -> None:
    """Enter rows in one of the records, one entry a line."""
    path = Path(cases.__file__).with_name(name)
    known = json.loads(path.read_text(encoding="utf-8")) | rows
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
        if defect.cause in KNOBS:
            record("sweeps.json", {defect.cause: sweep(defect.cause)})
        key = json.dumps(defect.settings, sort_keys=True)
        record("healthy_runs.json", {key: cases.run_healthy(key)})
    if not words:
        for each in COMPLAINTS.values():
            key = json.dumps(each.settings, sort_keys=True)
            record("healthy_runs.json", {key: cases.run_healthy(key)})
        rows = {name: asdict(run_probe(each)) for name, each in COURSE_PROBES.items()}
        record("matrix.json", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
