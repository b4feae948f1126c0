"""What puts a small piece, broken or repaired, into a training run."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from grpo_course.algorithm.deltas import normalize
from grpo_course.algorithm.history import History
from grpo_course.algorithm.losses import clipped_loss
from grpo_course.sorting.policy_gradient import run_policy_gradient
from grpo_course.sorting.rewards import sort_distance_reward

# What every run of the hunt has, unless it says otherwise.
BASE: dict[str, Any] = {
    "deltas_mode": "normalized_rewards",
    "reward_fn": sort_distance_reward,
    "init_scale": 0.1,
    "seeds": range(16),
}


def run_with(table: dict, mode: str, entry: Callable, **knobs: Any) -> History:
    """Train the sort task with `entry` in a table of modes (LOSS_MODES, say).

    `mode` is the argument that chooses from the table; knobs go before BASE. The table
    is left as it was.
    """
    table["under test"] = entry
    try:
        return run_policy_gradient(**(BASE | knobs | {mode: "under test"}))
    finally:
        del table["under test"]


def seeds_as_batch(piece: Callable) -> Callable:
    """A function of one seed's tensors [batch ...], made to work for all seeds at once.

    The seed axis is folded into the batch, so `piece` never sees it; arguments that
    are no tensors are passed on. [seed batch ...] -> the same shape
    """

    def all_seeds(*args: object) -> Tensor:
        folded = [x.flatten(0, 1) if isinstance(x, Tensor) else x for x in args]
        return piece(*folded).view_as(args[0])

    return all_seeds


def as_loss(piece: Callable, *options: str) -> Callable:
    """A loss of [batch trial pos] tensors as an entry of LOSS_MODES.

    `piece` is called as its exercise calls it: log_probs, deltas and old_log_probs by
    position, one delta a token, then the named options.
    """

    def loss(
        log_probs: Tensor, deltas: Tensor, *, old_log_probs: Tensor, **given: object
    ) -> Tensor:
        tensors = log_probs, deltas.expand_as(log_probs), old_log_probs
        call = piece if log_probs.ndim == 3 else seeds_as_batch(piece)
        return call(*tensors, *(given[name] for name in options))

    return loss


def reread(score: Callable, log_probs: Tensor) -> Tensor:
    """Log-probs of sampled tokens, as `score` reads them off logits. [... pos] -> same

    `score` takes logits and tokens, as a language model has them: the logits at t are
    the forecast of token t + 1. Each token is number 0 of a vocabulary of two.
    """
    rows = log_probs.detach().flatten(0, -2)
    forecasts = torch.cat([rows, rows[:, :1]], dim=-1)  # after the last, another row
    rest = torch.log1p(-forecasts.exp().clamp(max=1 - 1e-6))
    logits = torch.stack([forecasts, rest], dim=-1)
    tokens = torch.zeros_like(forecasts, dtype=torch.long)
    return score(logits, tokens).view_as(log_probs)


def rereading_loss(score: Callable) -> Callable:
    """The clipped loss, its old log-probabilities read by `score`."""

    def loss(
        log_probs: Tensor, deltas: Tensor, *, old_log_probs: Tensor, **clip: float
    ) -> Tensor:
        old = reread(score, old_log_probs)
        return clipped_loss(log_probs, deltas, old_log_probs=old, **clip)

    return loss


def deltas_from_rows(repeat_rows: Callable) -> Callable:
    """Normalized deltas of one flat list of rows, in the order of `repeat_rows`, cut
    into groups of neighbours."""

    def to_deltas(rewards: Tensor) -> Tensor:
        batch, trial = rewards.shape[-2:]
        prompts = torch.arange(batch)[:, None]  # each prompt is its own number
        order = repeat_rows(prompts, trial).flatten()
        place = order.argsort(stable=True)  # of each response in the flat list
        rows = rewards.flatten(-2)[..., place.argsort()]
        deltas = normalize(rows.view(rewards.shape)).flatten(-2)
        return deltas[..., place].view(rewards.shape)

    return to_deltas
