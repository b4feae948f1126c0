"""The policy loss: gradient table, on-policy facts, the zero loss, masks, errors."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import LOSS_MODES, compute_loss, loss_report, token_loss
from grpo_course.loop import Batch, Rollout, TrainConfig, Trainer

sizes = st.tuples(*[st.integers(1, 3)] * 3, st.integers(1, 5))  # seed batch trial pos
property_test = settings(deadline=None, max_examples=30, derandomize=True)
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
        pulls = (gradient != 0).sum((-3, -2, -1)) / mask.sum((-3, -2, -1)).clamp(min=1)
        report = loss_report(log_probs, deltas, old, mode=mode, **knobs)
        seen = report["gradient_fraction"].float()
        torch.testing.assert_close(seen, pulls, msg=f"{mode}, {level}")


def test_a_loss_of_your_own_cuts_nobody(monkeypatch):
    monkeypatch.setitem(LOSS_MODES, "mine", lambda ratio, deltas, **_: -deltas)
    report = loss_report(*one_token(9.0, 1.0), mode="mine")
    assert report["gradient_fraction"] == 1 and report["clip_fraction_high"] == 0


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


@property_test
@given(sizes, st.integers(0, 99), st.sampled_from(AGGREGATION_NAMES))
def test_one_gradient_for_all_modes_at_the_old_policy(shape, number, aggregation):
    _, old, deltas, mask = rollout(shape, number)
    options = {"mask": mask, "aggregation": aggregation}
    naive, *others = [
        loss_and_gradient(old, deltas, mode, old, **options)[1]
        for mode in ("naive", "unclipped", "clipped")
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
def test_seeds_side_by_side_equal_one_at_a_time(shape, number, mode, aggregation):
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
            torch.testing.assert_close(report[name][seed], value)


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
        per_token = token_loss(dirty[0], deltas, mode, dirty[1], mask=mask)
        assert (per_token[~mask] == 0).all()


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
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        compute_loss(*arguments, **options)
