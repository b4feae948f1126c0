"""What a policy hands to the loop, and what the loop asks of a policy."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from grpo_course.algorithm.validation import require_finite


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


def require_parts(
    policy: object, prompts: object, reward_fn: object, config: object
) -> None:
    """Check that each part of a run is what it is passed as. Raises TypeError."""
    for name in ("sample", "log_probs"):
        if not callable(getattr(policy, name, None)):
            raise TypeError(
                f"policy is a {type(policy).__name__} without {name}(...). Wrap the "
                "model in a policy, such as SortPolicy or SequencePolicy."
            )
    if not (isinstance(prompts, Tensor) or callable(prompts)):
        raise TypeError(
            f"prompts is a {type(prompts).__name__}. Pass a tensor [batch pos], "
            "torch.tensor(...), or a function of the epoch that returns one."
        )
    if not callable(reward_fn):
        raise TypeError(
            f"reward_fn={reward_fn!r} is not a function. Pass one that maps a rollout "
            "to rewards [batch trial]."
        )
    if not hasattr(config, "num_epochs"):
        raise TypeError(f"config is a {type(config).__name__}: pass a TrainConfig.")


def checked_rewards(rewards: object, rollout: Rollout, epoch: int) -> Tensor:
    """What a reward function returned, as floats [... batch trial].

    Raises TypeError if it is no tensor; ValueError if it is not one number for each
    response, or one that is not finite. The message names the epoch.
    """
    expected = list(rollout.responses.shape[:-1])
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
    return rewards if rewards.is_floating_point() else rewards.float()
