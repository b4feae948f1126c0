"""What a policy hands to the loop, and what the loop asks of a policy."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from grpo_course.algorithm.aggregation import aggregate, as_bool_mask


@dataclass(frozen=True)
class Rollout:
    """The responses sampled for a batch of prompts.

    prompts: whatever the policy reads; int [batch pos] in the sort world.
    responses: int [batch trial pos], the sampled tokens.
    mask: bool [batch trial pos], True where a token counts; None if all do.
    sampled_log_probs: [batch trial pos], what the sampler itself said of its tokens;
        None if it did not note it.
    finished: bool [batch trial], False where a response was cut off before it ended;
        None if nobody looked.
    """

    prompts: Tensor
    responses: Tensor
    mask: Tensor | None = None
    sampled_log_probs: Tensor | None = None
    finished: Tensor | None = None


class Policy(Protocol):
    """Anything that can answer prompts and say how likely its answers were."""

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """Answer each prompt num_responses times."""

    def log_probs(self, rollout: Rollout) -> Tensor:
        """Log-probability of each token of the rollout. -> [batch trial pos]"""


def tied_groups(rewards: Tensor) -> Tensor:
    """Where all rewards of a group are equal. [... batch trial] -> bool [... batch]"""
    return rewards.amax(dim=-1) == rewards.amin(dim=-1)


def rollout_report(rollout: Rollout, rewards: Tensor, old: Tensor | None) -> dict:
    """What can be read off a rollout before any step; each value is [] or [seed].

    `tied_groups` is the share of groups that teach nothing. `sampled_entropy` is
    minus the mean log-probability of the sampled tokens, if pi_old or the sampler noted
    it: in nats a token, right on average, and all that can be had where responses
    cannot be enumerated.
    """
    mask = as_bool_mask(rollout.mask, rollout.responses)
    report = {
        "mean_reward": rewards.mean(dim=(-2, -1)),
        "tied_groups": tied_groups(rewards).float().mean(dim=-1),
        "mean_length": mask.float().sum(dim=-1).mean(dim=(-2, -1)),
    }
    noted = rollout.sampled_log_probs if old is None else old
    if noted is None:
        return report
    entropy = -aggregate(noted, rollout.mask, "token_mean")
    return report | {"sampled_entropy": entropy}
