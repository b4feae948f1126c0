"""TRL's own loss, on tensors of yours.

TRL keeps it inside its trainer, between tokenizing and logging. A trainer made without
its constructor, with only what that method reads, runs it unchanged.
"""

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from grpo_course.engines.require import require_trl


def trl_loss(
    args: Any,
    log_probs: Tensor,
    deltas: Tensor,
    mask: Tensor,
    *,
    old_log_probs: Tensor | None = None,
    ref_log_probs: Tensor | None = None,
    sampler_weights: Tensor | None = None,
) -> Tensor:
    """What TRL's GRPOTrainer would minimize: a scalar, differentiable in log_probs.

    `args` is a trl.GRPOConfig. Shapes as in `compute_loss`: deltas [batch trial],
    all others [batch trial pos]. Without old_log_probs the batch is on-policy.
    """
    new, mask = flat(log_probs), flat(mask)
    trainer = bare_trainer(args, use_vllm=sampler_weights is not None)
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (
        new,
        torch.zeros_like(new).detach(),
        None,
    )
    inputs = {
        "prompt_ids": torch.zeros(len(new), 1, dtype=torch.long),
        "prompt_mask": torch.ones(len(new), 1, dtype=torch.long),
        "completion_ids": torch.zeros(new.shape, dtype=torch.long),
        "completion_mask": mask.long(),
        "advantages": deltas.flatten(),
        "num_items_in_batch": mask.sum(),
        "old_per_token_logps": flat_or_none(old_log_probs),
        "ref_per_token_logps": flat_or_none(ref_log_probs),
        "importance_sampling_ratio": flat_or_none(sampler_weights),
    }
    return trainer._compute_loss(None, inputs)


def flat(rows: Tensor) -> Tensor:
    """[batch trial pos] -> [(batch trial) pos]"""
    return rearrange(rows, "b t pos -> (b t) pos")


def flat_or_none(rows: Tensor | None) -> Tensor | None:
    """The same, for what may be left out."""
    return None if rows is None else flat(rows)


def bare_trainer(args: Any, use_vllm: bool = False) -> Any:
    """A GRPOTrainer without model, data or optimizer: what its loss reads, no more."""
    from accelerate import Accelerator

    trainer = object.__new__(require_trl().GRPOTrainer)
    vars(trainer).update(vars(args))  # the constructor copies most of them too
    vars(trainer).update(
        args=args,
        use_vllm=use_vllm,
        epsilon_low=args.epsilon,
        epsilon_high=args.epsilon if args.epsilon_high is None else args.epsilon_high,
        aux_loss_enabled=False,
        _entropy_bonus_enabled=False,
        current_gradient_accumulation_steps=1,
        model=SimpleNamespace(training=True, is_gradient_checkpointing=False),
        accelerator=Accelerator(cpu=True),
        _metrics={"train": defaultdict(list)},
    )
    return trainer
