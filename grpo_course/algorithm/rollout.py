"""What flows through the loop: a rollout, a batch; and what it asks of a policy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor
from torch.optim import Optimizer

from grpo_course.algorithm.aggregation import aggregate, as_bool_mask, as_floats
from grpo_course.algorithm.config import require_config
from grpo_course.algorithm.validation import (
    require_axes,
    require_callable,
    require_finite,
    require_tensor,
)


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


@dataclass(frozen=True)
class Batch:
    """What the inner steps need to know about one rollout; nothing here has a graph."""

    rollout: Rollout
    rewards: Tensor  # [batch trial]
    deltas: Tensor  # [batch trial] or [batch trial pos]
    old_log_probs: Tensor | None = None  # [batch trial pos]; None: those of step one
    ref_log_probs: Tensor | None = None  # [batch trial pos]
    targets: Tensor | None = None  # [batch trial ...], of a critic


class Policy(Protocol):
    """Anything that can answer prompts and say how likely its answers were."""

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """Answer each prompt num_responses times."""

    def log_probs(self, rollout: Rollout) -> Tensor:
        """Log-probability of each token of the rollout. -> [batch trial pos]"""


def rollout_report(batch: Batch) -> dict[str, Tensor]:
    """What can be read off a rollout before any step; each value is [] or [seed].

    `tied_groups` is the share of groups that teach nothing. `sampled_entropy` is
    minus the mean log-probability of the sampled tokens, if pi_old or the sampler noted
    it: in nats a token, right on average, and all that can be had where responses
    cannot be enumerated.
    """
    rollout, rewards = batch.rollout, batch.rewards
    mask = as_bool_mask(rollout.mask, rollout.responses)
    report = {
        "mean_reward": rewards.mean(dim=(-2, -1)),
        "tied_groups": tied_groups(rewards).float().mean(dim=-1),
        "mean_length": mask.float().sum(dim=-1).mean(dim=(-2, -1)),
    }
    old = batch.old_log_probs
    noted = rollout.sampled_log_probs if old is None else old
    if noted is None:
        return report
    entropy = -aggregate(noted, rollout.mask, "token_mean")
    return report | {"sampled_entropy": entropy}


def tied_groups(rewards: Tensor) -> Tensor:
    """Where all rewards of a group are equal. [... batch trial] -> bool [... batch]"""
    return rewards.amax(dim=-1) == rewards.amin(dim=-1)


def require_parts(
    policy: object,
    prompts: object,
    reward_fn: object,
    optimizer: object,
    config: object,
) -> None:
    """Check that each part of a run is what it is passed as. Raises TypeError."""
    require_policy(policy)
    if not callable(prompts):
        require_tensor("prompts", prompts, "batch pos")
    require_callable("reward_fn", reward_fn, "maps a rollout to rewards [batch trial]")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(
            f"optimizer={optimizer!r} is none of torch's. Pass "
            "torch.optim.Adam(policy.model.parameters(), lr=...), say."
        )
    require_config(config)


def require_policy(policy: object) -> None:
    """Check that something can sample and score. Raises TypeError."""
    for name in ("sample", "log_probs"):
        if not callable(getattr(policy, name, None)):
            raise TypeError(
                f"policy is a {type(policy).__name__} without {name}(...). Wrap the "
                "model in a policy, such as SortPolicy or SequencePolicy."
            )


def checked_rewards(
    reward_fn: Callable[[Rollout], Tensor], rollout: Rollout, epoch: int
) -> Tensor:
    """What a reward function says of a rollout, as floats [... batch trial].

    Raises TypeError if either is not what it should be; ValueError if the rewards are
    not one finite number for each response. The message names the epoch.
    """
    if not isinstance(rollout, Rollout):
        raise TypeError(
            f"policy.sample returned a {type(rollout).__name__}, not a Rollout. Return "
            "Rollout(prompts, responses). Is its `return` missing?"
        )
    require_axes("responses", rollout.responses, "batch trial pos")
    rewards, expected = reward_fn(rollout), list(rollout.responses.shape[:-1])
    if not isinstance(rewards, Tensor):
        raise TypeError(
            f"in epoch {epoch}, reward_fn returned a {type(rewards).__name__}, not a "
            f"tensor. Return one number for each response, shape {expected}: "
            "torch.tensor(...). Is its `return` missing?"
        )
    if list(rewards.shape) != expected:
        raise ValueError(
            f"in epoch {epoch}, reward_fn returned shape {list(rewards.shape)}, but "
            f"responses has shape {list(rollout.responses.shape)}: return one number "
            f"for each response, {expected}."
        )
    require_finite(f"in epoch {epoch}, rewards", rewards)
    return as_floats(rewards.detach())


def checked_log_probs(log_probs: Tensor, rollout: Rollout) -> Tensor:
    """What a policy said of a rollout: one number a token. Raises ValueError if not."""
    require_tensor("what policy.log_probs returned", log_probs, "batch trial pos")
    if log_probs.shape != rollout.responses.shape:
        raise ValueError(
            f"policy.log_probs returned shape {list(log_probs.shape)}, but responses "
            f"has shape {list(rollout.responses.shape)}: return one number a token."
        )
    return log_probs
