"""What a policy hands to the loop, and what the loop asks of a policy."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import aggregate


@dataclass(frozen=True)
class Rollout:
    """The responses sampled for a batch of prompts.

    prompts: whatever the policy reads; int [batch pos] in the sort world.
    responses: int [batch trial pos], the sampled tokens.
    mask: bool [batch trial pos], True where a token counts; None if all do.
    """

    prompts: Tensor
    responses: Tensor
    mask: Tensor | None = None


class Policy(Protocol):
    """Anything that can answer prompts and say how likely its answers were."""

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """Answer each prompt num_responses times."""

    def log_probs(self, rollout: Rollout) -> Tensor:
        """Log-probability of each token of the rollout. -> [batch trial pos]"""


def rollout_report(rollout: Rollout, rewards: Tensor, log_probs: Tensor) -> dict:
    """What can be read off a rollout before any step; each value is [] or [seed].

    `tied_groups` is the share of groups that teach nothing. `sampled_entropy` is
    minus the mean log-probability of the sampled tokens: in nats a token, right on
    average, and all that can be had where responses cannot be enumerated.
    """
    tied = rewards.amax(dim=-1) == rewards.amin(dim=-1)
    mask = torch.ones_like(log_probs) if rollout.mask is None else rollout.mask
    return {
        "mean_reward": rewards.mean(dim=(-2, -1)),
        "tied_groups": tied.float().mean(dim=-1),
        "sampled_entropy": -aggregate(log_probs, rollout.mask, "token_mean"),
        "mean_length": mask.float().sum(dim=-1).mean(dim=(-2, -1)),
    }
