"""Aggregation against numbers worked by hand and plain loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import AGGREGATIONS, aggregate

sizes = st.tuples(*[st.integers(1, 3)] * 3, st.integers(1, 5))  # seed batch trial pos
property_test = settings(deadline=None, max_examples=30, derandomize=True)


def ragged(shape, number):
    """Values whose padding is NaN or inf, and masks with lengths from 0 to pos."""
    generator = torch.Generator().manual_seed(number)
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    lengths = torch.randint(0, shape[-1] + 1, shape[:-1], generator=generator)
    mask = torch.arange(shape[-1]) < lengths[..., None]
    junk = torch.tensor([float("nan"), float("inf")])[number % 2]
    return torch.where(mask, values, junk), mask


def test_two_responses_by_hand():
    # one token of 1, and three tokens of 3
    values = torch.tensor([[[1.0, 9.0, 9.0], [3.0, 3.0, 3.0]]])
    mask = torch.tensor([[[1, 0, 0], [1, 1, 1]]])
    assert aggregate(values, mask, "sequence_mean") == 2.0  # (1 + 3) / 2
    assert aggregate(values, mask, "token_mean") == 2.5  # 10 / 4
    assert aggregate(values, mask, "constant", max_length=5) == 1.0  # 10 / (2 * 5)
    assert aggregate(values, mask.float(), "constant") == 10 / 6
    assert aggregate(values, mask, "sequence_sum") == 5.0  # (1 + 9) / 2


def test_an_empty_response_adds_zero_and_stays_in_the_count():
    values = torch.tensor([[[4.0, 4.0], [9.0, 9.0]]], requires_grad=True)
    mask = torch.tensor([[[True, True], [False, False]]])
    assert aggregate(values, mask, "sequence_mean") == 2.0
    assert aggregate(values, mask, "token_mean") == 4.0
    assert aggregate(values, mask, "constant") == 2.0


@pytest.mark.parametrize("mode", AGGREGATIONS)
def test_no_token_at_all_is_zero(mode):
    values = torch.full((1, 2, 3), float("inf"), requires_grad=True)
    result = aggregate(values, torch.zeros(1, 2, 3), mode)
    result.backward()
    assert result == 0 and (values.grad == 0).all()


@property_test
@given(sizes, st.integers(0, 99), st.sampled_from(list(AGGREGATIONS)))
def test_seeds_side_by_side_equal_one_at_a_time(shape, number, mode):
    values, mask = ragged(shape, number)
    values.requires_grad_()
    together = aggregate(values, mask, mode)
    (gradient,) = torch.autograd.grad(together.sum(), values)
    assert together.shape == shape[:1] and together.isfinite().all()
    for seed in range(shape[0]):
        one = values[seed].detach().requires_grad_()
        alone = aggregate(one, mask[seed], mode)
        alone.backward()
        torch.testing.assert_close(together[seed], alone, rtol=0, atol=1e-12)
        torch.testing.assert_close(gradient[seed], one.grad, rtol=0, atol=1e-12)
        assert (one.grad[~mask[seed]] == 0).all()


@property_test
@given(sizes, st.integers(0, 99))
def test_equal_lengths_make_all_modes_the_plain_mean(shape, number):
    values = ragged(shape, number)[0].nan_to_num(0.5, 0.5)
    for mode in AGGREGATIONS:
        plain = values.mean((-3, -2, -1))
        length = shape[-1] if mode == "sequence_sum" else 1  # it divides by no length
        torch.testing.assert_close(aggregate(values, None, mode) / length, plain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(1, 2, 3), None, "median"), "sequence_mean.*token_mean.*constant"),
        ((torch.ones(2, 3),), "batch trial pos"),
        ((torch.ones(1, 2, 3), torch.ones(1, 2, 2)), "mask has shape"),
        ((torch.ones(1, 2, 3), torch.full((1, 2, 3), 0.5)), "which tokens count"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        aggregate(*arguments)


def test_bad_max_length():
    with pytest.raises(ValueError, match="max_length=0"):
        aggregate(torch.ones(1, 2, 3), None, "constant", max_length=0)
