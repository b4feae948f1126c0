"""Students and teachers: notebook 17 learns from what a better model thinks.

The task is that of notebook 09: a tiny language model writes three of the numbers 0 to
3 in order. Each student, that is each seed, has a teacher of its own.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from grpo_course.loop import GRPO, Rollout, TrainConfig
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    SequencePolicy,
    TinyLM,
    draw_prompts,
    make_policy,
    sorted_numbers,
)

NUMBERS = torch.cartesian_prod(*[torch.arange(4)] * 3)
PROMPTS = torch.cat([NUMBERS, torch.full((64, 1), 4)], dim=-1)  # 4 says: answer now

# rollout, rewards [... batch trial], log pi_old [... batch trial pos] -> deltas
DeltasOf = Callable[[Rollout, Tensor, Tensor], Tensor]


class Taught(GRPO):
    """GRPO in which somebody else may write, and deltas may come from elsewhere."""

    def __init__(self, *given: Any, writer: SequencePolicy, deltas_of: DeltasOf):
        super().__init__(*given)
        self.writer, self.deltas_of = writer, deltas_of

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        rollout = self.writer.sample(prompts, self.config.num_responses)
        return rollout, self.reward_fn(rollout)

    @torch.no_grad()
    def compare(self, rollout, rewards, old, ref):
        return self.deltas_of(rollout, rewards, old)


def in_place(rollout: Rollout) -> Tensor:
    """1 for each number that stands where it should, else 0. [... batch trial pos]"""
    return (rollout.responses == sorted_numbers(rollout.prompts)[:, None]).float()


def right(rollout: Rollout) -> Tensor:
    """1 where all numbers are in order, else 0. -> [... batch trial]"""
    return in_place(rollout).prod(-1)


@torch.no_grad()
def probability_right(policy: SequencePolicy) -> Tensor:
    """The probability of the right answer, mean over all 64 prompts: exact, [seed]."""
    truth = sorted_numbers(PROMPTS)[:, None]
    truth = truth.expand(len(policy.model.embedding), *truth.shape)
    log_probs = policy.log_probs(Rollout(PROMPTS, truth))  # [seed batch 1 pos]
    return log_probs.sum(-1).exp().mean((-2, -1))


def num_different(policy: SequencePolicy, group_size: int = 8) -> Tensor:
    """How many different responses a group holds, mean over all prompts: [seed]."""
    responses = policy.sample(PROMPTS, group_size).responses
    same = (responses[..., :, None, :] == responses[..., None, :, :]).all(dim=-1)
    return (1 / same.sum(dim=-1)).sum(dim=-1).mean(dim=-1)  # a response a kind


def make_student(
    seeds: Sequence[int] = range(5), hidden_size: int = 32
) -> SequencePolicy:
    """A model for each seed that has learned nothing, as a policy."""
    return make_policy(TinyLM(5, hidden_size, seeds=seeds), Sampler(3), seeds)


def make_teacher(
    seeds: Sequence[int] = range(5), num_steps: int = 80
) -> SequencePolicy:
    """A teacher for each student: shown all right answers, so many times."""
    teacher = make_student([5000 + seed for seed in seeds])
    truth = sorted_numbers(PROMPTS)[:, None]
    shown = Rollout(PROMPTS, truth.expand(len(seeds), *truth.shape))
    optimizer = torch.optim.Adam(teacher.model.parameters(), lr=0.01)
    for _ in range(num_steps):
        loss = -teacher.log_probs(shown).mean((-3, -2, -1)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return teacher


def study(
    student: SequencePolicy,
    rate: float,
    num_rollouts: int = 40,
    *,
    deltas_of: DeltasOf,
    writer: SequencePolicy | None = None,
) -> Tensor:
    """Train a student; P(right) before each rollout and at the end: [look seed].

    16 of the 64 prompts a rollout, 8 responses each, one step on them. Without a writer
    the student writes itself.
    """
    seen: list[Tensor] = []

    def look(policy: SequencePolicy) -> None:
        seen.append(probability_right(policy))

    config = TrainConfig(
        num_epochs=num_rollouts,
        num_steps_per_epoch=1,
        num_responses=8,
        loss_mode="naive",
    )
    optimizer = torch.optim.Adam(student.model.parameters(), lr=rate)
    prompts = draw_prompts(PROMPTS, 16, seed=0)
    taught = partial(Taught, writer=writer or student, deltas_of=deltas_of)
    taught(student, prompts, right, optimizer, config, look).train()
    look(student)
    return torch.stack(seen)
