"""Pairs, a reward learned from them, and both ways to train on it: against truth."""

import math

import pytest
import torch

from grpo_course.ppo import (
    climb,
    dpo,
    draw_pairs,
    learn_reward,
    scores_of,
    share_right,
    true_rewards,
    warm_start,
    watch_both,
)
from grpo_course.sort import (
    SORT_PROMPTS,
    all_log_probs,
    exact_expected_reward,
    sort_distance_reward,
)

SEEDS = (3, 4)


def test_the_better_of_two_wins_with_bradley_and_terrys_probability():
    pairs = draw_pairs(20_000, SEEDS)
    worth = true_rewards().expand(2, 3, 125).gather(-1, pairs.flatten(-2))
    gap = worth.unflatten(-1, (-1, 2)).diff(dim=-1).neg()  # of the chosen one
    for size in (1, 2, 3):
        won, lost = (gap == size).sum().item(), (gap == -size).sum().item()
        share, chance = won / (won + lost), 1 / (1 + math.exp(-size))
        error = math.sqrt(chance * (1 - chance) / (won + lost))
        assert abs(share - chance) < 4 * error


def test_another_draw_and_other_seeds_give_other_pairs():
    pairs = draw_pairs(5, SEEDS)
    assert torch.equal(pairs, draw_pairs(5, SEEDS))
    assert not torch.equal(pairs, draw_pairs(5, SEEDS, draw=1))
    assert not torch.equal(pairs, draw_pairs(5, (5, 6)))
    assert not torch.equal(pairs[0], pairs[1])


def test_a_share_is_that_of_the_pairs_in_the_right_order():
    scores = torch.arange(125.0).expand(2, 3, 125)
    pairs = torch.tensor([[5, 1], [1, 5], [7, 7], [9, 2]]).expand(2, 3, 4, 2)
    assert share_right(scores, pairs).tolist() == pytest.approx([0.625, 0.625])


def test_a_climb_notes_exact_numbers_and_leaves_its_start():
    pairs = draw_pairs(20, SEEDS)
    model, losses = learn_reward(pairs, SEEDS, num_steps=40)
    assert (losses[-1] < losses[0]).all()
    scores = scores_of(model)
    assert scores.mean(-1).abs().max() < 1e-5
    torch.testing.assert_close(scores.std(-1), torch.ones(2, 3))
    policy = warm_start(SEEDS, num_epochs=2)
    exact = exact_expected_reward(policy.model, SORT_PROMPTS, sort_distance_reward)
    history = climb(model, policy, num_epochs=5)
    torch.testing.assert_close(history.epochs("true")[0], exact.mean(-1).detach())
    assert (history.epochs("exact_kl")[0] == 0).all()
    assert (history.final("exact_kl") > 0).all()
    assert (history.final("model") > history.epochs("model")[0]).all()
    assert len(history.epochs("model")) == 6


@pytest.mark.slow
def test_a_large_beta_holds_the_policy_at_its_start():
    model, _ = learn_reward(draw_pairs(20, SEEDS), SEEDS, num_steps=40)
    free, held = (
        climb(model, warm_start(SEEDS, num_epochs=2), beta=beta, num_epochs=8)
        for beta in (0.0, 5.0)
    )
    assert (held.final("exact_kl") < 0.2 * free.final("exact_kl")).all()


def test_dpo_begins_at_log_two_and_learns_the_order_of_its_pairs():
    pairs = torch.tensor([[[[7, 90]]] * 3, [[[90, 7]]] * 3])  # [seed batch pair 2]
    policy = warm_start(SEEDS, num_epochs=2)
    start = all_log_probs(policy.model, SORT_PROMPTS).detach()
    losses = dpo(pairs, policy, beta=0.5, num_steps=30)
    assert losses[0].tolist() == pytest.approx([math.log(2)] * 2, abs=1e-6)
    gain = all_log_probs(policy.model, SORT_PROMPTS).detach() - start
    assert (gain[0, :, 7] > gain[0, :, 90]).all()
    assert (gain[1, :, 7] < gain[1, :, 90]).all()
    by_hand = 0.5 * (gain[..., 7] - gain[..., 90]) * torch.tensor([[1.0], [-1.0]])
    after = dpo_loss_of(by_hand)
    assert (after < losses[0]).all()
    assert (after - losses[-1]).abs().max() < 0.1  # one step apart


def dpo_loss_of(gaps):
    """Bradley and Terry's loss of reward differences, written out. [seed batch]"""
    return (1 + (-gaps).exp()).log().mean(-1)


def test_what_is_watched_is_the_expectation_under_the_policy():
    policy = warm_start(SEEDS, num_epochs=1)
    scores = torch.randn(2, 3, 125, generator=torch.Generator().manual_seed(0))
    seen = watch_both(scores, policy, SORT_PROMPTS)(policy)
    probs = all_log_probs(policy.model, SORT_PROMPTS).exp().detach()
    torch.testing.assert_close(seen["model"], (probs * scores).sum(-1).mean(-1))
    assert (seen["exact_kl"] == 0).all()
