"""From rewards and values to one delta a token: TD errors and their discounted sum."""

from collections.abc import Iterator

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import (
    TOKEN_AXES,
    as_bool_mask,
    as_floats,
    hide,
)
from grpo_course.algorithm.deltas import SPREAD_EPSILON
from grpo_course.algorithm.kl import as_beta
from grpo_course.algorithm.validation import (
    require_axes,
    require_inside,
    require_log_probs,
    require_one_each,
    require_ref_log_probs,
    require_same_shape,
)

# The ranges of both knobs: a reward at the end of a response is usually not discounted.
GAMMA, LAM = {"above": 0, "at most": 1}, {"at least": 0, "at most": 1}


def td_errors(
    rewards: Tensor,
    values: Tensor,
    gamma: float = 1.0,
    mask: Tensor | None = None,
    bootstrap: Tensor | None = None,
) -> Tensor:
    """Reward plus discounted next value minus value: [... batch trial pos].

    `rewards` and `values` have one entry a token; a value is the critic's guess
    before the token is written. `mask` is False on padding, and on tokens that the
    policy did not write, such as the answer of a tool: they are passed over.

    After the last token there is nothing to expect, unless the response was cut off
    there and would have gone on. `bootstrap` [... batch trial] is the critic's guess
    after the last token, zero where a response ended. A limit that belongs to the
    task is an end: Pardo et al. 2018, arXiv 1712.00378.

    Raises ValueError for shapes that do not line up, and for gamma outside (0, 1].
    """
    require_axes("rewards", rewards, "pos")
    require_axes("values", values, "pos")
    if rewards.shape != values.shape:
        raise ValueError(
            f"rewards have shape {list(rewards.shape)}, but values have shape "
            f"{list(values.shape)}: each token needs one of both. A reward for the "
            "whole response goes to its last token: reward_per_token."
        )
    require_inside("gamma", gamma, GAMMA)
    mask = as_bool_mask(mask, values)
    rewards, values = (hide(as_floats(x), mask) for x in (rewards, values))
    after = next_values(values, mask, bootstrap)
    return hide(rewards + gamma * after - values, mask)


def next_values(values: Tensor, mask: Tensor, bootstrap: Tensor | None) -> Tensor:
    """The value of the next token under the mask, after the last one `bootstrap`."""
    after = torch.zeros_like(values[..., 0])
    if bootstrap is not None:
        require_same_shape("bootstrap", bootstrap, "values[..., 0]", after)
        after = as_floats(bootstrap)
    backwards = []
    for value, kept in from_the_end(values, mask):
        backwards.append(after)
        after = torch.where(kept, value, after)
    return torch.stack(backwards[::-1], dim=-1)


def from_the_end(values: Tensor, mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The entries of one position after another, from the last to the first."""
    return zip(reversed(values.unbind(-1)), reversed(mask.unbind(-1)), strict=True)


def generalized_advantages(
    rewards: Tensor,
    values: Tensor,
    gamma: float = 1.0,
    lam: float = 0.95,
    mask: Tensor | None = None,
    bootstrap: Tensor | None = None,
) -> Tensor:
    """GAE: the TD errors from a token on, each step weighed by gamma * lam.

    Arguments as `td_errors`. lam = 0 is the TD error (little noise, as wrong as the
    critic), lam = 1 the return minus the value (right on average, noisy). Only tokens
    under the mask are steps; the others get zero, as in verl.
    Schulman et al. 2015, arXiv 1506.02438.

    Raises as `td_errors`, and ValueError for lam outside [0, 1].
    """
    require_inside("lam", lam, LAM)
    errors = td_errors(rewards, values, gamma, mask, bootstrap)
    mask, backwards = as_bool_mask(mask, errors), []
    advantage = torch.zeros_like(errors[..., 0])
    for error, kept in from_the_end(errors, mask):
        advantage = torch.where(kept, error + gamma * lam * advantage, advantage)
        backwards.append(advantage)
    return hide(torch.stack(backwards[::-1], dim=-1), mask)


def reward_per_token(
    rewards: Tensor, like: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The reward of a response, given at its last token; zero before and after.

    rewards [... batch trial], `like` and `mask` [... batch trial pos]. A response
    whose mask is empty has no token to give it to, and gets none.
    """
    require_axes("like", like, "batch trial pos")
    require_one_each("rewards", rewards, like)
    mask = as_bool_mask(mask, like)
    to_the_end = mask.flip(-1).cumsum(-1).flip(-1)  # tokens from here on
    is_last = mask & (to_the_end == 1)
    return torch.where(is_last, rewards[..., None], 0.0)


def kl_per_token(
    token_rewards: Tensor,
    log_probs: Tensor,
    ref_log_probs: Tensor,
    coefficient: float | Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """KL in the reward, paid where it arises: minus beta log(pi/ref) at each token.

    All [... batch trial pos]; beta is a number, or [seed] where seeds train
    together. The sum over a response is that of `algorithm.kl.kl_reward`.
    Ziegler et al. 2019, arXiv 1909.08593.
    """
    require_same_shape("token_rewards", token_rewards, "log_probs", log_probs)
    require_ref_log_probs(ref_log_probs, log_probs)
    mask = as_bool_mask(mask, log_probs)
    new, ref = hide(log_probs.detach(), mask), hide(ref_log_probs, mask)
    require_log_probs(log_probs=new, ref_log_probs=ref)
    beta = as_beta(coefficient, new)[..., None, None, None]
    return token_rewards - beta * (new - ref)


def whiten(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean zero and spread one over all tokens of a batch: [... batch trial pos].

    The sample spread, over the tokens under the mask; each seed by itself. As in
    `algorithm.deltas.center` a first value is taken off before averaging, so that
    tied values give exactly zero.
    """
    require_axes("values", values, "batch trial pos")
    values, mask = as_floats(values), as_bool_mask(mask, values)
    count = mask.sum(TOKEN_AXES, keepdim=True)
    shifted = hide(values - first_kept(values, mask), mask)
    mean = shifted.sum(TOKEN_AXES, keepdim=True) / count.clamp(min=1)
    centered = hide(shifted - mean, mask)
    squares = centered.square().sum(TOKEN_AXES, keepdim=True)
    spread = (squares / (count - 1).clamp(min=1)).sqrt()
    return centered / (spread + SPREAD_EPSILON)


def first_kept(values: Tensor, mask: Tensor) -> Tensor:
    """The first value under the mask. [... batch trial pos] twice -> [... 1 1 1]"""
    first = mask.flatten(-3).int().argmax(dim=-1, keepdim=True)
    return values.flatten(-3).gather(-1, first)[..., None, None]
