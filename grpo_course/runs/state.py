"""What a run must remember beside its model, to go on as if it had never stopped."""

import random
from pathlib import Path

import torch
from torch import Generator
from torch.optim.lr_scheduler import LRScheduler

from grpo_course.algorithm.loop import Trainer
from grpo_course.runs.checkpoint import STATE, CheckpointError


def save_state(
    folder: Path,
    trainer: Trainer,
    generator: Generator,
    schedule: LRScheduler,
    metrics_size: int,
) -> None:
    """Write optimizer, random numbers and place in the loop into one file."""
    torch.save(
        {
            "epoch": trainer.epoch,
            "beta": trainer.beta,
            "shuffle": trainer.shuffle.get_state(),
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "generator": generator.get_state(),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
            "python": random.getstate(),
            "metrics_size": metrics_size,
        },
        folder / STATE,
    )


def load_state(
    folder: Path, trainer: Trainer, generator: Generator, schedule: LRScheduler
) -> int:
    """Put all of it back. -> the size of the metrics file at that time

    Raises CheckpointError for a checkpoint that lies under the name of another epoch.
    """
    # Random states must stay on the CPU; the optimizer moves its own to the weights.
    saved = torch.load(folder / STATE, map_location="cpu", weights_only=True)
    if saved["epoch"] != int(folder.name):
        raise CheckpointError(
            f"{folder} holds the checkpoint of epoch {saved['epoch']}: it was copied "
            "or renamed. Remove that folder, and the run goes on from the one before."
        )
    trainer.optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
    generator.set_state(saved["generator"])
    trainer.shuffle.set_state(saved["shuffle"])
    trainer.epoch, trainer.beta = saved["epoch"], saved["beta"]
    torch.set_rng_state(saved["torch"])
    if len(saved["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(saved["cuda"])
    random.setstate(saved["python"])
    return saved["metrics_size"]
