"""Responses that ran into the length limit: pay for it, or leave them out."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import as_bool_mask
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import (
    require_at_least,
    require_callable,
    require_same_shape,
    require_tensor,
)


def soft_overlong_penalty(lengths: Tensor, max_length: int, buffer: int) -> Tensor:
    """0 up to max_length - buffer tokens, -1 from max_length on, linear between.

    Any shape. DAPO: Yu et al. 2025, arXiv 2503.14476, equation 13. Raises ValueError
    for a buffer below 1 or above max_length.
    """
    require_tensor("lengths", lengths, "...")
    require_at_least("max_length", max_length, 1)
    require_at_least("buffer", buffer, 1)
    if buffer > max_length:
        raise ValueError(
            f"buffer={buffer} with max_length={max_length}: it is how many tokens "
            "before the limit the penalty begins, from 1 to max_length."
        )
    return ((max_length - buffer - lengths) / buffer).clamp(-1.0, 0.0)


def with_overlong_penalty(
    reward_fn: Callable[[Rollout], Tensor], max_length: int, buffer: int
) -> Callable[[Rollout], Tensor]:
    """A reward function that also pays for length: give it in place of reward_fn."""

    require_callable("reward_fn", reward_fn, "maps a rollout to rewards [batch trial]")

    def shaped(rollout: Rollout) -> Tensor:
        mask = as_bool_mask(rollout.mask, rollout.responses)
        penalty = soft_overlong_penalty(mask.sum(-1), max_length, buffer)
        return reward_fn(rollout) + penalty

    return shaped


def drop_truncated(rollout: Rollout) -> Rollout:
    """The rollout without the tokens of responses that did not finish.

    Their reward says little: the answer may have been one token away. They still
    count in the mean of their group and in the number of responses. DAPO calls it
    overlong filtering. Raises ValueError if the rollout does not say what finished.
    """
    if rollout.finished is None:
        raise ValueError(
            "mask_truncated=True needs rollout.finished, bool [batch trial]: False "
            "where a response was cut off before it ended. Fill it in policy.sample, "
            "or use mask_truncated=False."
        )
    mask = as_bool_mask(rollout.mask, rollout.responses)
    first = rollout.responses[..., 0]
    require_same_shape("finished", rollout.finished, "responses[..., 0]", first)
    return replace(rollout, mask=mask & rollout.finished[..., None].to(torch.bool))


class TruncatedMasked(Trainer):
    """Responses that were cut off are rewarded and compared, but not learned from."""

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        """After the reward function has seen all of them."""
        rollout, rewards = super().sample(prompts)
        return drop_truncated(rollout), rewards
