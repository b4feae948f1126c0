"""What a run must remember beside its model, to go on as if it had never stopped."""

import random
from pathlib import Path

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from grpo_course.algorithm.loop import LoopState
from grpo_course.gsm8k.policy import CausalPolicy

FILE = "training.pt"


def save_state(
    folder: Path,
    state: LoopState,
    policy: CausalPolicy,
    optimizer: Optimizer,
    schedule: LRScheduler,
    metrics_size: int,
) -> None:
    """Write optimizer, random numbers and place in the loop into one file."""
    torch.save(
        {
            "epoch": state.epoch,
            "beta": state.beta,
            "shuffle": state.shuffle.get_state() if state.shuffle else None,
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "generator": policy.generator.get_state(),
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
            "python": random.getstate(),
            "metrics_size": metrics_size,
        },
        folder / FILE,
    )


def load_state(
    folder: Path,
    policy: CausalPolicy,
    optimizer: Optimizer,
    schedule: LRScheduler,
) -> tuple[LoopState, int]:
    """Put all of it back. -> the place in the loop, and the size of the metrics"""
    # Random states must stay on the CPU; the optimizer moves its own to the weights.
    saved = torch.load(folder / FILE, map_location="cpu", weights_only=True)
    optimizer.load_state_dict(saved["optimizer"])
    schedule.load_state_dict(saved["schedule"])
    policy.generator.set_state(saved["generator"])
    torch.set_rng_state(saved["torch"])
    if len(saved["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(saved["cuda"])
    random.setstate(saved["python"])
    state = LoopState(epoch=saved["epoch"], beta=saved["beta"])
    if saved["shuffle"] is not None:
        state.shuffle = torch.Generator()
        state.shuffle.set_state(saved["shuffle"])
    return state, saved["metrics_size"]
