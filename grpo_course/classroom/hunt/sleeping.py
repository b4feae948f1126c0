"""How far one rollout moves the weights from where a healthy one would."""

from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from grpo_course.checks import require_known
from grpo_course.classroom.hunt.broken import broken
from grpo_course.classroom.hunt.defects import number_of
from grpo_course.classroom.hunt.script import Trainer

WARM_UP = 3  # healthy rollouts before, so that the policy has left its reference
SHORTEST = ("min_numbers", (4, 3, 2))  # of up to 4: the shorter, the more padding
HEAT = ("temperature", (0.4, 0.6, 0.8, 1.0, 1.2, 1.5))
INNER = ("num_inner_steps", (1, 2, 4, 8))
PARTS = ("micro_batch_size", (64, 32, 16, 8, 4))
BETA = ("beta", (0.0, 0.02, 0.04, 0.1, 0.3, 1.0))
# Cause -> the setting that wakes it, and values to try.
KNOBS: dict[str, tuple[str, Sequence[float]]] = {
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
    update at all. Takes about 0.2 s.
    """
    require_known("cause", cause, KNOBS)
    setting, _ = KNOBS[cause]
    theirs = first_update(broken(number_of(cause)).Trainer, seed, **{setting: value})
    ours = healthy_update(seed, setting, value)
    return ((theirs - ours).norm() / ours.norm()).item()
