"""Deltas: closed forms in plain Python, exact zeros for ties, invariances, errors."""

from math import exp, sqrt
from statistics import mean, stdev

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import DELTA_MODES, compute_deltas

WITHOUT_BASELINE = {"rewards", "max_rewards", "softmax_rewards"}
WITH_BASELINE = sorted(DELTA_MODES.keys() - WITHOUT_BASELINE)
ACROSS_GROUPS = {"batch_normalized_rewards", "whitened_rewards"}
WITHIN_GROUPS = sorted(DELTA_MODES.keys() - ACROSS_GROUPS)
SUM_TO_ZERO = sorted(set(WITH_BASELINE) - {"centered_max_rewards"})
property_test = settings(deadline=None, max_examples=40, derandomize=True)
sizes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(2, 9))
EXAMPLE = [[5.0, 3.0, 3.0, 2.0], [2.0, 2.0, 2.0, 2.0]]


def softmax(group):
    return [exp(r) / sum(exp(s) for s in group) for r in group]


def centered(group):
    return [r - mean(group) for r in group]


def flat(batch):
    return [r for group in batch for r in group]


# One group and the batch it stands in -> its deltas, as the papers write them.
CLOSED_FORMS = {
    "rewards": lambda g, _: g,
    "centered_rewards": lambda g, _: centered(g),
    "normalized_rewards": lambda g, _: [(r - mean(g)) / (stdev(g) + 1e-4) for r in g],
    "max_rewards": lambda g, _: [r if r == max(g) else 0 for r in g],
    "centered_max_rewards": lambda g, _: [r - mean(g) if r == max(g) else 0 for r in g],
    "leave_one_out": lambda g, _: [r - (sum(g) - r) / (len(g) - 1) for r in g],
    "batch_normalized_rewards": lambda g, batch: [
        (r - mean(g)) / (stdev(flat(batch)) + 1e-4) for r in g
    ],
    "whitened_rewards": lambda g, batch: [
        (r - mean(g)) / (stdev(flat(map(centered, batch))) + 1e-4) for r in g
    ],
    "softmax_rewards": lambda g, _: softmax(g),
    "centered_softmax_rewards": lambda g, _: centered(softmax(g)),
}


def random_rewards(shape, number, spread=2.0):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(shape, generator=generator, dtype=torch.float64) * spread


@pytest.mark.parametrize("mode", DELTA_MODES)
@pytest.mark.parametrize(
    "batch",
    [EXAMPLE, [[0.0, 1.0]], [[1, 0, 0, 0, 1], [0.5, -2, 3, 3, 0]]],
)
def test_closed_forms(mode, batch):
    batch = [[float(r) for r in group] for group in batch]
    deltas = compute_deltas(torch.tensor(batch, dtype=torch.float64), mode)
    expected = [CLOSED_FORMS[mode](group, batch) for group in batch]
    assert flat(deltas.tolist()) == pytest.approx(flat(expected), rel=1e-12, abs=1e-12)


def test_the_two_definitions_of_max_deltas():
    rewards = torch.tensor(EXAMPLE)
    plain = compute_deltas(rewards, "max_rewards")
    assert plain.tolist() == [[5, 0, 0, 0], [2, 2, 2, 2]]
    with_baseline = compute_deltas(rewards, "centered_max_rewards")
    assert with_baseline.tolist() == [[1.75, 0, 0, 0], [0, 0, 0, 0]]


TIES = [0.0, 0.1, -0.1, 0.7, 1.2, 1 / 3, 1e-6, 1e6, 1e6 + 0.1, 1e-30, 2.0, -7.3]
GROUP_SIZES = range(2, 33)


@pytest.mark.parametrize("mode", WITH_BASELINE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tied_rewards_give_exactly_zero(mode, dtype):
    for size in GROUP_SIZES:
        tied = torch.tensor(TIES, dtype=dtype)[:, None].expand(-1, size)
        assert (compute_deltas(tied, mode) == 0.0).all()
        for group in tied:  # each as a batch of its own
            assert (compute_deltas(group[None], mode) == 0.0).all()


@pytest.mark.parametrize("mode", WITH_BASELINE)
def test_a_tied_group_stays_zero_beside_one_that_is_not(mode):
    rewards = torch.tensor([[0.1] * 8, [0.0] * 7 + [1.0]])
    deltas = compute_deltas(rewards, mode)
    assert (deltas[0] == 0.0).all() and (deltas[1] != 0.0).any()


def test_the_usual_formula_fails_on_the_same_ties():
    """Without this the test of exact zeros might be one that cannot fail."""
    worst = 0.0
    for value in TIES:
        for size in GROUP_SIZES:
            tied = torch.full((size,), value)
            usual = (tied - tied.mean()) / (tied.std() + 1e-8)
            worst = max(worst, usual.abs().max().item())
    assert worst > 0.1


@pytest.mark.parametrize("mode", sorted(WITHOUT_BASELINE))
def test_modes_without_a_baseline_push_on_a_tied_group(mode):
    assert (compute_deltas(torch.full((2, 4), 0.7), mode) > 0).all()


@pytest.mark.parametrize("mode", SUM_TO_ZERO)
@given(size=sizes, number=st.integers(0, 1000))
@property_test
def test_deltas_sum_to_zero_in_each_group(mode, size, number):
    deltas = compute_deltas(random_rewards(size, number), mode)
    assert deltas.sum(-1).abs().max() < 1e-10
    assert deltas.abs().max() > 1e-3  # all zeros would sum to zero as well


@pytest.mark.parametrize("mode", [*WITH_BASELINE, "softmax_rewards"])
@given(size=sizes, number=st.integers(0, 1000), shift=st.floats(-100, 100))
@property_test
def test_a_shift_of_all_rewards_changes_nothing(mode, size, number, shift):
    rewards = random_rewards(size, number)
    shifted = compute_deltas(rewards + shift, mode)
    torch.testing.assert_close(
        shifted, compute_deltas(rewards, mode), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("mode", ["rewards", "max_rewards"])
def test_a_shift_changes_deltas_without_a_baseline(mode):
    rewards = torch.tensor(EXAMPLE)
    assert not torch.equal(
        compute_deltas(rewards + 10, mode), compute_deltas(rewards, mode)
    )


@given(number=st.integers(0, 1000), scale=st.floats(1, 1e4))
@property_test
def test_normalized_deltas_have_no_unit(number, scale):
    rewards = torch.tensor([0.0, 10.0, 3.0, 5.0]) + random_rewards((3, 4), number, 0.5)
    deltas = compute_deltas(rewards, "normalized_rewards")
    scaled = compute_deltas(rewards * scale, "normalized_rewards")
    torch.testing.assert_close(scaled, deltas, rtol=1e-4, atol=0)  # 1e-4 / spread
    unscaled = compute_deltas(rewards * 2, "centered_rewards")
    torch.testing.assert_close(
        unscaled, 2 * compute_deltas(rewards, "centered_rewards")
    )


@given(size=sizes, number=st.integers(0, 1000), power=st.integers(-6, 6))
@property_test
def test_normalized_deltas_are_bounded_by_the_group_size(size, number, power):
    deltas = compute_deltas(
        random_rewards(size, number, 10.0**power), "normalized_rewards"
    )
    assert deltas.abs().max() <= (size[-1] - 1) / sqrt(size[-1]) + 1e-12


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_one_success_reaches_the_bound(size):
    rewards = torch.zeros(1, size, dtype=torch.float64)
    rewards[0, 0] = 1e6
    deltas = compute_deltas(rewards, "normalized_rewards")
    assert deltas[0, 0].item() == pytest.approx((size - 1) / sqrt(size), rel=1e-9)


@pytest.mark.parametrize("mode", DELTA_MODES)
@given(size=sizes, number=st.integers(0, 1000))
@property_test
def test_leading_axes_pass_through(mode, size, number):
    rewards = random_rewards((2, *size), number)
    deltas = compute_deltas(rewards, mode)
    assert deltas.shape == rewards.shape and deltas.dtype == rewards.dtype
    alone = torch.stack(
        [torch.stack([compute_deltas(s, mode) for s in seeds]) for seeds in rewards]
    )
    torch.testing.assert_close(deltas, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", WITHIN_GROUPS)
def test_groups_do_not_see_each_other(mode):
    rewards = random_rewards((3, 4), 0)
    alone = torch.cat([compute_deltas(group[None], mode) for group in rewards])
    torch.testing.assert_close(compute_deltas(rewards, mode), alone)


@pytest.mark.parametrize("mode", DELTA_MODES)
def test_whole_numbers_and_booleans_are_rewards_too(mode):
    rewards = torch.tensor([[1, 0, 0, 1], [0, 0, 0, 1]])
    expected = compute_deltas(rewards.float(), mode)
    for given_rewards in (rewards, rewards.bool()):
        deltas = compute_deltas(given_rewards, mode)
        assert deltas.dtype == torch.float32 and torch.equal(deltas, expected)


@pytest.mark.parametrize("mode", DELTA_MODES)
def test_the_rewards_stay_as_they_were(mode):
    rewards = torch.tensor(EXAMPLE)
    compute_deltas(rewards, mode)
    assert rewards.tolist() == EXAMPLE


def test_an_unknown_mode_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"mode='centred' is not known") as error:
        compute_deltas(torch.tensor(EXAMPLE), "centred")
    assert all(repr(mode) in str(error.value) for mode in DELTA_MODES)


@pytest.mark.parametrize("mode", sorted(DELTA_MODES.keys() - {"rewards"}))
def test_a_group_of_one_cannot_be_compared(mode):
    says = rf"rewards has shape \[3, 1\].*mode='{mode}'.*at least two responses"
    with pytest.raises(ValueError, match=says):
        compute_deltas(torch.zeros(3, 1), mode)
    assert compute_deltas(torch.ones(3, 1), "rewards").tolist() == [[1], [1], [1]]


@pytest.mark.parametrize("mode", DELTA_MODES)
def test_bad_rewards_are_named(mode):
    with pytest.raises(ValueError, match=r"rewards has shape \[4\].*\[batch trial\]"):
        compute_deltas(torch.zeros(4), mode)
    with pytest.raises(ValueError, match=r"rewards has shape \[2, 0\].*empty"):
        compute_deltas(torch.zeros(2, 0), mode)
    with pytest.raises(TypeError, match=r"rewards is a list.*torch\.tensor"):
        compute_deltas(EXAMPLE, mode)
    for culprit in (float("nan"), float("inf"), float("-inf")):
        rewards = torch.tensor([[0.0, 1.0], [culprit, 1.0]])
        with pytest.raises(ValueError, match=rf"rewards\[1, 0\] is {culprit}"):
            compute_deltas(rewards, mode)
