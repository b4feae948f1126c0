"""Rewards that are looked up: a table holds what every response earns."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.sort import all_responses


def elsewhere(points: Tensor, places: Tensor, seed: int = 0) -> Tensor:
    """The same points in each row, at random on these places. [batch all], bool too"""
    moved = torch.zeros_like(points)
    dice = torch.Generator().manual_seed(seed)
    for row, from_here, free in zip(moved, points, places, strict=True):
        amounts, spots = from_here[from_here != 0], free.nonzero().flatten()
        order = torch.randperm(len(spots), generator=dice)
        row[spots[order[: len(amounts)]]] = amounts
    return moved


def numbers_off(prompts: Tensor) -> Tensor:
    """In how many numbers each response is not the sorted prompt. -> [batch all]"""
    responses = all_responses(5, prompts.shape[-1])  # [all pos]
    return (responses != prompts.sort(dim=-1).values[:, None]).sum(dim=-1)


def places_of(answers: Tensor) -> Tensor:
    """Where answers stand in the list of all responses. [... pos] -> [...]"""
    return (answers * 5 ** torch.arange(answers.shape[-1]).flip(0)).sum(dim=-1)


def reward_from_table(
    prompts: Tensor, table: Tensor
) -> Callable[[list[int], list[int]], float]:
    """A reward for two lists, of numbers from 0 to 4. [batch pos], [batch all]"""
    responses = all_responses(5, prompts.shape[-1]).tolist()
    paid = {
        (*prompt, *response): reward
        for prompt, rewards in zip(prompts.tolist(), table.tolist(), strict=True)
        for response, reward in zip(responses, rewards, strict=True)
    }

    def reward(prompt: list[int], response: list[int]) -> float:
        return paid[(*prompt, *response)]

    return reward
