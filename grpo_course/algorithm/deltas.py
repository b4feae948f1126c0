"""Deltas: how much each response of a group counts, and with which sign."""

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import as_floats
from grpo_course.algorithm.validation import require_axes, require_finite, require_known

SPREAD_EPSILON = 1e-4  # added to a spread before dividing; in units of the reward


def center(rewards: Tensor) -> Tensor:
    """Reward minus the mean reward of its group. [batch trial] -> [batch trial]

    The first reward is taken off before averaging. That changes nothing on paper;
    in floating point it makes tied rewards give exactly zero, whatever they are.
    """
    shifted = rewards - rewards[..., :1]
    return shifted - shifted.mean(dim=-1, keepdim=True)


def group_spread(rewards: Tensor) -> Tensor:
    """Sample standard deviation (over G - 1) of a group. [batch trial] -> [batch 1]"""
    squares = center(rewards).square().sum(dim=-1, keepdim=True)
    return (squares / (rewards.shape[-1] - 1)).sqrt()


def batch_spread(rewards: Tensor) -> Tensor:
    """Sample standard deviation of all rewards of a batch. [batch trial] -> [1 1]"""
    return rewards.std(dim=(-2, -1), keepdim=True)


def is_group_max(rewards: Tensor) -> Tensor:
    """Which responses have the best reward of their group. [batch trial] -> bool"""
    return rewards == rewards.max(dim=-1, keepdim=True).values


def keep_rewards(rewards: Tensor) -> Tensor:
    """The rewards themselves: no baseline. [batch trial] -> [batch trial]"""
    return rewards


def normalize(rewards: Tensor) -> Tensor:
    """Centered rewards in units of the group's spread. [batch trial] -> [batch trial]

    GRPO: Shao et al. 2024, arXiv 2402.03300.
    """
    return center(rewards) / (group_spread(rewards) + SPREAD_EPSILON)


def keep_max(rewards: Tensor) -> Tensor:
    """The reward where it is the best of its group, else zero: no baseline.

    [batch trial] -> [batch trial]
    """
    return torch.where(is_group_max(rewards), rewards, torch.zeros_like(rewards))


def keep_centered_max(rewards: Tensor) -> Tensor:
    """The centered reward where it is the best of its group, else zero.

    [batch trial] -> [batch trial]
    """
    return torch.where(
        is_group_max(rewards), center(rewards), torch.zeros_like(rewards)
    )


def leave_one_out(rewards: Tensor) -> Tensor:
    """Reward minus the mean of the group's others. [batch trial] -> [batch trial]

    RLOO: Ahmadian et al. 2024, arXiv 2402.14740.
    """
    return center(rewards) * rewards.shape[-1] / (rewards.shape[-1] - 1)


def normalize_by_batch(rewards: Tensor) -> Tensor:
    """Centered by group, in units of the batch's spread. [batch trial] -> [batch trial]

    Liu et al. 2025, arXiv 2508.08221.
    """
    return center(rewards) / (batch_spread(rewards) + SPREAD_EPSILON)


def whiten(rewards: Tensor) -> Tensor:
    """Centered by group, then in units of the spread of all centered rewards.

    [batch trial] -> [batch trial].
    REINFORCE++ with a group baseline: Hu et al. 2025, arXiv 2501.03262. Trainers that
    whiten over tokens weigh a response by its length in this spread; here each
    response counts once.
    """
    return center(rewards) / (batch_spread(center(rewards)) + SPREAD_EPSILON)


def softmax_weights(rewards: Tensor) -> Tensor:
    """Positive weights that sum to one in each group: no baseline.

    [batch trial] -> [batch trial]
    """
    return rewards.softmax(dim=-1)


def centered_softmax_weights(rewards: Tensor) -> Tensor:
    """Softmax weights minus their mean, which is 1/G. [batch trial] -> [batch trial]"""
    return center(rewards.softmax(dim=-1))


DELTA_MODES = {
    "rewards": keep_rewards,
    "centered_rewards": center,
    "normalized_rewards": normalize,
    "max_rewards": keep_max,
    "centered_max_rewards": keep_centered_max,
    "leave_one_out": leave_one_out,
    "batch_normalized_rewards": normalize_by_batch,
    "whitened_rewards": whiten,
    "softmax_rewards": softmax_weights,
    "centered_softmax_rewards": centered_softmax_weights,
}
MODES_WITHOUT_GROUP = {"rewards"}  # they compare a response with no other


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    """Turn the rewards of each group into deltas. [batch trial] -> [batch trial]

    A group is one row: the G responses to one prompt. `mode` is a key of
    DELTA_MODES. Except for "rewards", "max_rewards" and "softmax_rewards", a group
    whose rewards are tied gets deltas of exactly zero. Leading axes pass through.

    Raises ValueError for an unknown mode, a missing axis, a reward that is not
    finite, and a group of one where the mode compares responses.
    """
    require_known("mode", mode, DELTA_MODES)
    require_axes("rewards", rewards, "batch trial")
    require_finite("rewards", rewards)
    if rewards.shape[-1] == 1 and mode not in MODES_WITHOUT_GROUP:
        raise ValueError(
            f"rewards has shape {list(rewards.shape)}: a group of one response has "
            f"nothing to be compared with, so mode={mode!r} cannot work. "
            "Sample at least two responses for each prompt."
        )
    return DELTA_MODES[mode](as_floats(rewards))


def deltas_per_token(deltas: Tensor, log_probs: Tensor) -> Tensor:
    """Deltas [... batch trial] as [... batch trial 1]; per-token ones as they are."""
    require_axes("deltas", deltas, "batch trial")
    if deltas.ndim == log_probs.ndim - 1:
        deltas = deltas.unsqueeze(-1)
    if deltas.shape not in (log_probs.shape, (*log_probs.shape[:-1], 1)):
        raise ValueError(
            f"deltas have shape {list(deltas.shape)}, but log_probs have shape "
            f"{list(log_probs.shape)}. Pass one delta per response "
            f"{list(log_probs.shape[:-1])} or one per token."
        )
    # A delta weighs the gradient of log pi; it sends none of its own back to
    # whatever made it (a reward model, a critic).
    return deltas.detach()
