"""Dynamic sampling: ask again where a group's rewards are tied."""

from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Rollout, tied_groups


class Resampling(Trainer):
    """A group whose rewards are all equal teaches nothing: ask its prompt again.

    Up to `num_resamples` times new responses to the same prompt take its place; what is
    tied after that stays. DAPO (Yu et al. 2025, arXiv 2503.14476) replaces the prompt
    as well. A reward function must find all it needs in the rollout: it sees some
    prompts only.
    """

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        """A rollout and its rewards [... batch trial]."""
        rollout, rewards = super().sample(prompts)
        for _ in range(self.config.num_resamples):
            tied = tied_groups(rewards)
            asked = tied.reshape(-1, tied.shape[-1]).any(dim=0).nonzero().squeeze(-1)
            if not len(asked):
                break
            fresh, again = super().sample(prompts[asked])
            rollout = replace_groups(rollout, fresh, tied, asked)
            rewards = put(rewards, again, tied[..., None], asked, axis=-2)
        return rollout, rewards


def replace_groups(
    rollout: Rollout, fresh: Rollout, tied: Tensor, asked: Tensor
) -> Rollout:
    """The rollout with the groups of `fresh`, int [asked], where bool [batch] is True.

    The shorter of the two is padded; padding is masked.
    """
    width = max(rollout.responses.shape[-1], fresh.responses.shape[-1])
    rollout, fresh = padded(rollout, width), padded(fresh, width)
    columns = {}
    for name in (f.name for f in fields(Rollout) if f.name != "prompts"):
        old, new = getattr(rollout, name), getattr(fresh, name)
        if old is not None:
            trailing = old.ndim - tied.ndim
            where = tied.reshape(*tied.shape, *[1] * trailing)
            columns[name] = put(old, new, where, asked, axis=-1 - trailing)
    return replace(rollout, **columns)


def put(old: Tensor, new: Tensor, where: Tensor, asked: Tensor, axis: int) -> Tensor:
    """`old` with rows `asked` of an axis taken from `new`, where that is True."""
    return torch.where(where, old.index_copy(axis, asked, new), old)


def padded(rollout: Rollout, width: int) -> Rollout:
    """The rollout with responses of that many positions."""
    extra = width - rollout.responses.shape[-1]
    if extra == 0:
        return rollout
    mask = rollout.mask
    if mask is None:
        mask = torch.ones_like(rollout.responses, dtype=torch.bool)
    columns = {"responses": rollout.responses, "mask": mask}
    if rollout.sampled_log_probs is not None:
        columns["sampled_log_probs"] = rollout.sampled_log_probs
    wider: dict[str, Any] = {k: pad(v, (0, extra)) for k, v in columns.items()}
    return replace(rollout, **wider)
