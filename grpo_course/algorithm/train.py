"""`train`: the loop with all that its settings ask for."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from grpo_course.algorithm.config import TrainConfig, require_config
from grpo_course.algorithm.history import History
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Batch, Policy, Rollout
from grpo_course.algorithm.variants.kl_control import AdaptiveKL, EarlyStop, KLInReward
from grpo_course.algorithm.variants.lengths import TruncatedMasked
from grpo_course.algorithm.variants.micro_batches import MicroBatches
from grpo_course.algorithm.variants.minibatches import Minibatches
from grpo_course.algorithm.variants.mismatch import SamplerCorrection
from grpo_course.algorithm.variants.old_log_probs import FirstStepOld, SamplerOld
from grpo_course.algorithm.variants.reference import SoftReference
from grpo_course.algorithm.variants.resampling import Resampling


def variants_for(config: TrainConfig) -> list[type[Trainer]]:
    """The variants that a config asks for; each replaces one method of the trainer.

    The first is the outermost: what it does comes after what the later ones did.
    """
    require_config(config)
    asked = {
        TruncatedMasked: config.mask_truncated,
        Resampling: config.num_resamples > 0,
        SamplerOld: config.old_log_probs_from == "sampler",
        FirstStepOld: config.old_log_probs_from == "first_step",
        KLInReward: config.kl_place == "reward",
        SamplerCorrection: config.sampler_cap is not None,
        EarlyStop: config.stop_kl is not None,
        Minibatches: config.minibatch_size is not None,
        MicroBatches: config.micro_batch_size is not None or config.skip_tied_groups,
        SoftReference: config.ref_mixture < 1,
        AdaptiveKL: config.kl_target is not None,
    }
    return [variant for variant, is_asked in asked.items() if is_asked]


def trainer_class(config: TrainConfig, kind: type[Trainer] = Trainer) -> type[Trainer]:
    """`kind` with all that a config asks for: a subclass of it and of the variants."""
    asked = variants_for(config)
    return type(kind.__name__, (*asked, kind), {}) if asked else kind


def collect(
    policy: Policy,
    prompts: Tensor,
    reward_fn: Callable[[Rollout], Tensor],
    config: TrainConfig,
) -> Batch:
    """One batch of int [batch pos], as the first epoch of a run would collect it."""
    nothing_moves = torch.optim.SGD([torch.zeros(1)])
    parts = (policy, prompts, reward_fn, nothing_moves, config)
    return trainer_class(config)(*parts).collect(prompts)


def train(
    policy: Policy,
    prompts: Tensor | Callable[[int], Tensor],
    reward_fn: Callable[[Rollout], Tensor],
    optimizer: torch.optim.Optimizer,
    config: TrainConfig,
    observe: Callable[[Any], dict | None] | None = None,
    watch: Callable[[History], None] | None = None,
    *,
    kind: type[Trainer] = Trainer,
    **more: Any,
) -> History:
    """Train a policy on groups of its own responses; arguments as `Trainer`.

    `kind` is another trainer, such as actor_critic.ppo.PPO, and `more` what it takes.
    """
    chosen = trainer_class(config, kind)
    parts = (policy, prompts, reward_fn, optimizer, config, observe, watch)
    return chosen(*parts, **more).train()
