"""Responses that another sampler draws: what is noted, and what a weight repairs."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import Generator

from grpo_course.formulas import sampler_weights
from grpo_course.loop import Rollout, TrainConfig, Trainer, correct_deltas
from grpo_course.off_policy import EngineSampler
from grpo_course.sampling import Sampler, pick
from grpo_course.sequences import (
    ASK,
    SequencePolicy,
    TinyLM,
    all_sort_prompts,
    response_logits,
    train_sort,
)

PROMPTS, VOCAB, OWN = all_sort_prompts()[:6], 7, Sampler(3)


class Rounded(Sampler):
    """An engine of low precision: logits in steps of a half."""

    def log_probs(self, logits, keep=None):
        return super().log_probs((2 * logits).round() / 2, keep)


ENGINES = {
    "temperature": Sampler(3, temperature=0.5),
    "top_k": Sampler(3, top_k=3),
    "rounded": Rounded(3),
}


def make_policy(sampler=OWN):
    """Two seeds, with logits large enough that engines differ."""
    model = TinyLM(VOCAB, hidden_size=16, seeds=(0, 1))
    with torch.no_grad():
        for weight in model.parameters():
            weight *= 3
    generators = [Generator().manual_seed(seed) for seed in (0, 1)]
    return SequencePolicy(model, sampler, generators)


def first_logits(policy):
    """What the policy thinks before its first token. -> [seed vocab]"""
    any_token = torch.zeros(2, 1, 1, 1, dtype=torch.long)
    return response_logits(policy.model, PROMPTS[:1], any_token)[:, 0, 0, 0]


@pytest.fixture(params=ENGINES.values(), ids=ENGINES)
def engine(request):
    return request.param


def test_a_rollout_notes_what_it_was_drawn_from(engine):
    policy = make_policy()
    rollout = EngineSampler(policy, engine).sample(PROMPTS, 16)
    logits = response_logits(policy.model, PROMPTS, rollout.responses)
    drawn_from = pick(engine.log_probs(logits), rollout.responses)
    torch.testing.assert_close(rollout.sampled_log_probs, drawn_from)
    own = pick(logits.log_softmax(-1), rollout.responses)
    assert (own - drawn_from).abs().max() > 0.05


def test_tokens_come_as_often_as_the_engine_says(engine):
    one = replace(engine, max_new_tokens=1)
    policy = make_policy(Sampler(1))
    rollout = EngineSampler(policy, one).sample(PROMPTS[:1], 20_000)
    chances = one.log_probs(first_logits(policy)).exp()
    for tokens, expected in zip(rollout.responses, chances, strict=True):
        shares = tokens.flatten().bincount(minlength=VOCAB) / 20_000
        torch.testing.assert_close(shares, expected, atol=0.015, rtol=0)
        assert (shares[expected == 0] == 0).all()


def test_scores_are_the_policys_own_and_reach_its_weights(engine):
    policy = make_policy()
    actor = EngineSampler(policy, engine)
    rollout = actor.sample(PROMPTS, 4)
    scores = actor.log_probs(rollout)
    assert torch.equal(scores, policy.log_probs(rollout))
    scores.sum().backward()
    assert all(weight.grad is not None for weight in policy.model.parameters())
    assert policy.sampler is OWN  # the policy itself was not touched


def test_the_policys_own_sampler_as_engine_changes_nothing():
    knobs = {"seeds": (0, 1), "num_epochs": 4, "num_steps_per_epoch": 2}
    _, plain = train_sort(**knobs)
    _, wrapped = train_sort(**knobs, wrap=lambda p: EngineSampler(p, p.sampler))
    assert torch.equal(plain.curve("loss"), wrapped.curve("loss"))


# One token of seven, all of them enumerated: the truth is known.


TOKENS = torch.arange(VOCAB).expand(2, 1, VOCAB)[..., None]  # [seed batch trial pos]


def every_token(engine):
    """A policy, and a rollout of each token once with what the engine notes of it."""
    policy = make_policy(Sampler(1))
    noted = engine.log_probs(first_logits(policy)).detach()
    rollout = Rollout(PROMPTS[:1], TOKENS, sampled_log_probs=noted.view(TOKENS.shape))
    return policy, rollout


def expected_gradient(policy, chances, deltas):
    """The mean of delta grad log pi over draws with these chances. -> [seed weight]"""
    gain = (chances * deltas * policy.log_probs(Rollout(PROMPTS[:1], TOKENS))).sum()
    gradient = torch.autograd.grad(gain, [*policy.model.parameters()])
    return torch.cat([part.flatten(1) for part in gradient], dim=1)


@pytest.mark.parametrize("cap", [1.1, 1e9])
def test_weights_are_the_quotients_of_two_distributions(engine, cap):
    policy, rollout = every_token(engine)
    pi, noted = policy.log_probs(rollout).detach(), rollout.sampled_log_probs
    weights = sampler_weights(pi, noted, cap)
    expected = (pi.exp() / noted.exp()).clamp(max=cap)
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize(
    ("name", "cap", "exact"),
    [
        ("temperature", 1e9, True),
        ("rounded", 1e9, True),
        ("temperature", 1.2, False),
        ("top_k", 1e9, False),
    ],
)
def test_a_large_cap_makes_the_gradient_exact_where_all_is_drawn(name, cap, exact):
    policy, rollout = every_token(ENGINES[name])
    old = policy.log_probs(rollout).detach()
    rewards = torch.linspace(1, 0, VOCAB).expand(2, 1, VOCAB)
    weighed = correct_deltas(rewards, rollout, old, cap)
    right = expected_gradient(policy, old.exp(), rewards[..., None])
    chances = rollout.sampled_log_probs.exp()  # 0 for what is never drawn
    ignored = expected_gradient(policy, chances, rewards[..., None])
    given = expected_gradient(policy, chances, weighed)
    error, without = (
        (each - right).norm(dim=1) / right.norm(dim=1) for each in (given, ignored)
    )
    assert (without > 0.05).all()
    assert (error < 1e-4).all() if exact else (error > 0.02).all()


# In the loop


@pytest.mark.parametrize("settings", [{"temperature": 0.5}, {"top_k": 3}])
def test_the_loop_weighs_what_the_engine_drew(settings):
    """With a seed axis and responses that end: padding weighs 1."""
    policy = make_policy(Sampler(6, eos=ASK, pad=ASK))
    actor = EngineSampler(policy, replace(policy.sampler, **settings))
    knobs = {"num_responses": 8, "deltas_mode": "rewards", "sampler_cap": 2.0}
    config, optimizer = TrainConfig(**knobs), torch.optim.SGD(policy.model.parameters())
    length = lambda rollout: rollout.mask.sum(-1) * 1.0  # noqa: E731
    trainer = Trainer(actor, PROMPTS, length, optimizer, config)
    batch = trainer.collect(PROMPTS)
    rollout = batch.rollout
    pi, noted = policy.log_probs(rollout).detach(), rollout.sampled_log_probs
    weights = (pi.exp() / noted.exp()).clamp(max=2)
    weights = torch.where(rollout.mask, weights, 1.0)
    assert not rollout.mask.all() and weights.min() < 0.9
    # A top_k only adds to what it keeps, so its weights are 1 at most.
    assert (weights > 1.1).any() == ("temperature" in settings)
    torch.testing.assert_close(batch.deltas, batch.rewards[..., None] * weights)


def test_seeds_train_beside_each_other_as_they_train_alone():
    knobs = {"num_epochs": 3, "num_steps_per_epoch": 2, "sampler_cap": 2.0}
    knobs["wrap"] = lambda policy: EngineSampler(policy, ENGINES["temperature"])
    _, both = train_sort(seeds=(0, 1), **knobs)
    for seed in (0, 1):
        _, alone = train_sort(seeds=(seed,), **knobs)
        loss = both.curve("loss")[:, seed : seed + 1]
        torch.testing.assert_close(loss, alone.curve("loss"), atol=1e-4, rtol=1e-3)


def test_an_engine_of_another_form_is_refused():
    policy = make_policy(Sampler(6, eos=ASK, pad=ASK))
    for change in ({"max_new_tokens": 5}, {"eos": 1}, {"pad": 0}):
        name = f"engine.{next(iter(change))}="
        with pytest.raises(ValueError, match=name):
            EngineSampler(policy, replace(policy.sampler, **change))
    with pytest.raises(TypeError, match="SimpleNamespace has no `sampler`"):
        EngineSampler(SimpleNamespace(), OWN)
