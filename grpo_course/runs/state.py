"""What a run must remember beside its model, to go on as if it had never stopped."""

import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Generator
from torch.optim.lr_scheduler import LRScheduler

from grpo_course.loop import Trainer
from grpo_course.runs.checkpoint import STATE, CheckpointError

NEEDED = ("epoch", "lines", "data", "reference")  # before anything is put back


def save_state(
    folder: Path,
    trainer: Trainer,
    generator: Generator,
    schedule: LRScheduler,
    **more: Any,
) -> None:
    """Write optimizer, random numbers and place in the loop into one file.

    `more` is kept with them: what the run has written, and on what it trains.
    """
    torch.save(
        {
            "epoch": trainer.epoch,
            "beta": trainer.beta,
            "reference": mixed_reference(trainer),
            "shuffle": trainer.shuffle.get_state(),
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "generator": generator.get_state(),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
            "python": random.getstate(),
        }
        | more,
        folder / STATE,
    )


def mixed_reference(trainer: Trainer) -> dict[str, Any] | None:
    """The weights of a reference that no checkpoint holds, since it was mixed."""
    reference: Any = trainer.ref_policy
    if reference is None or trainer.config.ref_mixture == 1:
        return None
    return reference.model.state_dict()


def read_state(folder: Path, needed: Sequence[str] = NEEDED) -> dict[str, Any]:
    """What was saved. Raises CheckpointError for what no run of this course saved here.

    It holds all that is `needed`, of which the first is the place in the run. Random
    states must stay on the CPU; the optimizer moves its own to the weights.
    """
    try:
        saved = torch.load(folder / STATE, map_location="cpu", weights_only=True)
        at, *_ = [saved[name] for name in needed]
    except (pickle.UnpicklingError, KeyError, TypeError, RuntimeError) as error:
        raise CheckpointError(
            f"{folder / STATE} is not what this course writes ({type(error).__name__}):"
            " it was made by another version or another program, and code inside it is "
            f"not run. Remove {folder}, and the run goes on from the one before."
        ) from None
    if at != int(folder.name):
        raise CheckpointError(
            f"{folder} holds the checkpoint of {needed[0]} {at}: it was copied or "
            "renamed. Remove that folder, and the run goes on from the one before."
        )
    return saved


def put_back(
    saved: dict[str, Any],
    trainer: Trainer,
    generator: Generator,
    schedule: LRScheduler,
) -> None:
    """Put back what `save_state` took, but for the reference."""
    trainer.optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
    generator.set_state(saved["generator"])
    trainer.shuffle.set_state(saved["shuffle"])
    trainer.epoch, trainer.beta = saved["epoch"], saved["beta"]
    torch.set_rng_state(saved["torch"])
    if len(saved["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(saved["cuda"])
    random.setstate(saved["python"])
