"""PPO in the one loop: a critic's deltas, its losses, seeds side by side."""

from dataclasses import replace

import pytest
import torch

from grpo_course.formulas import kl_values
from grpo_course.loop import Rollout
from grpo_course.ppo import PPO, Critic, PPOConfig, ValueHead, whiten
from grpo_course.sort import (
    SORT_PROMPTS,
    exact_entropy,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)

REWARD = rollout_reward(sort_distance_reward)
QUICK = {"num_epochs": 3, "num_steps_per_epoch": 4, "num_responses": 6}


def make(seeds, head=False, **knobs):
    """PPO on a policy and a critic of the same seeds, one optimizer for all."""
    policy = make_policy(SORT_PROMPTS, seeds, init_scale=0.1)
    critic = Critic(5, 10, 3, 3, seeds)
    if head:
        # a stand-in for features: the embedding of the first number
        features = lambda prompts: policy.model.embedding[..., prompts[:, 0], :]  # noqa: E731
        critic = ValueHead(features, 10, 3, seeds)
    weights = [*policy.model.parameters(), *critic.parameters()]
    optimizer, config = torch.optim.Adam(weights, lr=0.01), PPOConfig(**(QUICK | knobs))
    parts = (policy, SORT_PROMPTS, REWARD, optimizer, config)
    entropy = lambda rollout: exact_entropy(policy.model, rollout.prompts)  # noqa: E731
    return PPO(*parts, critic=critic, entropy=entropy)


def run(seeds, **knobs):
    return make(seeds, **knobs).train()


def test_a_zero_critic_without_discount_gives_each_token_the_reward():
    batch = make((0, 1), lam=1.0, whiten_deltas=False).collect(SORT_PROMPTS)
    assert batch.deltas.shape == (2, 3, 6, 3)
    expected = batch.rewards[..., None].expand(2, 3, 6, 3)
    assert torch.equal(batch.deltas, expected)
    returns, old_values = batch.targets.chunk(2, dim=-1)
    assert torch.equal(returns, expected) and not old_values.any()


def test_a_cut_response_is_worth_what_the_critic_expects_after_it():
    """Of six responses the first two were cut off; a bootstrap of 5 for all."""
    cut = torch.tensor([True, True, False, False, False, False]).expand(2, 3, 6)
    ppo = make((0, 1), lam=1.0, whiten_deltas=False)
    sample = ppo.policy.sample
    ppo.policy.sample = lambda *asked: replace(sample(*asked), finished=~cut)
    as_ends = ppo.collect(SORT_PROMPTS)
    assert torch.equal(as_ends.deltas[..., 0], as_ends.rewards)
    ppo.bootstrap = lambda rollout: torch.full(rollout.responses.shape[:-1], 5.0)
    batch = ppo.collect(SORT_PROMPTS)
    torch.testing.assert_close(batch.deltas[..., 0], batch.rewards + 5.0 * cut)


def test_deltas_are_whitened_and_targets_are_not():
    batch = make((0,), lam=1.0).collect(SORT_PROMPTS)
    returns = batch.targets.chunk(2, dim=-1)[0]
    torch.testing.assert_close(batch.deltas, whiten(returns))
    assert torch.equal(returns[..., 0], batch.rewards)


@pytest.mark.parametrize("knobs", [{}, {"value_clip": 0.2}, {"head": True}])
def test_seeds_side_by_side_are_the_seeds_alone(knobs):
    both = run((3, 8), **knobs)
    for i, seed in enumerate((3, 8)):
        alone = run((seed,), **knobs)
        for name in ("loss", "value_loss", "gradient_norm", "mean_reward", "old_kl"):
            found, expected = both.curve(name)[:, i], alone.curve(name)[:, 0]
            torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_the_loss_is_policy_plus_value_minus_entropy():
    ppo = make((0, 1), value_weight=0.7, entropy_bonus=0.3)
    batch = ppo.collect(SORT_PROMPTS)
    record = ppo.improve(batch)
    expected = (
        record["policy_loss"] + 0.7 * record["value_loss"] - 0.3 * record["entropy_now"]
    )
    torch.testing.assert_close(record["loss"], expected)
    assert (record["old_kl"] == 0).all()
    moved = ppo.improve(batch)
    assert (moved["old_kl"] > 0).all()


def test_an_entropy_bonus_keeps_entropy():
    def final_entropy(bonus):
        knobs = {"num_epochs": 8, "num_responses": 10, "entropy_bonus": bonus}
        ppo = make((0, 1, 2, 3), **knobs)
        ppo.train()
        return exact_entropy(ppo.policy.model, SORT_PROMPTS).mean()

    assert final_entropy(1.0) > final_entropy(0.0) + 0.1


def test_the_entropy_bonus_says_why_it_wants_the_exact_entropy():
    ppo, config = make((0,)), PPOConfig(entropy_bonus=0.01)
    parts = (ppo.policy, SORT_PROMPTS, REWARD, ppo.optimizer, config)
    with pytest.raises(ValueError, match="their gradient is zero on average"):
        PPO(*parts, critic=ppo.critic)


@pytest.mark.parametrize(
    ("knob", "value", "words"),
    [
        ("gamma", 2, "(?s)gamma.*less than or equal to 1"),
        ("gamma", 0, "(?s)gamma.*greater than 0"),
        ("lam", -1, "(?s)lam.*greater than or equal to 0"),
        ("value_clip", -1, "(?s)value_clip.*greater than 0"),
        ("value_clip", float("nan"), "(?s)value_clip.*a finite number"),
        ("value_weight", -1, "(?s)value_weight.*greater than or equal"),
        ("entropy_bonus", -1, "(?s)entropy_bonus.*greater than or"),
    ],
)
def test_a_knob_out_of_range_is_named_when_it_is_set(knob, value, words):
    with pytest.raises(ValueError, match=words):
        PPOConfig(**{knob: value})


@pytest.mark.parametrize("place", ["loss", "reward"])
def test_kl_in_the_reward_is_paid_token_by_token(place):
    knobs = {"lam": 1.0, "whiten_deltas": False, "kl_penalty": 0.5}
    ppo = make((0, 1), kl_place=place, **knobs)
    ppo.ref_policy = make_policy(SORT_PROMPTS, (5, 6), init_scale=1.0)
    batch = ppo.collect(SORT_PROMPTS)
    k1 = kl_values(batch.old_log_probs, batch.ref_log_probs, "k1")
    still_to_pay = k1.flip(-1).cumsum(-1).flip(-1)
    expected = batch.rewards[..., None].expand_as(k1)
    if place == "reward":
        expected = expected - 0.5 * still_to_pay
    torch.testing.assert_close(batch.deltas, expected)


def test_minibatches_train_the_critic_too():
    history = run((0, 1), num_epochs=15, minibatch_size=9, value_clip=0.5)
    assert len(history.records) == 15 * 4 * 2
    losses = history.curve("value_loss")
    assert (losses[-8:].mean(0) < 0.8 * losses[:8].mean(0)).all()


def test_the_critic_learns_the_value_of_the_prompt_and_of_what_was_written():
    ppo = make(tuple(range(4)), num_epochs=100, num_responses=10)
    learning = list(ppo.critic.parameters())
    ppo.optimizer.param_groups[0]["params"] = learning  # the actor stays as it is
    ppo.train()
    right = SORT_PROMPTS.sort(-1).values[:, None]
    wrong = (right + 1) % 5
    tokens = torch.cat([right, wrong], dim=1).expand(4, 3, 2, 3)
    values = ppo.critic(Rollout(SORT_PROMPTS, tokens)).detach()
    assert torch.equal(values[..., 0, 0], values[..., 1, 0])  # nothing written yet
    # Two right numbers are worth two points more than two wrong ones.
    gap = (values[..., 0, 2] - values[..., 1, 2]).mean()
    assert 1 < gap < 3
