"""One gradient from several passes, pi_old from three places, runs that stop."""

import copy
from dataclasses import replace

import pytest
import torch

from grpo_course.loop import TrainConfig, Trainer, split
from grpo_course.sampling import Sampler
from grpo_course.sequences import SequencePolicy, TinyLM

PROMPTS = torch.tensor([[1, 2], [3, 4], [2, 2], [4, 1], [3, 3]])
EOS = 0


def count_ones(rollout):
    return (rollout.responses == 1).float().sum(-1)


def sometimes_tied(rollout):
    """Tied in the first three groups. -> [... batch trial]"""
    rewards = count_ones(rollout) + torch.arange(4) / 10
    rewards[..., :3, :] = 0.3
    return rewards


class Counting(SequencePolicy):
    """Notes how many rows each forward pass with a gradient has."""

    def log_probs(self, rollout):
        if torch.is_grad_enabled():
            self.__dict__.setdefault("rows", []).append(rollout.responses.shape[-3])
        return super().log_probs(rollout)


def make_policy(seeds=None):
    model = TinyLM(5, hidden_size=8, seeds=seeds)
    generators = [torch.Generator().manual_seed(s) for s in seeds or (0,)]
    sampler = Sampler(6, eos=EOS, pad=EOS)
    return Counting(model, sampler, generators if seeds else generators[0])


def gradient_and_record(reward_fn=count_ones, seeds=None, beta=0.0, **knobs):
    """The gradient of one step on a rollout that is the same in every call."""
    policy = make_policy(seeds)
    settings = {"num_responses": 4, "deltas_mode": "centered_rewards"}
    config = TrainConfig(**settings, kl_penalty=beta, **knobs)
    torch.manual_seed(0)
    other = make_policy(seeds)
    with torch.no_grad():
        for weight in other.model.parameters():
            weight += 0.3 * torch.randn(weight.shape[-2:])
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.0)
    trainer = Trainer(policy, PROMPTS, reward_fn, optimizer, config)
    trainer.ref_policy = other if beta else None
    batch = trainer.collect(PROMPTS)
    with torch.no_grad():  # off policy, so that the ratios are not all 1
        for weight in policy.model.parameters():
            weight += 0.1 * torch.randn(weight.shape[-2:])
    record = trainer.improve(batch)
    gradient = [weight.grad.clone() for weight in policy.model.parameters()]
    return gradient, record, policy, batch


@pytest.mark.parametrize("aggregation", ["sequence_mean", "token_mean", "constant"])
@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("seeds", [None, (0, 1)])
def test_parts_of_any_size_have_the_gradient_of_the_whole(aggregation, beta, seeds):
    knobs = {"aggregation": aggregation, "beta": beta, "seeds": seeds}
    whole, record, _, batch = gradient_and_record(**knobs)
    lengths = batch.rollout.mask.sum((-2, -1))
    assert lengths.unique().numel() > 1  # else the three means were the same
    for size in (1, 2, 3, 5, 9):
        parts, joined, policy, _ = gradient_and_record(micro_batch_size=size, **knobs)
        torch.testing.assert_close(parts, whole, atol=1e-7, rtol=1e-5)
        assert joined.keys() == record.keys()
        for name in record:
            torch.testing.assert_close(joined[name], record[name], rtol=1e-5, atol=1e-6)
        assert max(policy.rows) == min(size, 5) and sum(policy.rows) == 5


def test_the_mean_of_the_parts_means_would_be_wrong():
    *_, batch = gradient_and_record(aggregation="token_mean")
    config = TrainConfig(aggregation="token_mean", micro_batch_size=2)
    weights = [part.weight for part in split(batch, config)]
    assert sum(weights).item() == pytest.approx(1)
    assert max(weights) - min(weights) > 0.05


@pytest.mark.parametrize("aggregation", ["sequence_mean", "token_mean", "constant"])
@pytest.mark.parametrize("size", [None, 1])
def test_tied_groups_are_skipped_and_change_nothing(aggregation, size):
    knobs = {"aggregation": aggregation, "reward_fn": sometimes_tied}
    whole, record, _, _ = gradient_and_record(**knobs)
    skipped, seen, policy, _ = gradient_and_record(
        skip_tied_groups=True, micro_batch_size=size, **knobs
    )
    torch.testing.assert_close(skipped, whole, atol=1e-7, rtol=1e-5)
    torch.testing.assert_close(seen["loss"], record["loss"], atol=1e-7, rtol=1e-5)
    assert sum(policy.rows) == 2


def test_where_a_kl_pulls_no_group_is_skipped():
    knobs = {"reward_fn": sometimes_tied, "beta": 0.3}
    whole, *_ = gradient_and_record(**knobs)
    skipped, _, policy, _ = gradient_and_record(skip_tied_groups=True, **knobs)
    torch.testing.assert_close(skipped, whole, atol=1e-7, rtol=1e-5)
    assert sum(policy.rows) == 5


def test_a_batch_without_any_delta_still_has_a_gradient_of_zero():
    gradient, *_ = gradient_and_record(
        lambda r: torch.ones(r.responses.shape[:-1]), skip_tied_groups=True
    )
    assert all((part == 0).all() for part in gradient)


def test_a_critic_cannot_be_split():
    *_, batch = gradient_and_record()
    judged = replace(batch, targets=batch.deltas)
    with pytest.raises(ValueError, match="split the policy's loss only"):
        split(judged, TrainConfig(micro_batch_size=2))


class Noting(SequencePolicy):
    """Hands on what the sampler noted, and counts forward passes without gradient."""

    frozen_passes = 0

    def sample(self, prompts, num_responses):
        rollout = super().sample(prompts, num_responses)
        with torch.no_grad():
            noted = super().log_probs(rollout)
        return type(rollout)(prompts, rollout.responses, rollout.mask, noted)

    def log_probs(self, rollout):
        self.frozen_passes += not torch.is_grad_enabled()
        return super().log_probs(rollout)


def make_trainer(num_epochs, policy, **knobs):
    settings = {"num_epochs": num_epochs, "num_responses": 4, "num_steps_per_epoch": 1}
    config = TrainConfig(**(settings | knobs))
    optimizer = torch.optim.SGD(policy.model.parameters(), lr=0.3)
    return Trainer(policy, PROMPTS, count_ones, optimizer, config)


def run(kind=SequencePolicy, **knobs):
    plain = make_policy()
    policy = kind(plain.model, plain.sampler, plain.generator)
    return policy, make_trainer(3, policy, **knobs).train()


@pytest.mark.parametrize("source", ["sampler", "first_step"])
def test_pi_old_costs_a_forward_pass_only_if_nobody_else_knows_it(source):
    plain, expected = run(kind=Noting)
    cheap, history = run(kind=Noting, old_log_probs_from=source)
    assert plain.frozen_passes == 3 and cheap.frozen_passes == 0
    for name in ("loss", "sampled_entropy", "ratio_max"):
        torch.testing.assert_close(history.curve(name), expected.curve(name))
    torch.testing.assert_close(cheap.model.state_dict(), plain.model.state_dict())


def test_the_sampler_must_have_noted_it():
    def forgets(rollout):
        return type(rollout)(rollout.prompts, rollout.responses, rollout.mask)

    class Forgetful(SequencePolicy):
        def sample(self, prompts, num_responses):
            return forgets(super().sample(prompts, num_responses))

    with pytest.raises(ValueError, match="no sampled_log_probs"):
        run(kind=Forgetful, old_log_probs_from="sampler")


@pytest.mark.parametrize(
    "knobs",
    [
        {"num_steps_per_epoch": 2},
        {"num_steps_per_epoch": 1, "minibatch_size": 4},
        {"num_steps_per_epoch": 1, "kl_place": "reward"},
    ],
)
def test_the_first_step_knows_pi_old_only_if_it_is_the_only_one(knobs):
    with pytest.raises(ValueError, match="old_log_probs_from='first_step' needs"):
        TrainConfig(old_log_probs_from="first_step", **knobs)


STATE = ("epoch", "beta", "ref_policy", "shuffle", "history")
KL = {"kl_penalty": 0.1, "kl_target": 0.01, "compute_ref_model_period": 4}


@pytest.mark.parametrize("stop", [1, 3, 5])
@pytest.mark.parametrize("knobs", [{}, KL, {"minibatch_size": 9}])
def test_a_run_that_stopped_goes_on_as_if_it_had_not(stop, knobs):
    knobs = {"num_steps_per_epoch": 2} | knobs
    whole, policy = make_policy(), make_policy()
    expected = make_trainer(6, whole, **knobs).train()
    stopped = make_trainer(stop, policy, **knobs)
    stopped.train()
    assert stopped.epoch == stop
    goes_on = make_trainer(6, policy, **knobs)
    for name in STATE:
        setattr(goes_on, name, copy.deepcopy(getattr(stopped, name)))
    history = goes_on.train()
    assert len(history.records) == len(expected.records)
    for mine, theirs in zip(history.records, expected.records, strict=True):
        assert mine.keys() == theirs.keys()
        for name in theirs:
            both = torch.as_tensor(mine[name]), torch.as_tensor(theirs[name])
            assert torch.equal(*both)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, policy.model.state_dict()[name])
