"""The world in which every response is listed, against what can be counted by hand."""

import pytest
import torch

from grpo_course.sequences import ShortAnswers


@pytest.mark.parametrize(
    "num_words, longest, count", [(2, 4, 31), (1, 3, 4), (3, 2, 13)]
)
def test_every_response_is_listed_once(num_words, longest, count):
    world = ShortAnswers(num_words, longest)
    assert len(world.responses) == len(world.responses.unique(dim=0)) == count


def test_lengths_count_the_end_and_stop_at_the_longest():
    world = ShortAnswers(2, 3)
    rows = dict(zip(map(tuple, world.responses.tolist()), world.lengths, strict=True))
    assert rows[2, 2, 2] == 1  # the end at once
    assert rows[0, 2, 2] == 2
    assert rows[0, 1, 2] == rows[0, 1, 1] == 3  # ended, and cut off


def test_probabilities_sum_to_one():
    world = ShortAnswers(2, 4)
    logits = world.random_logits(range(5))
    total = world.chances(logits).sum(-1)
    torch.testing.assert_close(total, torch.ones(5, dtype=torch.float64))


def test_a_uniform_policy_ends_geometrically():
    world = ShortAnswers(2, 4)
    probs = world.chances(0 * world.random_logits([0]))
    length = (probs * world.lengths).sum()
    assert length.item() == pytest.approx(1 + 2 / 3 + 4 / 9 + 8 / 27)


def test_a_state_is_what_was_written():
    world = ShortAnswers(2, 4)
    seen = {}
    for row, states, kept in zip(
        world.responses, world.states, world.mask, strict=True
    ):
        for pos in kept.nonzero().flatten().tolist():
            seen.setdefault(states[pos].item(), set()).add(tuple(row[:pos].tolist()))
    assert all(len(before) == 1 for before in seen.values())
    assert len(set.union(*seen.values())) == len(seen) == 15


def test_what_is_too_large_is_refused():
    with pytest.raises(ValueError, match="number of responses"):
        ShortAnswers(10, 6)
