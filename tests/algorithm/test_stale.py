"""Rollouts of older weights: whose they are, what is noted, what a ratio repairs."""

import copy

import pytest
import torch
from torch import Generator

from grpo_course.loop import Rollout, TrainConfig, Trainer, train, weights
from grpo_course.off_policy import EngineSampler, StaleSampler
from grpo_course.sampling import Sampler
from grpo_course.sequences import (
    SequencePolicy,
    TinyLM,
    all_sort_prompts,
    place_reward,
    train_sort,
)

PROMPTS, LAG = all_sort_prompts()[:6], 2


def make_policy():
    model = TinyLM(7, hidden_size=16, seeds=(0, 1))
    generators = [Generator().manual_seed(seed) for seed in (0, 1)]
    return SequencePolicy(model, Sampler(3), generators)


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


def test_equal_weights_still_write_new_responses(calls):
    """The first calls all have the first weights, but not its random numbers."""
    first, second = calls[0][1].responses, calls[1][1].responses
    assert (first != second).any()


def test_scores_are_of_todays_weights():
    torch.manual_seed(0)
    policy = make_policy()
    stale = StaleSampler(policy, LAG)
    rollout = stale.sample(PROMPTS, 4)
    assert torch.equal(stale.log_probs(rollout), policy.log_probs(rollout))
    move(policy)
    assert torch.equal(stale.log_probs(rollout), policy.log_probs(rollout))
    assert not torch.allclose(stale.log_probs(rollout), rollout.sampled_log_probs)


def test_without_a_lag_nothing_changes():
    knobs = {"seeds": (0, 1), "num_epochs": 4, "num_steps_per_epoch": 2}
    _, plain = train_sort(**knobs)
    _, wrapped = train_sort(**knobs, wrap=lambda policy: StaleSampler(policy, 0))
    assert torch.equal(plain.curve("loss"), wrapped.curve("loss"))


def test_the_ratio_reaches_back_only_if_the_sampler_is_asked():
    def ratios(source):
        _, history = train_sort(
            seeds=(0, 1),
            num_epochs=4,
            wrap=lambda policy: StaleSampler(policy, LAG),
            old_log_probs_from=source,
        )
        return history.epochs("ratio_max")  # before the first step of each epoch

    assert torch.allclose(ratios("policy"), torch.ones(4, 2))
    since_then = ratios("sampler")
    assert torch.allclose(since_then[0], torch.ones(2))
    assert (since_then[LAG + 1 :] > 1.1).all()


def test_the_ratio_gives_the_gradient_of_todays_policy():
    """Of 400,000 stale samples: near the exact gradient with the ratio, else not."""
    torch.manual_seed(0)
    logits = torch.randn(3, requires_grad=True)
    stale, rewards = torch.tensor([1.5, -0.5, 0.3]), torch.tensor([1.0, 0.0, 0.2])
    exact = torch.autograd.grad((logits.softmax(-1) * rewards).sum(), logits)[0]
    drawn = torch.multinomial(stale.softmax(-1), 400_000, replacement=True)
    new, old = logits.log_softmax(-1)[drawn], stale.log_softmax(-1)[drawn]
    paid = rewards[drawn]

    def gap(weight):
        estimate = torch.autograd.grad((weight * paid).mean(), logits, retain_graph=1)
        return (estimate[0] - exact).abs().max()

    assert gap((new - old).exp()) < 0.01
    assert gap((new - new.detach()).exp()) > 0.05


class Silent:
    """A policy that notes no log-probs."""

    def __init__(self):
        self.model = torch.nn.Linear(1, 5)

    def sample(self, prompts, num_responses):
        shape = (len(prompts), num_responses, 2)
        return Rollout(prompts, torch.randint(5, shape))

    def log_probs(self, rollout):
        return self.model.bias.log_softmax(-1)[rollout.responses]


def test_what_the_policy_does_not_note_is_computed_with_the_old_weights():
    policy = Silent()
    stale = StaleSampler(policy, 1)
    stale.sample(PROMPTS, 3)
    then = copy.deepcopy(policy)
    with torch.no_grad():
        policy.model.bias += torch.arange(5.0)
    rollout = stale.sample(PROMPTS, 3)
    assert torch.equal(rollout.sampled_log_probs, then.log_probs(rollout))
    assert not rollout.sampled_log_probs.requires_grad


def test_a_reference_is_todays_policy():
    torch.manual_seed(0)
    policy = make_policy()
    stale = StaleSampler(policy, 1)
    rollout = stale.sample(PROMPTS, 4)
    move(policy)
    ref = renewed(stale)
    then = ref.log_probs(rollout)
    assert torch.equal(then, policy.log_probs(rollout))
    assert (then - stale.writer.log_probs(rollout)).abs().max() > 0.01
    move(policy)
    assert torch.equal(ref.log_probs(rollout), then)


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


def test_in_the_loop_the_kl_is_zero_where_the_reference_was_just_copied():
    policy = make_policy()
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=0.01)
    knobs = {"num_epochs": 3, "num_steps_per_epoch": 2, "num_responses": 4}
    knobs |= {"kl_penalty": 0.1, "compute_ref_model_period": 1}
    config = TrainConfig(old_log_probs_from="sampler", **knobs)
    history = train(StaleSampler(policy, 1), PROMPTS, place_reward, optimizer, config)
    assert history.epochs("kl").abs().max() < 1e-9
    assert history.curve("kl").view(3, 2, 2)[:, 1].min() > 1e-6


def test_a_lag_below_zero_is_refused():
    with pytest.raises(ValueError, match="lag=-1"):
        StaleSampler(make_policy(), -1)
