"""Whether a run fits the machine, and what to change where it does not."""

import os
from collections.abc import Iterator
from dataclasses import replace

import torch

from grpo_course.lm import find_device
from grpo_course.runs.memory import Shape, estimate, memory_table, sizes_of
from grpo_course.training import GRPOConfig

RANK = 16  # of the adapter that is proposed
# The estimate is good to about a quarter; a run that needs twice of what is there, by
# it, cannot be one that fits.
IMPOSSIBLE = 2.0
MOST = "most at once"


def require_memory(config: GRPOConfig) -> None:
    """Say what a run will need, and what would need less.

    Raises ValueError, before anything is loaded, for a run that cannot fit.
    """
    shape, tokens = sizes_of(config)
    parts = estimate(shape, config, tokens)
    print(memory_table(shape, parts, tokens))
    need, there = parts[MOST], memory_of(find_device(config.device))
    advice = cures(shape, config, tokens)
    if there and need > IMPOSSIBLE * there:
        raise ValueError(
            f"the run needs about {in_words(need)}, and this machine has "
            f"{in_words(there)}. Lower num_prompts={config.num_prompts}, "
            f"num_responses={config.num_responses} or "
            f"max_new_tokens={config.max_new_tokens}. {advice}"
        )
    if there and need > there:
        print(f"That may be more than this machine has: {in_words(there)}.")
    if config.model is not None or (there and need > there):
        print(f"The run needs about {in_words(need)}. {advice}".rstrip())


def memory_of(device: str) -> int | None:
    """Bytes of a device, used ones too; None where nobody says."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    if torch.device(device).type != "cpu" or not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def cures(shape: Shape, config: GRPOConfig, prompt_tokens: int) -> str:
    """What needs less memory, each beside the ones before, and how much then."""
    told, last = [], estimate(shape, config, prompt_tokens)[MOST]
    for flag, smaller in smaller_runs(config):
        need = estimate(shape, smaller, prompt_tokens)[MOST]
        if need < last:
            told.append(f"{flag} ({in_words(need)})")
            last = need
    return f"To need less: {', then '.join(told)}." if told else ""


def smaller_runs(config: GRPOConfig) -> Iterator[tuple[str, GRPOConfig]]:
    """The same run with one thing after the other that saves memory: flag and config.

    None of them changes what is learned, but for the last.
    """
    config = replace(config, micro_batch_size=1)
    yield "--micro-batch-size 1", config
    config = replace(config, gradient_checkpointing=True)
    yield "--gradient-checkpointing True", config
    fixed = config.compute_ref_model_period >= config.num_epochs
    if config.model is not None and fixed and config.ref_mixture == 1:
        yield f"--lora-rank {RANK}", replace(config, lora_rank=config.lora_rank or RANK)


def in_words(size: float) -> str:
    """Bytes as one reads them."""
    return f"{size / 1e9:,.1f} GB" if size > 1e9 else f"{size / 1e6:,.1f} MB"
