"""Later losses against closed forms: gradient tables, limits, sequence ratios."""

import math

import pytest
import torch

from grpo_course.formulas import compute_loss, loss_report, sapo_loss

LOW, HIGH, BOUND = 0.2, 0.4, 3.0
RATIOS = [0.1, 0.79, 0.81, 1.0, 1.39, 1.41, 2.9, 3.1, 50.0]


def loss_and_gradient(ratio, delta, mode, **knobs):
    """One prompt, one response, one token with that ratio; pi_old is 1/100."""
    old = torch.full((1, 1, 1), math.log(0.01), dtype=torch.float64)
    new = (old + math.log(ratio)).requires_grad_()
    deltas = torch.tensor([[delta]], dtype=torch.float64)
    clip = {"epsilon": LOW, "epsilon_high": HIGH}
    loss = compute_loss(new, deltas, mode, old, **clip | knobs)
    loss.backward()
    return loss.item(), new.grad.item()


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("delta", [2.0, -2.0])
def test_dual_clip(ratio, delta):
    loss, gradient = loss_and_gradient(ratio, delta, "dual_clipped", dual_clip=BOUND)
    inside = min(max(ratio, 1 - LOW), 1 + HIGH)
    plain = min(ratio * delta, inside * delta)
    value = max(plain, BOUND * delta) if delta < 0 else plain  # as in its paper
    assert loss == pytest.approx(-value)
    pulls = ratio <= 1 + HIGH if delta > 0 else 1 - LOW <= ratio <= BOUND
    assert gradient == pytest.approx(-delta * ratio * pulls, abs=1e-15)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("delta", [2.0, -2.0])
def test_cispo_never_loses_a_gradient(ratio, delta):
    loss, gradient = loss_and_gradient(ratio, delta, "cispo")
    weight = min(ratio, 1 + HIGH)
    assert loss == pytest.approx(-weight * delta * math.log(ratio * 0.01))
    assert gradient == pytest.approx(-weight * delta)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(("delta", "tau"), [(2.0, 1.0), (-2.0, 1.05)])
def test_sapo(ratio, delta, tau):
    loss, gradient = loss_and_gradient(ratio, delta, "sapo")
    gate = 1 / (1 + math.exp(-tau * (ratio - 1)))
    assert loss == pytest.approx(-4 / tau * gate * delta)
    assert gradient == pytest.approx(-4 * gate * (1 - gate) * ratio * delta)


def test_sapo_takes_other_temperatures():
    one = torch.zeros(1, 1, 1, dtype=torch.float64)
    loss = sapo_loss((one + 1).exp(), one + 1, temperatures=(3.0, 1.0))
    expected = -4 / 3 / (1 + math.exp(-3 * (math.e - 1)))
    assert loss.item() == pytest.approx(expected)


@pytest.mark.parametrize("mode", ["dual_clipped", "cispo", "sapo"])
@pytest.mark.parametrize("delta", [2.0, -2.0])
def test_all_have_the_policy_gradient_at_the_old_policy(mode, delta):
    assert loss_and_gradient(1.0, delta, mode)[1] == pytest.approx(-delta)


def test_clipping_and_gates_hold_back_what_is_far_away():
    """What is left of a pull to a token that is 5 times likelier, and of a push off."""
    pull = {m: -loss_and_gradient(5.0, 1.0, m)[1] for m in ("clipped", "sapo")}
    assert pull["clipped"] == 0 and 0.3 < pull["sapo"] < 0.4
    assert -loss_and_gradient(5.0, 1.0, "unclipped")[1] == pytest.approx(5)
    push = {m: loss_and_gradient(5.0, -1.0, m)[1] for m in ("clipped", "dual_clipped")}
    assert push["clipped"] == pytest.approx(5) and push["dual_clipped"] == 0


def test_a_dual_clip_inside_the_clip_range_is_refused():
    with pytest.raises(ValueError, match=r"dual_clip=1.3.*above 1 \+ epsilon_high"):
        loss_and_gradient(1.0, 1.0, "dual_clipped", dual_clip=1.3)


# One ratio a response: two responses, of two tokens and of one, padded with NaN.
NAN = math.nan
NEW = torch.tensor([[[-1.0, -0.5, NAN], [-0.2, NAN, NAN]]], dtype=torch.float64)
OLD = torch.tensor([[[-1.3, -0.6, NAN], [-0.9, NAN, NAN]]], dtype=torch.float64)
MASK = ~NEW.isnan()
DELTAS = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
MEANS = [math.exp((0.3 + 0.1) / 2), math.exp(0.7)]  # 1.22 and 2.01


def sequence_loss(mode, aggregation="sequence_mean", **knobs):
    new = NEW.clone().requires_grad_()
    knobs |= {"aggregation": aggregation, "ratio_level": "sequence"}
    loss = compute_loss(new, DELTAS, mode, OLD, mask=MASK, **knobs)
    loss.backward()
    assert (new.grad[~MASK] == 0).all()
    return loss.item(), new.grad[MASK].tolist()


def test_a_sequence_ratio_is_the_geometric_mean_of_its_tokens():
    loss, gradient = sequence_loss("unclipped")
    assert loss == pytest.approx(-sum(MEANS) / 2)
    first, second = -MEANS[0] / 2 / 2, -MEANS[1] / 2  # each token gets its share
    assert gradient == pytest.approx([first, first, second])


def test_a_response_is_clipped_as_a_whole():
    loss, gradient = sequence_loss("clipped", epsilon=0.25)
    assert loss == pytest.approx(-(MEANS[0] + 1.25) / 2)
    assert gradient == pytest.approx([-MEANS[0] / 4, -MEANS[0] / 4, 0])


def test_luspo_is_a_sequence_ratio_with_a_sum_over_tokens():
    loss, _ = sequence_loss("unclipped", "sequence_sum")
    assert loss == pytest.approx(-(2 * MEANS[0] + MEANS[1]) / 2)


def test_cispo_weighs_log_probs_of_tokens_by_the_ratio_of_the_response():
    loss, gradient = sequence_loss("cispo", epsilon_high=0.5)
    assert loss == pytest.approx((MEANS[0] * 1.5 / 2 + 1.5 * 0.2) / 2)
    assert gradient == pytest.approx([-MEANS[0] / 4, -MEANS[0] / 4, -0.75])


def test_with_one_token_both_levels_are_the_same():
    new, old = NEW[..., :1], OLD[..., :1]
    for mode in ("unclipped", "clipped", "dual_clipped", "cispo", "sapo"):
        token = compute_loss(new, DELTAS, mode, old)
        sequence = compute_loss(new, DELTAS, mode, old, ratio_level="sequence")
        torch.testing.assert_close(sequence, token)


def test_the_report_looks_at_the_same_ratios():
    knobs = {"mask": MASK, "epsilon": 0.25, "ratio_level": "sequence"}
    report = loss_report(NEW, DELTAS, OLD, **knobs)
    assert report["ratio_min"].item() == pytest.approx(MEANS[0])
    assert report["ratio_max"].item() == pytest.approx(MEANS[1])
    assert report["clip_fraction_high"].item() == pytest.approx(1 / 3)


def test_an_unknown_level_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"ratio_level='group'.*'token', 'sequence'"):
        compute_loss(NEW, DELTAS, "clipped", OLD, mask=MASK, ratio_level="group")
