"""TD errors, GAE, rewards and KL per token: closed forms, worked numbers, errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_course.formulas import kl_reward
from grpo_course.ppo import (
    generalized_advantages,
    kl_per_token,
    reward_per_token,
    td_errors,
    whiten,
)

NUMBERS = st.floats(-5, 5)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12)


def columns(pairs):
    rewards, values = zip(*pairs, strict=True)
    return torch.tensor([rewards, values], dtype=torch.float64)


def closed_form(errors, factor):
    """The sum over l of factor**l times the error l tokens later, all at once."""
    token = torch.arange(errors.shape[-1])
    later = token[None, :] - token[:, None]
    powers = torch.where(later >= 0, float(factor) ** later.clamp(min=0).double(), 0.0)
    return errors @ powers.to(errors).T


@settings(deadline=None)
@given(PAIRS, st.floats(0.01, 1), st.floats(0, 1))
def test_recursion_equals_the_closed_form(pairs, gamma, lam):
    rewards, values = columns(pairs)
    found = generalized_advantages(rewards, values, gamma, lam)
    expected = closed_form(td_errors(rewards, values, gamma), gamma * lam)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@settings(deadline=None)
@given(PAIRS, st.floats(0.01, 1))
def test_lam_zero_is_the_td_error_and_lam_one_the_return_minus_value(pairs, gamma):
    rewards, values = columns(pairs)
    td = generalized_advantages(rewards, values, gamma, lam=0.0)
    assert torch.equal(td, td_errors(rewards, values, gamma))
    full = generalized_advantages(rewards, values, gamma, lam=1.0)
    returns = closed_form(rewards, gamma)
    torch.testing.assert_close(full, returns - values, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("gamma", "before"), [(0.99, 0.2351), (1.0, 0.240)])
def test_worked_numbers_of_two_tokens(gamma, before):
    rewards, values = torch.tensor([[0.0, 0.5], [0.25, 0.3]], dtype=torch.float64)
    found = generalized_advantages(rewards, values, gamma, lam=0.95)
    expected = torch.tensor([before, 0.2], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_population_and_sample_spread_of_the_worked_group():
    group = torch.tensor([1.0, 0.8, 0.4, 0.2])
    centered = group - group.mean()
    population, sample = centered / group.std(correction=0), centered / group.std()
    assert population.tolist() == pytest.approx(
        [1.265, 0.632, -0.632, -1.265], abs=1e-3
    )
    assert sample.tolist() == pytest.approx([1.095, 0.548, -0.548, -1.095], abs=1e-3)


def test_what_is_left_after_300_tokens():
    rewards, values = torch.zeros(2, 301, dtype=torch.float64)
    rewards[-1] = 1.0
    first = generalized_advantages(rewards, values, 0.99, 0.95)[0].item()
    assert first == pytest.approx((0.99 * 0.95) ** 300, rel=1e-9)
    assert first == pytest.approx(1.018e-8, rel=1e-2)
    first = generalized_advantages(rewards, values, 0.99, 1.0)[0].item()
    assert first == pytest.approx(0.99**300) == pytest.approx(0.049, abs=1e-3)


def test_leading_axes_are_independent():
    generator = torch.Generator().manual_seed(0)
    rewards, values = torch.randn(2, 3, 2, 4, 5, generator=generator)
    together = generalized_advantages(rewards, values, 0.9, 0.8)
    for i in torch.cartesian_prod(*map(torch.arange, (3, 2, 4))).tolist():
        one = generalized_advantages(rewards[tuple(i)], values[tuple(i)], 0.9, 0.8)
        torch.testing.assert_close(together[tuple(i)], one)


def test_padding_does_not_reach_the_response():
    rewards, values = torch.tensor([[0.0, 1.0], [0.5, 0.25]])
    short = generalized_advantages(rewards, values, 0.9, 0.8)
    junk = torch.tensor([float("nan"), 7.0])
    padded = torch.stack([torch.cat([x, junk]) for x in (rewards, values)])
    mask = torch.tensor([[[True, True, False, False]]])
    long = generalized_advantages(*padded[:, None, None], 0.9, 0.8, mask)
    torch.testing.assert_close(long[0, 0], torch.cat([short, torch.zeros(2)]))


def by_hand(rewards, values, mask, gamma, lam, bootstrap):
    """GAE of one response: the plain recursion over the tokens that are kept."""
    kept = [t for t, keep in enumerate(mask) if keep]
    deltas, after, delta = [0.0] * len(mask), bootstrap, 0.0
    for t in reversed(kept):
        delta = rewards[t] + gamma * after - values[t] + gamma * lam * delta
        deltas[t], after = delta, values[t]
    return deltas


TOKENS = st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans()), min_size=1, max_size=9)


@settings(deadline=None)
@given(TOKENS, NUMBERS, st.floats(0.01, 1), st.floats(0, 1))
def test_holes_and_cuts_are_those_of_a_plain_recursion(tokens, bootstrap, gamma, lam):
    rewards, values, mask = map(list, zip(*tokens, strict=True))
    expected = by_hand(rewards, values, mask, gamma, lam, bootstrap)
    junk = [r if keep else float("nan") for r, keep in zip(rewards, mask, strict=True)]
    columns = (torch.tensor([[x]], dtype=torch.float64) for x in (junk, values))
    after = torch.tensor([[bootstrap]], dtype=torch.float64)
    found = generalized_advantages(
        *columns, gamma, lam, torch.tensor([[mask]]), bootstrap=after
    )
    assert found[0, 0].tolist() == pytest.approx(expected, abs=1e-9)


def test_a_hole_neither_pays_nor_ends_nor_discounts():
    """The tokens of a tool stand between those of the policy."""
    rewards, values = torch.tensor([[0.0, 0.0, 2.0], [1.0, 0.8, 1.5]])
    alone = generalized_advantages(rewards, values, 0.9, 0.5)
    with_tool = torch.tensor([[[0.0, 9.0, 0.0, 2.0]], [[1.0, 7.0, 0.8, 1.5]]])
    mask = torch.tensor([[[True, False, True, True]]])
    found = generalized_advantages(*with_tool[:, None], 0.9, 0.5, mask)
    torch.testing.assert_close(found[0, 0, [0, 2, 3]], alone)
    assert found[0, 0, 1] == 0


def test_with_a_right_critic_only_the_bootstrap_makes_a_cut_harmless():
    """A walk that pays 1 a step and ends by a coin is worth 2 from everywhere.

    Cut after three tokens, the delta of a token is right, zero on average over what
    follows, if the cut counts as going on; as an end the last one loses the value.
    """
    ends = torch.tensor([1, 2, 3, 3])[None]  # the tokens written, each way equally
    chance = torch.tensor([0.5, 0.25, 0.125, 0.125])  # the last way was cut off
    mask = torch.arange(3) < ends[..., None]
    values, rewards = 2 * torch.ones(1, 4, 3), torch.ones(1, 4, 3)
    after = torch.tensor([[0.0, 0.0, 0.0, 2.0]])
    for lam in (0.0, 0.5, 1.0):
        right = generalized_advantages(rewards, values, 1.0, lam, mask, after)[0]
        assert (right * chance[:, None]).sum(0).abs().max() < 1e-6
        wrong = generalized_advantages(rewards, values, 1.0, lam, mask)[0]
        assert (wrong * chance[:, None]).sum(0)[-1].item() == pytest.approx(-0.25)


def test_one_bootstrap_for_each_response():
    with pytest.raises(ValueError, match="bootstrap"):
        td_errors(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3), bootstrap=torch.zeros(3))


def test_the_reward_is_given_at_the_last_token():
    rewards, like = torch.tensor([[2.0, 3.0, 5.0]]), torch.zeros(1, 3, 4)
    assert reward_per_token(rewards, like)[0, :, -1].tolist() == [2, 3, 5]
    assert reward_per_token(rewards, like).sum() == 10
    mask = torch.tensor([[[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]]).bool()
    found = reward_per_token(rewards, like, mask)[0].tolist()
    assert found == [[0, 2, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0]]


@pytest.mark.parametrize("beta", [0.3, torch.tensor([0.3, 0.0])])
def test_kl_per_token_adds_up_to_the_kl_of_the_response(beta):
    generator = torch.Generator().manual_seed(0)
    log_probs, ref = -torch.rand(2, 2, 3, 4, 5, generator=generator)  # two seeds
    mask = torch.rand(2, 3, 4, 5, generator=generator) < 0.7
    rewards = torch.randn(2, 3, 4, generator=generator)
    mask[..., -1] = True
    found = kl_per_token(
        reward_per_token(rewards, ref, mask), log_probs, ref, beta, mask
    )
    assert (found[~mask] == 0).all()
    for seed, b in enumerate(torch.as_tensor(beta).expand(2).tolist()):
        one = kl_reward(rewards[seed], log_probs[seed], ref[seed], b, mask[seed])
        torch.testing.assert_close(found[seed].sum(-1), one)


def test_whitening_is_by_seed_and_only_over_tokens():
    generator = torch.Generator().manual_seed(0)
    values = 3 + 2 * torch.randn(2, 3, 4, 5, generator=generator)
    values[1] *= 100
    mask = torch.rand(2, 3, 4, 5, generator=generator) < 0.6
    values[~mask] = float("nan")
    white = whiten(values, mask)
    for seed in range(2):
        tokens = white[seed][mask[seed]]
        assert tokens.mean().item() == pytest.approx(0, abs=1e-5)
        assert tokens.std().item() == pytest.approx(1, abs=1e-3)
    assert (white[~mask] == 0).all()


@pytest.mark.parametrize("value", [0.1, 100.1, 1000.1])
def test_tied_values_whiten_to_exactly_zero(value):
    values = torch.full((2, 3, 4, 5), value)
    values[1] += 3
    mask = torch.ones(2, 3, 4, 5, dtype=torch.bool)
    mask[..., :2] = False
    assert (whiten(values) == 0).all()
    assert (whiten(torch.where(mask, values, float("nan")), mask) == 0).all()
    assert (whiten(values, torch.zeros_like(mask)) == 0).all()


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"gamma": 0.0}, "gamma=0.0, but it must be above 0 and at most 1"),
        ({"gamma": 1.01}, "gamma=1.01, but it must be above 0 and at most 1"),
        ({"gamma": float("nan")}, "gamma=nan, but it must be above 0 and at most 1"),
        ({"lam": -0.1}, "lam=-0.1, but it must be at least 0 and at most 1"),
        ({"lam": 1.5}, "lam=1.5, but it must be at least 0 and at most 1"),
        ({"values": torch.zeros(4)}, r"rewards have shape \[3\].*shape \[4\]"),
    ],
)
def test_errors_name_the_argument(knobs, words):
    given = {"rewards": torch.zeros(3), "values": torch.zeros(3)} | knobs
    with pytest.raises(ValueError, match=words):
        generalized_advantages(**given)


def test_one_reward_for_each_response():
    with pytest.raises(ValueError, match=r"pass one for each response, \[1, 3\]"):
        reward_per_token(torch.zeros(1, 2), torch.zeros(1, 3, 4))
