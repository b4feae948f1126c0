"""A price on length, engines, old samples."""

import copy

import pytest
import torch
from torch import Generator

from grpo_course.loop import (
    Rollout,
    TrainConfig,
    Trainer,
    correct_deltas,
    weights,
)
from grpo_course.off_policy import StaleSampler, with_overlong_penalty
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    SequencePolicy,
    TinyLM,
    all_sort_prompts,
    place_reward,
    response_logits,
    train_sort,
)
from tests.engine import EngineSampler

# A price on length


def test_the_penalty_rises_with_the_length_and_joins_a_reward():
    mask = torch.arange(12) < torch.tensor([0, 6, 7, 8, 10, 12])[:, None]
    rollout = Rollout(torch.zeros(1, 1), torch.zeros(1, 6, 12).long(), mask[None])
    reward = with_overlong_penalty(lambda _: torch.ones(1, 6), 10, buffer=4)
    assert reward(rollout).tolist() == [[1, 1, 0.75, 0.5, 0, 0]]


# Responses that another sampler draws: what is noted, and what a weight repairs


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


# Rollouts of older weights: whose they are, what is noted, what a ratio repairs


LAG = 2


def renewed(policy, ref=None, **knobs):
    """The reference of a loop after its first look at the policy."""
    config = TrainConfig(kl_penalty=0.1, **knobs)
    optimizer = torch.optim.SGD([torch.zeros(1)])
    trainer = Trainer(policy, PROMPTS, place_reward, optimizer, config)
    trainer.ref_policy = ref
    trainer.renew_reference()
    return trainer.ref_policy


def move(policy):
    with torch.no_grad():
        for weight in policy.model.parameters():
            weight += 0.1 * torch.randn_like(weight)


@pytest.fixture
def calls():
    """Five calls with the weights moved between them. -> (policy then, rollout)"""
    torch.manual_seed(0)
    policy = make_policy()
    stale = StaleSampler(policy, LAG)
    made = []
    for _ in range(5):
        made.append((copy.deepcopy(policy), stale.sample(PROMPTS, 4)))
        move(policy)
    return made


def test_the_writer_has_the_weights_of_some_calls_ago(calls):
    for call, (_, rollout) in enumerate(calls):
        then, _ = calls[max(0, call - LAG)]
        torch.testing.assert_close(then.log_probs(rollout), rollout.sampled_log_probs)
        others = [p for i, (p, _) in enumerate(calls) if i != max(0, call - LAG)]
        for other in others:
            gap = other.log_probs(rollout) - rollout.sampled_log_probs
            assert gap.abs().max() > 0.01
    # The first calls all have the first weights, but not its random numbers.
    assert (calls[0][1].responses != calls[1][1].responses).any()


def test_without_a_lag_nothing_changes():
    knobs = {"seeds": (0, 1), "num_epochs": 4, "num_steps_per_epoch": 2}
    _, plain = train_sort(**knobs)
    _, wrapped = train_sort(**knobs, wrap=lambda policy: StaleSampler(policy, 0))
    assert torch.equal(plain.curve("loss"), wrapped.curve("loss"))


class Silent:
    """A policy that notes no log-probs."""

    def __init__(self):
        self.model = torch.nn.Linear(1, 5)

    def sample(self, prompts, num_responses):
        shape = (len(prompts), num_responses, 2)
        return Rollout(prompts, torch.randint(5, shape))

    def log_probs(self, rollout):
        return self.model.bias.log_softmax(-1)[rollout.responses]


def test_what_is_not_noted_is_of_the_old_weights_and_scores_are_of_todays():
    policy = Silent()
    stale = StaleSampler(policy, 1)
    stale.sample(PROMPTS, 3)
    then = copy.deepcopy(policy)
    with torch.no_grad():
        policy.model.bias += torch.arange(5.0)
    rollout = stale.sample(PROMPTS, 3)
    assert torch.equal(rollout.sampled_log_probs, then.log_probs(rollout))
    assert not rollout.sampled_log_probs.requires_grad
    assert torch.equal(stale.log_probs(rollout), policy.log_probs(rollout))


def test_a_mixed_reference_reads_the_policy_and_not_its_writer():
    torch.manual_seed(0)
    policy = make_policy()
    engine = EngineSampler(policy, Sampler(3, temperature=0.5))
    for wrapped in (StaleSampler(policy, 1), engine, StaleSampler(engine, 1)):
        ref = renewed(wrapped)
        before = [weight.clone() for weight in weights(ref)]
        move(policy)
        mixed = list(weights(renewed(wrapped, ref, ref_mixture=0.25)))
        now = list(policy.model.parameters())
        assert len(mixed) == len(now)
        for old, new, between in zip(before, now, mixed, strict=True):
            torch.testing.assert_close(between, 0.75 * old + 0.25 * new)


REFUSED = {
    "a lag below zero": (lambda: StaleSampler(Silent(), -1), "lag=-1"),
    "no buffer": (lambda: with_overlong_penalty(len, 10, 0), "buffer=0.*at least 1"),
    "a long buffer": (lambda: with_overlong_penalty(len, 10, 11), "buffer=11.*from 1"),
}


@pytest.mark.parametrize(("call", "says"), REFUSED.values(), ids=REFUSED)
def test_a_bad_call_is_refused(call, says):
    with pytest.raises((TypeError, ValueError), match=says):
        call()
