"""TRL's step between sampling and learning, on tensors of ours."""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from grpo_course.trl import bare_trainer, flat


@pytest.fixture(scope="session")
def trl_step():
    """`advantages`, `sampler_weights` and `plain_parts`, which are functions."""
    return SimpleNamespace(
        advantages=advantages, sampler_weights=sampler_weights, plain_parts=plain_parts
    )


def advantages(args: object, rewards: Tensor) -> Tensor:
    """What TRL's GRPOTrainer makes of rewards: its advantages, [batch trial]."""
    return step(args, rewards)["advantages"].reshape(rewards.shape)


def sampler_weights(
    args: object, old_log_probs: Tensor, sampled_log_probs: Tensor
) -> Tensor:
    """TRL's correction for vLLM as the sampler. All [batch trial pos], no padding."""
    rewards = torch.zeros(old_log_probs.shape[:-1])
    made = step(args, rewards, flat(old_log_probs), flat(sampled_log_probs))
    return made["importance_sampling_ratio"].reshape(old_log_probs.shape)


def plain_parts() -> dict[str, object]:
    """What a trainer has besides its arguments, where nothing is special.

    New ones at each call: the trainer writes its logs into them.
    """
    return {
        "_tokenizer": SimpleNamespace(pad_token_id=0),
        "reward_weights": torch.ones(1),
        "reward_func_names": ["reward"],
        "reward_funcs": [None],
        "environment_factories": None,
        "environments": None,
        "tools": [],
        "ref_model": None,
        "_logs": defaultdict(list) | {"rewards": defaultdict(list)},
        "_pending_extra_logs": {},
        "_pending_metrics": {},
    }


def step(
    args: object,
    rewards: Tensor,
    old: Tensor | None = None,
    sampled: Tensor | None = None,
) -> dict:
    """The batch that TRL learns from, of rewards [batch trial].

    `old` and `sampled` are log-probs [(batch trial) pos] of a vLLM that is not there.
    """
    rows = rewards.numel()
    pos = 1 if old is None else old.shape[-1]
    ids, prompts = [[0] * pos] * rows, [[0]] * rows
    noted = None if sampled is None else sampled.tolist()
    trainer = bare_trainer(args, use_vllm=sampled is not None)
    vars(trainer).update(
        _generate=lambda _: (prompts, ids, None, ids, noted, {}, None, None),
        _calculate_rewards=lambda *_: rewards.reshape(rows, 1),
        _get_per_token_logps_and_entropies=lambda *_, **__: (old, None, None),
        **plain_parts(),
    )
    return trainer._generate_and_score_completions([{"prompt": ""}] * rows)
