"""KL against exact enumeration: values, gradients as loss and as reward, errors."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import (
    KL_ESTIMATORS,
    compute_kl_penalty,
    compute_loss,
    exact_kl,
    kl_reward,
    kl_values,
)
from grpo_course.loop import adapted_beta

EXACT = {"rtol": 0, "atol": 1e-10}
property_test = settings(deadline=None, max_examples=30, derandomize=True)


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
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
