"""The claims of 01_rewards."""

from functools import partial

import torch
from einops import einsum
from torch import Generator, Tensor
from torch.nn.functional import one_hot

from claims.claim import BEST, Claim, Setting
from claims.experiments import PROMPT_SETS, sort_after
from grpo_course.sort import (
    all_responses,
    all_rewards,
    sort_distance_reward,
    sort_exact_reward,
    sort_inclusion_ordering_reward,
    sort_multiset_reward,
)

REPEATS = (
    torch.tensor([[1, 1, 2], [2, 0, 2], [3, 3, 3]]),
    torch.tensor([[4, 1, 4], [0, 3, 0], [2, 2, 2]]),
)
LARGER = (
    torch.tensor([[5, 1, 7, 3], [0, 6, 2, 4], [2, 5, 3, 1]]),
    torch.tensor([[7, 0, 4, 2], [6, 3, 1, 5], [4, 7, 1, 0]]),
)
EXPECTED = "... a, ... b, ... c, a b c -> ..."
ORDER = "In the larger space partial credit with dead ends beats no partial credit, "
ORDER += "and partial credit without dead ends beats both."


def paid_by(reward_fn, **more) -> partial:
    """A policy trained as in the notebook, on one reward."""
    modes = partial(sort_after, deltas_mode="normalized_rewards", loss_mode="clipped")
    return partial(modes, reward_fn=reward_fn, **more)


def are_dead_ends(rewards: Tensor) -> Tensor:
    """Wrong responses of three numbers where no single change pays. -> bool [all]"""
    cube = rewards.reshape(5, 5, 5)
    lines = [cube == cube.amax(dim=axis, keepdim=True) for axis in range(3)]
    return torch.stack(lines).all(dim=0).flatten() & (rewards < rewards.max())


def leave(setting: Setting, dead: bool) -> Tensor:
    """Share of wrong responses from which the exact gradient leads to the sorted one.

    The policy begins 90 % sure of each number, give or take the seed's noise; `dead`
    says whether to begin at the dead ends or at the others. -> [seed]
    """
    prompt, tokens = PROMPT_SETS[setting.prompts][:1], all_responses(5, 3)
    rewards = all_rewards(prompt, 5, sort_inclusion_ordering_reward)[0]  # [all]
    start = tokens[(are_dead_ends(rewards) == dead) & (rewards < rewards.max())]
    sure = one_hot(start, 5) * torch.tensor(36.0).log()  # [start pos vocab]
    noise = [torch.randn(sure.shape, generator=of(seed)) for seed in setting.seeds]
    logits = (sure + 0.5 * torch.stack(noise)).requires_grad_()
    cube = rewards.reshape(5, 5, 5)
    optimizer = torch.optim.Adam([logits], lr=0.1 * setting.rate)
    for _ in range(round(300 * setting.length)):
        optimizer.zero_grad()
        first, second, third = logits.softmax(dim=-1).unbind(dim=-2)
        (-einsum(first, second, third, cube, EXPECTED).sum()).backward()
        optimizer.step()
    answers = logits.argmax(dim=-1)  # [seed start pos]
    return (answers == prompt.sort().values).all(dim=-1).float().mean(dim=-1)


def of(seed: int) -> Generator:
    return Generator().manual_seed(seed)


CLAIMS = (
    Claim(
        "01.hole",
        "A reward can be fooled, and training finds the answers that fool it.",
        paid_by(sort_multiset_reward, prompt_sets=REPEATS),
        paid_by(sort_inclusion_ordering_reward, prompt_sets=REPEATS),
    ),
    Claim(
        "01.paid",
        "both policies end near the full 5 points",
        paid_by(sort_multiset_reward, prompt_sets=REPEATS, measure="expected_reward"),
        paid_by(
            sort_inclusion_ordering_reward,
            prompt_sets=REPEATS,
            measure="expected_reward",
        ),
        within=0.2,
        leave_out={BEST: "each rate ends near the full reward"},
    ),
    Claim(
        "01.teaches",
        "On prompts without repeats, where none of the three rewards can be fooled, "
        "the one that pays for each small improvement taught best.",
        paid_by(sort_distance_reward),
        paid_by(sort_inclusion_ordering_reward),
    ),
    Claim(
        "01.stuck",
        "A reward can have dead ends, where no single change pays. Training escapes "
        "them less often than other wrong starts.",
        partial(leave, dead=False),
        partial(leave, dead=True),
    ),
    Claim(
        "01.some",
        ORDER,
        paid_by(sort_inclusion_ordering_reward, prompt_sets=LARGER),
        paid_by(sort_exact_reward, prompt_sets=LARGER),
    ),
    Claim(
        "01.best",
        ORDER,
        paid_by(sort_distance_reward, prompt_sets=LARGER),
        paid_by(sort_inclusion_ordering_reward, prompt_sets=LARGER),
    ),
)
