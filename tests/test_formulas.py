"""The formulas: against closed forms, expectations and each other."""

import math
from math import exp, sqrt
from statistics import mean, stdev
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import (
    AGGREGATIONS,
    DELTA_MODES,
    KL_ESTIMATORS,
    LOSS_MODES,
    aggregate,
    compute_deltas,
    compute_kl_penalty,
    compute_loss,
    exact_kl,
    kl_reward,
    kl_values,
    loss_report,
    sapo_loss,
    token_loss,
)
from grpo_course.loop import Batch, Rollout, TrainConfig, Trainer, adapted_beta

# Aggregation against numbers worked by hand and plain loops


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


@pytest.mark.slow
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


# Deltas: closed forms in plain Python, exact zeros for ties, invariances, errors


WITHOUT_BASELINE = {"rewards", "max_rewards", "softmax_rewards"}
WITH_BASELINE = sorted(DELTA_MODES.keys() - WITHOUT_BASELINE)
ACROSS_GROUPS = {"batch_normalized_rewards", "whitened_rewards"}
WITHIN_GROUPS = sorted(DELTA_MODES.keys() - ACROSS_GROUPS)
SUM_TO_ZERO = sorted(set(WITH_BASELINE) - {"centered_max_rewards"})
property_test_of_deltas = settings(deadline=None, max_examples=40, derandomize=True)
sizes_of_deltas = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(2, 9))
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
@given(size=sizes_of_deltas, number=st.integers(0, 1000))
@property_test_of_deltas
def test_deltas_sum_to_zero_in_each_group(mode, size, number):
    deltas = compute_deltas(random_rewards(size, number), mode)
    assert deltas.sum(-1).abs().max() < 1e-10
    assert deltas.abs().max() > 1e-3  # all zeros would sum to zero as well


@pytest.mark.parametrize("mode", [*WITH_BASELINE, "softmax_rewards"])
@given(size=sizes_of_deltas, number=st.integers(0, 1000), shift=st.floats(-100, 100))
@property_test_of_deltas
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
@property_test_of_deltas
def test_normalized_deltas_have_no_unit(number, scale):
    rewards = torch.tensor([0.0, 10.0, 3.0, 5.0]) + random_rewards((3, 4), number, 0.5)
    deltas = compute_deltas(rewards, "normalized_rewards")
    scaled = compute_deltas(rewards * scale, "normalized_rewards")
    torch.testing.assert_close(scaled, deltas, rtol=1e-4, atol=0)  # 1e-4 / spread
    unscaled = compute_deltas(rewards * 2, "centered_rewards")
    torch.testing.assert_close(
        unscaled, 2 * compute_deltas(rewards, "centered_rewards")
    )


@given(size=sizes_of_deltas, number=st.integers(0, 1000), power=st.integers(-6, 6))
@property_test_of_deltas
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
@given(size=sizes_of_deltas, number=st.integers(0, 1000))
@property_test_of_deltas
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


# The policy loss: gradient table, on-policy facts, the zero loss, masks, errors


AGGREGATION_NAMES = ["sequence_mean", "token_mean", "constant"]


def rollout(shape, number):
    """Log-probs, old log-probs, deltas centred in each group, and a ragged mask."""
    generator = torch.Generator().manual_seed(number)
    draw = {"generator": generator, "dtype": torch.float64}
    old = -4 - torch.rand(shape, **draw) * 3  # so that no ratio makes log pi positive
    log_probs = old + torch.randn(shape, **draw) * 0.5
    deltas = torch.randn(shape[:-1], **draw)
    lengths = torch.randint(0, shape[-1] + 1, shape[:-1], generator=generator)
    mask = torch.arange(shape[-1]) < lengths[..., None]
    return log_probs, old, deltas - deltas.mean(-1, keepdim=True), mask


def loss_and_gradient(log_probs, *arguments, **options):
    log_probs = log_probs.detach().clone().requires_grad_()
    loss = compute_loss(log_probs, *arguments, **options)
    (gradient,) = torch.autograd.grad(loss.sum(), log_probs)
    return loss.detach(), gradient


def one_token(ratio, delta):
    """One prompt, one response, one token with that ratio."""
    old = torch.full((1, 1, 1), -3.0, dtype=torch.float64)
    deltas = torch.tensor([[delta]], dtype=torch.float64)
    return old + math.log(ratio), deltas, old


@pytest.mark.parametrize(
    ("ratio", "up", "down"),  # does a positive, a negative delta still pull?
    [(0.5, 1, 0), (0.9, 1, 1), (1, 1, 1), (1.1, 1, 1), (1.5, 0, 1), (2.0, 0, 1)],
)
def test_gradient_table_of_the_clipped_loss(ratio, up, down):
    for delta, pulls in ((1.0, up), (-1.0, down)):
        log_probs, deltas, old = one_token(ratio, delta)
        loss, gradient = loss_and_gradient(log_probs, deltas, "clipped", old)
        bound = min(max(ratio, 0.8), 1.2)
        assert loss.item() == pytest.approx(-min(ratio * delta, bound * delta))
        assert gradient.item() == pytest.approx(-delta * ratio * pulls, abs=1e-15)
        report = loss_report(log_probs, deltas, old)
        assert report["gradient_fraction"] == pulls
        assert report["clip_fraction_low"] == (ratio < 0.8 and not pulls)
        assert report["clip_fraction_high"] == (ratio > 1.2 and not pulls)


def test_epsilon_high_widens_only_the_upper_side():
    for ratio, delta, pulls in ((1.25, 1.0, True), (0.75, -1.0, False)):
        log_probs, deltas, old = one_token(ratio, delta)
        gradient = loss_and_gradient(
            log_probs, deltas, "clipped", old, epsilon=0.2, epsilon_high=0.28
        )[1]
        assert (gradient != 0).item() is pulls


@pytest.mark.parametrize("epsilon", [1.0, 1.5, 5.0])
def test_an_epsilon_from_1_on_leaves_no_lower_bound(epsilon):
    """Down to a ratio of zero the loss is the unclipped one; above, it is cut."""
    for ratio in (1e-30, 0.1, 0.9, 1 + epsilon / 2, 2 + epsilon):
        for delta in (1.0, -1.0):
            log_probs, deltas, old = one_token(ratio, delta)
            given = log_probs, deltas, "clipped", old
            loss, gradient = loss_and_gradient(*given, epsilon=epsilon)
            bound = min(ratio, 1 + epsilon)
            assert loss.item() == pytest.approx(-min(ratio * delta, bound * delta))
            pulls = ratio < 1 + epsilon or delta < 0
            assert gradient.item() == pytest.approx(-delta * ratio * pulls, abs=1e-15)
            report = loss_report(log_probs, deltas, old, epsilon=epsilon)
            assert report["clip_fraction_low"] == 0
            assert report["gradient_fraction"] == pulls


RATIOS = [0.5, 1.0, 3.0, 5.0]
CUT = {  # mode: for delta +1 and -1, tokens cut (from below, from above) of RATIOS
    "clipped": ((0, 2), (1, 0)),
    "dual_clipped": ((0, 2), (1, 1)),  # above 4 with a negative delta too
}


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_a_report_is_of_its_own_loss(mode):
    old = torch.full((1, 1, len(RATIOS)), -3.0, dtype=torch.float64)
    log_probs = old + torch.tensor(RATIOS, dtype=torch.float64).log()
    for delta, (low, high) in zip(
        (1.0, -1.0), CUT.get(mode, [(0, 0)] * 2), strict=True
    ):
        deltas = torch.tensor([[delta]], dtype=torch.float64)
        report = loss_report(log_probs, deltas, old, mode=mode, dual_clip=4.0)
        assert report["clip_fraction_low"] == low / 4
        assert report["clip_fraction_high"] == high / 4
        assert report["gradient_fraction"] == 1 - (low + high) / 4
        seen = recorded(log_probs, deltas, old, loss_mode=mode, dual_clip=4.0)
        assert {name: seen[name] for name in report} == report


def recorded(log_probs, deltas, old, **knobs):
    """What the loop notes of a policy that says just this."""
    rollout = Rollout(torch.zeros(1, 1), torch.zeros_like(log_probs).long())
    policy = SimpleNamespace(sample=print, log_probs=lambda _: log_probs)
    batch = Batch(rollout, deltas, deltas, old)
    parts = (policy, rollout.prompts, print, torch.optim.SGD([log_probs]))
    return Trainer(*parts, TrainConfig(**knobs)).loss(batch)[1]


@property_test
@given(sizes, st.integers(0, 99), st.sampled_from(["token", "sequence"]))
def test_the_gradient_fraction_is_that_of_the_gradient(shape, number, level):
    log_probs, old, deltas, mask = rollout(shape, number)
    log_probs = old + 2 * (log_probs - old)  # so that some are above the dual clip
    knobs = {"mask": mask, "ratio_level": level, "dual_clip": 1.5}
    for mode in LOSS_MODES:
        gradient = loss_and_gradient(log_probs, deltas, mode, old, **knobs)[1]
        pulls = (gradient != 0).sum((-3, -2, -1)) / mask.sum((-3, -2, -1))
        report = loss_report(log_probs, deltas, old, mode=mode, **knobs)
        seen = report["gradient_fraction"].float()
        same = {"equal_nan": True, "msg": f"{mode}, {level}"}  # NaN: without a token
        torch.testing.assert_close(seen, pulls, **same)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_a_loss_of_your_own_is_reported_as_what_it_does(mode, level, monkeypatch):
    """Its clip is not known by its name, and so is measured by its gradient."""
    known = LOSS_MODES[mode]
    monkeypatch.setitem(LOSS_MODES, "mine", lambda *given, **by: known(*given, **by))
    log_probs, old, deltas, mask = rollout((2, 3, 4), 0)
    log_probs = old + 2 * (log_probs - old)
    knobs = {"mask": mask, "ratio_level": level, "dual_clip": 1.5}
    report = loss_report(log_probs, deltas, old, mode=mode, **knobs)
    mine = loss_report(log_probs, deltas, old, mode="mine", **knobs)
    assert mine == report
    both = report["clip_fraction_low"], report["clip_fraction_high"]
    assert (sum(both) > 0) == (mode in CUT)


def test_a_loss_of_your_own_without_a_gradient_pulls_nobody(monkeypatch):
    monkeypatch.setitem(LOSS_MODES, "mine", lambda ratio, deltas, **_: -deltas)
    report = loss_report(*one_token(9.0, 1.0), mode="mine")
    assert report["gradient_fraction"] == 0 and report["clip_fraction_high"] == 1


def test_old_kl_is_what_the_tokens_say_at_either_level():
    log_probs, old, deltas, mask = rollout((2, 3, 4), 0)
    ratio = (log_probs - old).exp()
    expected = (ratio - 1 - ratio.log())[mask].mean()
    for level in ("token", "sequence"):
        for junk in (0.0, float("nan")):
            new = torch.where(mask, log_probs, junk)
            report = loss_report(new, deltas, old, mask=mask, ratio_level=level)
            torch.testing.assert_close(report["old_kl"], expected)


def test_report_reads_only_the_mask():
    ratio = torch.tensor([[[0.5, 1.5, 100.0], [0.5, 1.5, 1.0]]], dtype=torch.float64)
    mask = torch.tensor([[[1, 1, 0], [1, 1, 1]]])
    deltas = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    old = torch.full_like(ratio, -1.0)
    report = loss_report(old + ratio.log(), deltas, old, mask=mask)
    assert report["ratio_min"].item() == pytest.approx(0.5)
    assert report["ratio_max"].item() == pytest.approx(1.5)
    assert report["ratio_mean"].item() == pytest.approx(1.0)
    assert report["clip_fraction_low"].item() == 0
    assert report["clip_fraction_high"].item() == pytest.approx(1 / 5)
    assert report["gradient_fraction"].item() == pytest.approx(1 / 5)
    for first in (0.5, 1.5):  # padding must not pull the range to 1
        only = loss_report(old + ratio.log(), deltas, old, mask=ratio == first)
        for name in ("ratio_min", "ratio_max", "ratio_mean"):
            assert only[name].item() == pytest.approx(first)
    nothing = loss_report(old + ratio.log(), deltas, old, mask=mask < 0)
    assert len(nothing) == 7 and all(value.isnan() for value in nothing.values())


@property_test
@given(sizes, st.integers(0, 99), st.sampled_from(AGGREGATION_NAMES))
def test_one_gradient_for_all_modes_at_the_old_policy(shape, number, aggregation):
    _, old, deltas, mask = rollout(shape, number)
    options = {"mask": mask, "aggregation": aggregation}
    naive, *others = [
        loss_and_gradient(old, deltas, mode, old, **options)[1] for mode in LOSS_MODES
    ]
    for gradient in others:
        torch.testing.assert_close(gradient, naive, rtol=0, atol=1e-12)


@property_test
@given(sizes, st.integers(0, 99))
def test_the_loss_printed_at_the_old_policy(shape, number):
    """Zero for the sequence mean; minus the covariance of length and delta else."""
    _, old, deltas, mask = rollout(shape, number)
    mask[..., 0] = True  # every response has a token
    lengths = mask.sum(-1).double()
    covariance = (lengths * deltas).mean((-2, -1))  # deltas have mean zero
    expected = {
        "sequence_mean": torch.zeros_like(covariance),
        "token_mean": -covariance / lengths.mean((-2, -1)),
        "constant": -covariance / 7,
    }
    for aggregation, value in expected.items():
        options = {"mask": mask, "aggregation": aggregation, "max_length": 7}
        loss = compute_loss(old, deltas, "clipped", old, **options)
        torch.testing.assert_close(loss, value, rtol=0, atol=1e-12)


@property_test
@given(
    sizes,
    st.integers(0, 99),
    st.sampled_from(list(LOSS_MODES)),
    st.sampled_from(AGGREGATION_NAMES),
)
def test_seeds_side_by_side_equal_one_at_a_time_of_losses(
    shape, number, mode, aggregation
):
    log_probs, old, deltas, mask = rollout(shape, number)
    options = {"aggregation": aggregation}
    together = loss_and_gradient(log_probs, deltas, mode, old, mask=mask, **options)
    report = loss_report(log_probs, deltas, old, mask=mask)
    for seed in range(shape[0]):
        one = log_probs[seed], deltas[seed], mode, old[seed]
        alone = loss_and_gradient(*one, mask=mask[seed], **options)
        torch.testing.assert_close(together[0][seed], alone[0], rtol=0, atol=1e-12)
        torch.testing.assert_close(together[1][seed], alone[1], rtol=0, atol=1e-12)
        small = loss_report(*one[:2], old[seed], mask=mask[seed])
        for name, value in small.items():
            torch.testing.assert_close(report[name][seed], value, equal_nan=True)


@property_test
@given(sizes, st.integers(0, 99), st.sampled_from(list(LOSS_MODES)))
def test_padding_is_never_read(shape, number, mode):
    """Empty rows and NaN or inf in the padding: same loss, gradient zero there."""
    log_probs, old, deltas, mask = rollout(shape, number)
    clean = loss_and_gradient(log_probs, deltas, mode, old, mask=mask)
    for junk in (float("nan"), float("-inf"), 1e30):
        dirty = [torch.where(mask, values, junk) for values in (log_probs, old)]
        loss, gradient = loss_and_gradient(dirty[0], deltas, mode, dirty[1], mask=mask)
        torch.testing.assert_close(loss, clean[0], rtol=0, atol=0)
        torch.testing.assert_close(gradient, clean[1], rtol=0, atol=0)
        assert (gradient[~mask] == 0).all()
        per_token = token_loss(dirty[0], deltas, mode, dirty[1], mask=mask).loss
        assert (per_token[~mask] == 0).all()


def test_sapo_takes_other_temperatures():
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    loss = sapo_loss(one.exp(), one, temperatures=(3.0, 1.0))
    expected = -4 / 3 / (1 + math.exp(-3 * (math.e - 1)))
    assert loss.item() == pytest.approx(expected)


def test_a_delta_for_each_token():
    log_probs, old, deltas, mask = rollout((2, 3, 4), 0)
    spread = deltas[..., None].expand_as(log_probs)
    for mode in LOSS_MODES:
        loss = compute_loss(log_probs, deltas, mode, old, mask=mask)
        assert compute_loss(log_probs, spread, mode, old, mask=mask) == loss


def test_deltas_get_no_gradient():
    log_probs, old, deltas, _ = rollout((2, 3, 4), 0)
    deltas.requires_grad_()
    log_probs.requires_grad_()
    compute_loss(log_probs, deltas, "clipped", old).backward()
    assert deltas.grad is None and log_probs.grad is not None


ONES, DELTAS = torch.zeros(2, 3, 4), torch.ones(2, 3)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((ONES, DELTAS, "clip", ONES), {}, "naive.*unclipped.*clipped"),
        ((ONES, DELTAS, "clipped"), {}, r"needs old_log_probs.*no_grad"),
        ((ONES, DELTAS, "unclipped"), {}, "needs old_log_probs"),
        ((ONES, DELTAS, "clipped", ONES[:1]), {}, "old_log_probs has shape"),
        ((ONES, DELTAS, "clipped", ONES.clone().requires_grad_()), {}, "no_grad"),
        ((ONES, DELTAS[:1], "naive"), {}, "one delta per response"),
        ((ONES, DELTAS.T, "naive"), {}, "one delta per response"),
        ((ONES[0], DELTAS[0], "naive"), {}, "batch trial pos"),
        ((ONES, DELTAS, "naive"), {"mask": ONES[:1]}, "mask has shape"),
        ((ONES, DELTAS, "naive"), {"aggregation": "sum"}, "token_mean"),
        ((ONES, DELTAS, "clipped", ONES), {"epsilon": 0.0}, "epsilon=0"),
        ((ONES, DELTAS, "clipped", ONES), {"epsilon": -0.1}, "epsilon=-0.1"),
        ((ONES, DELTAS, "clipped", ONES), {"epsilon": math.nan}, "epsilon=nan"),
        ((ONES, DELTAS, "clipped", ONES), {"epsilon_high": -1.0}, "epsilon_high=-1"),
        ((ONES, DELTAS, "clipped", ONES), {"ratio_level": "group"}, "'sequence'"),
        ((ONES, DELTAS, "dual_clipped", ONES), {"dual_clip": 1.1}, "above 1 . epsilon"),
    ],
)
def test_bad_input_of_losses(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        compute_loss(*arguments, **options)


# KL against exact enumeration: values, gradients as loss and as reward, errors


EXACT = {"rtol": 0, "atol": 1e-10}


def two_policies(*shape, number=0):
    """Logits of a policy, and log-probs of a reference, in float64."""
    generator = torch.Generator().manual_seed(number)
    logits, ref = torch.randn(2, *shape, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), ref.log_softmax(-1)


def gradient_of(value, logits):
    return torch.autograd.grad(value, logits, retain_graph=True)[0]


def expected_loss_gradient(logits, ref, estimator):
    """Gradient of the estimator as a loss, averaged over all outcomes of pi."""
    log_probs = logits.log_softmax(-1)
    values = kl_values(log_probs, ref, estimator)
    return gradient_of((log_probs.exp().detach() * values).sum(), logits)


@pytest.mark.parametrize("number", range(3))
def test_expected_values(number):
    logits, ref = two_policies(6, number=number)
    log_probs = logits.detach().log_softmax(-1)
    kl = exact_kl(log_probs, ref)
    expected = {
        name: (log_probs.exp() * kl_values(log_probs, ref, name)).sum()
        for name in KL_ESTIMATORS
    }
    rows = list(zip(log_probs.tolist(), ref.tolist(), strict=True))
    by_hand = sum(math.exp(p) * (p - q) for p, q in rows)
    half_square = sum(math.exp(p) * (p - q) ** 2 / 2 for p, q in rows)
    assert kl.item() == pytest.approx(by_hand, abs=1e-10)
    for name in ("k1", "k3", "corrected_k3"):  # no bias
        torch.testing.assert_close(expected[name], kl, **EXACT)
    assert expected["k2"].item() == pytest.approx(half_square, abs=1e-10)
    assert abs(expected["k2"] - kl) > 0.01 * kl  # biased


@pytest.mark.parametrize("number", range(3))
def test_expected_gradients_as_a_loss(number):
    logits, ref = two_policies(6, number=number)
    log_probs = logits.log_softmax(-1)
    to_ref = gradient_of(exact_kl(log_probs, ref), logits)
    from_ref = gradient_of((ref.exp() * (ref - log_probs)).sum(), logits)
    assert (to_ref - from_ref).norm() > 0.05 * to_ref.norm()
    for name, truth in {
        "k1": torch.zeros(6, dtype=torch.float64),
        "k2": to_ref,
        "k3": from_ref,
        "corrected_k3": to_ref,
    }.items():
        torch.testing.assert_close(
            expected_loss_gradient(logits, ref, name), truth, **EXACT
        )


def test_corrected_k3_is_exact_on_samples_of_an_older_policy():
    logits, ref = two_policies(6)
    old = two_policies(6, number=7)[1]
    log_probs = logits.log_softmax(-1)
    values = kl_values(log_probs, ref, "corrected_k3", old_log_probs=old)
    mean, kl = (old.exp() * values).sum(), exact_kl(log_probs, ref)
    torch.testing.assert_close(mean, kl, **EXACT)
    torch.testing.assert_close(
        gradient_of(mean, logits), gradient_of(kl, logits), **EXACT
    )


def all_responses(first, second):
    """Log-probs [1 16 2] of all responses; the second token depends on the first."""
    first, second = first.log_softmax(-1), second.log_softmax(-1)
    pairs = torch.stack([first[:, None].expand_as(second), second], -1)
    return pairs.reshape(1, 16, 2)


def two_token_world():
    generator = torch.Generator().manual_seed(7)
    draw = {"generator": generator, "dtype": torch.float64}
    logits = [torch.randn(4, **draw), torch.randn(4, 4, **draw)]
    ref = all_responses(torch.randn(4, **draw), torch.randn(4, 4, **draw))
    logits = [part.requires_grad_() for part in logits]
    log_probs = all_responses(*logits)
    probs = log_probs.sum(-1).exp()
    kl = (probs * (log_probs - ref).sum(-1)).sum()
    return logits, log_probs, ref, probs, kl


def test_two_tokens_in_the_loss_miss_what_the_first_does_to_the_second():
    logits, log_probs, ref, probs, kl = two_token_world()
    later = (log_probs - ref)[..., 1].detach()
    missed = torch.autograd.grad((probs * later).sum(), logits, retain_graph=True)
    truth = torch.autograd.grad(kl, logits, retain_graph=True)
    assert missed[0].norm() > 0.1 * truth[0].norm()
    for name in ("k2", "corrected_k3"):
        values = kl_values(log_probs, ref, name).sum(-1)
        mean = (probs.detach() * values).sum()
        seen = torch.autograd.grad(mean, logits, retain_graph=True)
        # the second token's policy has its full gradient, the first one's lacks
        # the part that goes through the state in which the second is chosen
        torch.testing.assert_close(seen[1], truth[1], **EXACT)
        torch.testing.assert_close(seen[0] + missed[0], truth[0], **EXACT)


def test_corrected_k3_is_exact_for_each_token_given_those_before():
    """But not for whole responses: that the first token was pi_old's choice stays."""
    logits, log_probs, ref, _, kl = two_token_world()
    generator = torch.Generator().manual_seed(1)
    draw = {"generator": generator, "dtype": torch.float64}
    old = all_responses(torch.randn(4, **draw), torch.randn(4, 4, **draw))
    values = kl_values(log_probs, ref, "corrected_k3", old_log_probs=old).sum(-1)
    mean = (old.sum(-1).exp() * values).sum()
    new, ref, old = (x.reshape(4, 4, 2) for x in (log_probs, ref, old))
    in_each_state = exact_kl(new[..., 1], ref[..., 1])
    first = exact_kl(new[:, 0, 0], ref[:, 0, 0])
    seen = first + (old[:, 0, 0].exp() * in_each_state).sum()
    torch.testing.assert_close(mean, seen, **EXACT)
    for one, other in zip(
        torch.autograd.grad(mean, logits, retain_graph=True),
        torch.autograd.grad(seen, logits, retain_graph=True),
        strict=True,
    ):
        torch.testing.assert_close(one, other, **EXACT)
    assert abs(mean - kl) > 0.05 * kl


def test_k1_in_the_reward_is_exact_for_two_tokens():
    logits, log_probs, ref, probs, kl = two_token_world()
    rewards = kl_reward(torch.zeros_like(probs), log_probs, ref, 1.0)
    assert not rewards.requires_grad
    # the mean over 16 responses of weight * delta is the expectation under pi
    deltas = 16 * probs.detach() * rewards
    loss = compute_loss(log_probs, deltas, "naive", aggregation="constant")
    seen = torch.autograd.grad(2 * loss, logits, retain_graph=True)  # of 2 positions
    truth = torch.autograd.grad(kl, logits)
    for one, other in zip(seen, truth, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


def test_kl_reward_sums_over_the_mask():
    log_probs = torch.tensor([[[-1.0, -2.0, float("nan")]]])
    ref = torch.tensor([[[-1.5, -4.0, -1.0]]])
    mask = torch.tensor([[[1, 1, 0]]])
    rewards = kl_reward(torch.tensor([[3.0]]), log_probs, ref, 0.1, mask)
    torch.testing.assert_close(rewards, torch.tensor([[3.0 - 0.1 * (0.5 + 2.0)]]))


def test_exact_kl_with_impossible_outcomes():
    logits = torch.tensor([0.0, 0.0, -torch.inf], dtype=torch.float64)
    logits.requires_grad_()
    never = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64).log()
    sometimes = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64).log()
    for ref, expected in ((never, 0.0), (sometimes, math.log(2))):
        kl = exact_kl(logits.log_softmax(-1), ref)
        assert kl.item() == pytest.approx(expected, abs=1e-12)
        assert gradient_of(kl, logits).isfinite().all()
    assert exact_kl(sometimes, never) == torch.inf


def test_k3_keeps_small_differences_in_float32():
    difference = torch.logspace(-7, -1, 200)
    log_probs = torch.full_like(difference, -1.0).double()
    truth = kl_values(log_probs, log_probs - difference.double(), "k3")
    # log pi = 0 so that the difference itself is not rounded
    near = kl_values(torch.zeros_like(difference), -difference, "k3").double()
    tolerance = 1.2e-7 * difference.double()
    assert ((near - truth).abs() <= tolerance).all()
    naive = ((-difference).exp() - 1 + difference).double()
    assert ((naive - truth).abs() > tolerance).any()


@property_test
@given(
    st.tuples(*[st.integers(1, 3)] * 3, st.integers(1, 4)),
    st.integers(0, 99),
    st.sampled_from(list(KL_ESTIMATORS)),
    st.sampled_from(["sequence_mean", "token_mean", "constant"]),
)
def test_penalty_of_seeds_side_by_side_and_padding(shape, number, name, aggregation):
    logits, ref = two_policies(*shape, number=number)
    log_probs = logits.detach().log_softmax(-1).requires_grad_()
    generator = torch.Generator().manual_seed(number)
    mask = torch.rand(shape, generator=generator) < 0.6  # some rows are empty
    options = {"aggregation": aggregation, "old_log_probs": ref - 0.1}
    together = compute_kl_penalty(log_probs, ref, name, mask, **options)
    gradient = gradient_of(together.sum(), log_probs)
    dirty = torch.where(mask, log_probs.detach(), float("nan")).requires_grad_()
    penalty = compute_kl_penalty(dirty, ref, name, mask, **options)
    torch.testing.assert_close(penalty, together, **EXACT)
    torch.testing.assert_close(gradient_of(penalty.sum(), dirty), gradient, **EXACT)
    for seed in range(shape[0]):
        one = log_probs[seed].detach().requires_grad_()
        options["old_log_probs"] = ref[seed] - 0.1
        alone = compute_kl_penalty(one, ref[seed], name, mask[seed], **options)
        torch.testing.assert_close(together[seed], alone, **EXACT)
        torch.testing.assert_close(gradient_of(alone, one), gradient[seed], **EXACT)


def test_the_penalty_is_zero_at_the_reference():
    log_probs = two_policies(2, 3, 4)[1].requires_grad_()
    for name in KL_ESTIMATORS:
        assert compute_kl_penalty(log_probs, log_probs.detach(), name) == 0


@pytest.mark.parametrize("kl", [0.0, 0.05, 0.085, 0.1, 0.11, 0.13, 9.0])
def test_adaptive_coefficient(kl):
    """Ziegler et al. 2019, 2.2, and verl's controller, each in its own words."""
    error = min(max((kl - 0.1) / 0.1, -0.2), 0.2)
    by_paper = 0.5 * (1 + 0.1 * error)
    assert adapted_beta(0.5, kl, target=0.1) == pytest.approx(by_paper)
    assert abs(by_paper / 0.5 - 1) <= 0.02 + 1e-12
    samples, horizon = 512, 10_000
    by_verl = 0.5 * (1 + float(np.clip(kl / 0.1 - 1, -0.2, 0.2)) * samples / horizon)
    beta = adapted_beta(0.5, kl, target=0.1, gain=samples / horizon)
    assert beta == pytest.approx(by_verl)
    wider = adapted_beta(0.5, kl, target=0.1, gain=1.0, largest_error=0.4)
    assert wider == pytest.approx(0.5 * min(max(kl / 0.1, 0.6), 1.4))


def test_each_seed_has_its_own_coefficient():
    both = adapted_beta(0.5, torch.tensor([9.0, 0.1]), target=0.1)
    assert both.tolist() == [pytest.approx(0.51), pytest.approx(0.5)]


def test_the_coefficient_settles_where_the_kl_is_its_target():
    """Of a policy whose KL falls as beta rises."""
    beta = 0.01
    for _ in range(1000):
        beta = adapted_beta(beta, 0.05 / beta, target=0.1)
    assert 0.05 / beta == pytest.approx(0.1, rel=0.01)


A = torch.full((1, 2, 3), -1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kl_values(A, A, "k4"), "k1.*k2.*k3.*corrected_k3"),
        (lambda: kl_values(A, A[..., :2]), "ref_log_probs has shape"),
        (lambda: kl_values(A, A.clone().requires_grad_()), "reference is pulled"),
        (lambda: compute_kl_penalty(A[0], A[0]), "batch trial pos"),
        (lambda: compute_kl_penalty(A, A[..., :2], "k3", A == -1), "ref_log_probs"),
        (lambda: exact_kl(A, A), "Apply log_softmax"),
        (
            lambda: kl_reward(A[..., 0].T, A, A, 0.1),
            r"pass one for each response, \[1, 2\]",
        ),
        (lambda: kl_reward(A[..., 0], A, A, -0.1), "beta is 0 or more"),
        (lambda: adapted_beta(1.0, 0.1, target=-0.1), "target=-0.1"),
        (lambda: adapted_beta(1.0, 0.1, target=0.1, gain=1.1), "gain=1.1.*jump"),
        (lambda: adapted_beta(1.0, 0.1, target=0.1, gain=0.0), "gain=0.0.*above 0"),
        (
            lambda: adapted_beta(1.0, 0.1, target=0.1, largest_error=-0.2),
            "largest_error=-0.2.*above 0 and at most 1",
        ),
        (lambda: adapted_beta(1.0, math.nan, target=0.1), "finite"),
    ],
)
def test_bad_input_of_kl(call, message):
    with pytest.raises(ValueError, match=message):
        call()
