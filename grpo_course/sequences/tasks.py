"""What the tiny language model is asked to do, and what it is paid for."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import (
    require_at_least,
    require_axes,
    require_same_shape,
)

LENGTH = 3  # of the sort task: three of the numbers 0 to 5
ASK = 6  # the token after the numbers: now answer


def token_share(responses: Tensor, mask: Tensor | None, token: int) -> Tensor:
    """The share of one token among those that count. [... pos] -> [...]

    int responses and bool mask [... batch trial pos] (None: all count) give float
    [... batch trial]. An empty response has a share of 0.
    """
    require_axes("responses", responses, "pos")
    require_at_least("token", token, 0)
    mask = torch.ones_like(responses, dtype=torch.bool) if mask is None else mask
    require_same_shape("mask", mask, "responses", responses)
    hits = ((responses == token) & mask).sum(dim=-1)
    return hits / mask.sum(dim=-1).clamp(min=1)


def share_reward(token: int) -> Callable[[Rollout], Tensor]:
    """A reward for the loop: the share of `token` in each response, from 0 to 1."""
    return lambda rollout: token_share(rollout.responses, rollout.mask, token)


def all_sort_prompts() -> Tensor:
    """Every list of three of the numbers 0 to 5, then ASK. -> int [216 4]

    ASK says that the answer comes next. Without such a token the model must count.
    """
    numbers = torch.cartesian_prod(*[torch.arange(ASK)] * LENGTH)
    return torch.cat([numbers, torch.full((len(numbers), 1), ASK)], dim=-1)


def sorted_numbers(prompts: Tensor) -> Tensor:
    """The right answers. int [batch pos+1] -> int [batch pos]"""
    return prompts[..., :-1].sort(dim=-1).values


def has_repeat(prompts: Tensor) -> Tensor:
    """Where a number stands twice. int [batch pos+1] -> bool [batch]"""
    ordered = sorted_numbers(prompts)
    return (ordered[..., 1:] == ordered[..., :-1]).any(dim=-1)


def place_reward(rollout: Rollout) -> Tensor:
    """The share of places that hold the right number. -> [... batch trial]"""
    truth = sorted_numbers(rollout.prompts)[:, None, :]
    return (rollout.responses == truth).float().mean(dim=-1)


def found_and_ordered_reward(rollout: Rollout) -> Tensor:
    """A point for each prompt number found, one for each ordered pair; as a share.

    One number of the response may be found for two equal ones of the prompt: that
    is its hole, for a policy to find. -> [... batch trial], from 0 to 1
    """
    wanted, responses = rollout.prompts[:, None, :-1, None], rollout.responses
    found = (wanted == responses[..., None, :]).any(dim=-1)
    ordered = responses[..., 1:] >= responses[..., :-1]
    points = found.sum(dim=-1) + ordered.sum(dim=-1)
    return points / (found.shape[-1] + ordered.shape[-1])


def is_sorted(prompts: Tensor, answers: Tensor) -> Tensor:
    """Whether an answer is its prompt, sorted. [... batch pos] -> bool [... batch]"""
    return (answers == sorted_numbers(prompts)).all(dim=-1)
