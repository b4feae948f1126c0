"""Whether a repaired trainer behaves as the healthy one."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from grpo_course.classroom.hunt.script import Trainer

# Two rollouts in each of these; a defect that sleeps in one is awake in another.
TRIALS: tuple[dict, ...] = (
    {},
    {"seed": 1, "micro_batch_size": 8, "learning_rate": 0.02},
    {"seed": 2, "num_inner_steps": 1, "beta": 0.5},
    {"seed": 3, "temperature": 1.3, "max_new_tokens": 8, "beta": 0.5},
    {"seed": 4, "min_numbers": 2, "max_numbers": 2, "num_prompts": 3},
)
CLOSE = 1e-3  # of a weight or a reward; a step moves a weight by up to 5e-3
LOOKED_AT = ("tokens", "mask", "rewards", "deltas", "old_log_probs", "ref_log_probs")


def behaviour(make_trainer: Callable, settings: dict) -> dict[str, Tensor]:
    """The first rollout, then the weights after two. -> tensors by name"""
    trainer = make_trainer(**({"num_steps": 3} | settings))
    batch = trainer.collect()
    seen = {name: getattr(batch, name) for name in LOOKED_AT}
    trainer = make_trainer(**({"num_steps": 3} | settings))
    for _ in range(2):
        trainer.step()
    weights = [weight.detach().flatten() for weight in trainer.model.parameters()]
    return seen | {"weights after two rollouts": torch.cat(weights)}


@cache
def healthy_behaviour(trial: int) -> dict[str, Tensor]:
    """That of the healthy script in one of the trials."""
    return behaviour(Trainer, TRIALS[trial])


def compare(make_trainer: Callable) -> tuple[bool, str]:
    """Whether a trainer behaves as the healthy one, and a sentence that says how."""
    largest = 0.0
    for trial, settings in enumerate(TRIALS):
        try:
            theirs = behaviour(make_trainer, settings)
        except Exception as error:
            return False, f"It ends in {type(error).__name__}: {error}"
        for name, expected in healthy_behaviour(trial).items():
            gap = distance(theirs[name], expected)
            largest = max(largest, gap)
            if gap > CLOSE:
                return False, different(name, gap, settings)
    if largest == 0:
        return (
            True,
            f"It equals the healthy trainer bit for bit, in {len(TRIALS)} runs.",
        )
    return True, (
        f"It equals the healthy trainer to {largest:.0e} in {len(TRIALS)} runs (up to "
        f"{CLOSE:g} is rounding)."
    )


def distance(theirs: Tensor, expected: Tensor) -> float:
    """The largest difference; infinite where shapes differ or a number is none."""
    if theirs.shape != expected.shape:
        return float("inf")
    gap = (theirs.double() - expected.double()).abs().max().item()
    return gap if gap == gap else float("inf")


def different(name: str, gap: float, settings: dict) -> str:
    """What differs first, in words."""
    where = ", ".join(f"{key}={value}" for key, value in settings.items())
    words = "have another shape" if gap == float("inf") else f"differ by {gap:.2g}"
    return (
        f"Not healthy yet: {name} {words} with "
        f"{where or 'the settings as they are'}. What comes before is equal."
    )
