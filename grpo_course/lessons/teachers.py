"""Teachers: notebook 17 learns from what another policy thinks of each number.

Each student, that is each seed, has a teacher of its own.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from grpo_course.formulas import deltas_per_token
from grpo_course.lessons.preferences import side_by_side, warm_start
from grpo_course.loop import GRPO, Rollout, TrainConfig
from grpo_course.sort import (
    SORT_PROMPTS,
    SortPolicy,
    rollout_reward,
    sort_distance_reward,
)

# log pi of student and teacher [... batch trial pos] -> deltas, of tokens or responses
DeltasOf = Callable[[Tensor, Tensor], Tensor]


class Taught(GRPO):
    """GRPO whose deltas come from a teacher, who may also write."""

    def __init__(
        self, *given: Any, teacher: SortPolicy, writer: SortPolicy, deltas_of: DeltasOf
    ):
        super().__init__(*given)
        self.teacher, self.writer, self.deltas_of = teacher, writer, deltas_of

    def sample(self, prompts: Tensor) -> tuple[Rollout, Tensor]:
        rollout = self.writer.sample(prompts, self.config.num_responses)
        return rollout, self.reward_fn(rollout)  # no delta is made of these rewards

    @torch.no_grad()
    def compare(self, rollout, rewards, old, ref):
        return self.deltas_of(old, self.teacher.log_probs(rollout))


def make_teacher(
    num_epochs: int,
    seeds: Sequence[int] = range(16),
    prompts: Tensor = SORT_PROMPTS,
) -> SortPolicy:
    """A policy of other weights for each student, after epochs on the true reward."""
    return warm_start([5000 + seed for seed in seeds], prompts, num_epochs)


def study_each(
    start: SortPolicy, teacher: SortPolicy, ways: Mapping[str, DeltasOf], **how: Any
) -> dict[str, SortPolicy]:
    """`study` by copies of a policy, one for each way, all of them side by side."""
    count, num_seeds = len(ways), len(start.model.embedding)

    def deltas_of(own: Tensor, theirs: Tensor) -> Tensor:
        rows = zip(ways.values(), own.chunk(count), theirs.chunk(count), strict=True)
        of_each = (deltas_per_token(way(*seen), seen[0]) for way, *seen in rows)
        return torch.cat([deltas.expand(-1, *own.shape[1:]) for deltas in of_each])

    joined = side_by_side([start] * count)
    study(joined, side_by_side([teacher] * count), deltas_of, **how)
    students = {}
    for row, name in enumerate(ways):
        students[name] = copy.deepcopy(start)
        pairs = zip(
            students[name].model.parameters(), joined.model.parameters(), strict=True
        )
        for weight, of_all in pairs:
            weight.data = of_all.detach()[row * num_seeds :][:num_seeds].clone()
    return students


def study(
    student: SortPolicy,
    teacher: SortPolicy,
    deltas_of: DeltasOf,
    prompts: Tensor = SORT_PROMPTS,
    *,
    teacher_writes: bool = False,
    num_epochs: int = 60,
    learning_rate: float = 1e-3,
) -> None:
    """Train a student as `climb` does, but on deltas that a teacher gives.

    What the teacher wrote is learned without a clip: the student is not its pi_old.
    """
    loss_mode = "naive" if teacher_writes else "clipped"
    given = (
        student,
        prompts,
        rollout_reward(sort_distance_reward),
        torch.optim.Adam(student.model.parameters(), lr=learning_rate),
        TrainConfig(num_epochs=num_epochs, loss_mode=loss_mode),
    )
    writer = copy.deepcopy(teacher) if teacher_writes else student  # draws its own
    Taught(*given, teacher=teacher, writer=writer, deltas_of=deltas_of).train()
