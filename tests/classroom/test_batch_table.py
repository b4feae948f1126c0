"""A batch as text: one line a response, with what it was paid and how it is pushed."""

from dataclasses import replace

import pytest
import torch

from grpo_course.classroom.show import batch_table
from grpo_course.loop import Batch, Rollout

RESPONSES = torch.tensor([[[1, 2], [0, 1]]])
SMALL = Batch(
    Rollout(torch.tensor([[2, 1]]), RESPONSES),
    rewards=torch.tensor([[1.0, 0.5]]),
    deltas=torch.tensor([[0.25, -0.25]]),
    old_log_probs=torch.tensor([[[-1.0, -2.0], [-0.5, -10.0]]]),
)


def test_a_table_of_one_delta_a_response():
    assert batch_table(SMALL).splitlines() == [
        "prompt [2, 1]",
        "  [1, 2]  log-probs  -1.00  -2.00  R  1.00  delta +0.25",
        "  [0, 1]  log-probs  -0.50 -10.00  R  0.50  delta -0.25",
    ]


def test_a_table_of_one_delta_a_token():
    batch = replace(SMALL, deltas=torch.tensor([[[0.25, 1.0], [-0.25, 0.0]]]))
    ends = [line.split("delta ")[1] for line in batch_table(batch).splitlines()[1:]]
    assert ends == ["+0.25 +1.00", "-0.25 +0.00"]


def test_a_table_without_log_probs_says_where_to_get_them():
    batch = replace(SMALL, old_log_probs=None)
    with pytest.raises(
        ValueError, match=r"log_probs=policy\.log_probs\(batch\.rollout"
    ):
        batch_table(batch)
    assert batch_table(batch, SMALL.old_log_probs) == batch_table(SMALL)


def test_a_table_of_several_seeds_is_refused():
    batch = replace(SMALL, rewards=SMALL.rewards[None])  # [seed batch trial]
    with pytest.raises(ValueError, match="without a seed axis"):
        batch_table(batch)
