"""What several models reach on average, against numbers worked out by hand."""

import pytest
import torch

from grpo_course.loop import mean_and_error


def test_the_mean_and_its_standard_error():
    """1, 2, 3, 4: squares of the distances add up to 5, of which a third is 5/3."""
    mean, error = mean_and_error([1.0, 2.0, 3.0, 4.0])
    assert mean.item() == 2.5
    assert error.item() == pytest.approx((5 / 3) ** 0.5 / 2)


def test_the_seeds_are_the_last_axis():
    rows = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]])
    means, errors = mean_and_error(rows.requires_grad_())
    assert means.tolist() == [2.5, 0.0]
    assert errors[1].item() == 0
    assert not means.requires_grad
