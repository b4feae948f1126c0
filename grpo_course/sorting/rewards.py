"""Rewards of the sort task: on two lists to read, on tensors to train.

Each reward on lists has a twin on tensors that gives the same numbers for all
responses at once; `compute_reward` picks the twin where there is one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real

import torch
import torch.nn.functional as F
from torch import Tensor

from grpo_course.algorithm.validation import require_axes, require_callable

ListReward = Callable[[list[int], list[int]], float]


def require_same_length(prompt: Sequence[int], response: Sequence[int]) -> None:
    """Check that a response answers every position of its prompt."""
    if len(prompt) != len(response):
        raise ValueError(
            f"response has {len(response)} numbers, but prompt has {len(prompt)}. "
            "In the sort task both have the same length."
        )


def count_ordered_pairs(response: Sequence[int]) -> int:
    """How many neighbours stand in ascending order, ties included."""
    return sum(1 for x, y in pairwise(response) if x <= y)


def sort_distance_reward(prompt: list[int], response: list[int]) -> float:
    """One point for each position that holds the right number of the sorted prompt."""
    require_same_length(prompt, response)
    pairs = zip(response, sorted(prompt), strict=True)
    return float(sum(1 for x, y in pairs if x == y))


def sort_inclusion_ordering_reward(prompt: list[int], response: list[int]) -> float:
    """One point for each prompt number in the response, one for each ordered pair."""
    require_same_length(prompt, response)
    inclusion = sum(1 for x in prompt if x in response)
    return float(inclusion + count_ordered_pairs(response))


def sort_multiset_reward(prompt: list[int], response: list[int]) -> float:
    """Inclusion and ordering; a number of the response covers one of the prompt."""
    require_same_length(prompt, response)
    # int, because tensors of the same number are different keys
    shared = Counter(map(int, prompt)) & Counter(map(int, response))
    return float(shared.total() + count_ordered_pairs(response))


def sort_exact_reward(prompt: list[int], response: list[int]) -> float:
    """One if the response is the sorted prompt, else zero: no partial credit."""
    require_same_length(prompt, response)
    return float(list(response) == sorted(prompt))


def batch_ordered_pairs(responses: Tensor) -> Tensor:
    """[... batch trial pos] -> [... batch trial]"""
    return (responses[..., 1:] >= responses[..., :-1]).sum(dim=-1)


def batch_distance_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    truth = prompts.sort(dim=-1).values[:, None, :]
    return (responses == truth).sum(dim=-1).float()


def batch_inclusion_ordering_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    found = (prompts[:, None, :, None] == responses[..., None, :]).any(dim=-1)
    return (found.sum(dim=-1) + batch_ordered_pairs(responses)).float()


def batch_multiset_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    vocab_size = int(torch.maximum(prompts.max(), responses.max())) + 1
    wanted = F.one_hot(prompts, vocab_size).sum(dim=-2)[:, None, :]
    given = F.one_hot(responses, vocab_size).sum(dim=-2)
    shared = torch.minimum(wanted, given).sum(dim=-1)
    return (shared + batch_ordered_pairs(responses)).float()


def batch_exact_reward(prompts: Tensor, responses: Tensor) -> Tensor:
    """[batch pos], [... batch trial pos] -> [... batch trial]"""
    truth = prompts.sort(dim=-1).values[:, None, :]
    return (responses == truth).all(dim=-1).float()


BATCH_REWARDS = {
    sort_distance_reward: batch_distance_reward,
    sort_inclusion_ordering_reward: batch_inclusion_ordering_reward,
    sort_multiset_reward: batch_multiset_reward,
    sort_exact_reward: batch_exact_reward,
}


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn: Callable) -> Tensor:
    """Reward every response. [batch pos], [batch trial pos] -> float [batch trial]

    `reward_fn` is a reward on two lists, such as `sort_distance_reward` or one of
    your own, or one of the tensor twins. Leading axes of `responses` pass through.
    Raises ValueError where prompts and responses do not line up.
    """
    require_axes("prompts", prompts, "batch pos")
    require_axes("responses", responses, "batch trial pos")
    batch, pos = responses.shape[-3], responses.shape[-1]
    if list(prompts.shape) != [batch, pos]:
        raise ValueError(
            f"prompts has shape {list(prompts.shape)}, but responses has shape "
            f"{list(responses.shape)}. [batch pos] and [batch trial pos] must agree in "
            "batch and pos."
        )
    if reward_fn in BATCH_REWARDS.values():
        return reward_fn(prompts, responses)
    if reward_fn in BATCH_REWARDS:
        return BATCH_REWARDS[reward_fn](prompts, responses)
    return reward_one_by_one(prompts, responses, reward_fn)


def reward_one_by_one(
    prompts: Tensor, responses: Tensor, reward_fn: ListReward
) -> Tensor:
    """The plain loop behind `compute_reward`, for a reward that knows only lists."""
    what = "maps two lists, prompt and response, to a number"
    require_callable("reward_fn", reward_fn, what)
    questions = prompts.tolist()
    rewards = [
        [one_number(reward_fn(question, response)) for response in group]
        for groups in responses.reshape(-1, *responses.shape[-3:]).tolist()
        for question, group in zip(questions, groups, strict=True)
    ]
    return torch.tensor(rewards, dtype=torch.float32).reshape(responses.shape[:-1])


def one_number(reward: object) -> float:
    """The number that a reward returned: of Python, of numpy, or a tensor without axes.

    Raises TypeError for anything else.
    """
    if isinstance(reward, Real) or (isinstance(reward, Tensor) and reward.ndim == 0):
        return float(reward)
    raise TypeError(
        f"reward_fn returned {type(reward).__name__}, but a reward is one number. "
        "Is its `return` missing?"
    )
