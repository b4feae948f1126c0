"""Length penalty, truncation, dynamic sampling, mixed reference, sampler mismatch."""

import math
from types import SimpleNamespace

import pytest
import torch

from grpo_course.formulas import sampler_weights
from grpo_course.loop import (
    Rollout,
    TrainConfig,
    Trainer,
    correct_deltas,
    drop_truncated,
    train,
)
from grpo_course.off_policy import (
    soft_overlong_penalty,
    with_overlong_penalty,
)
from grpo_course.sampling import Sampler
from grpo_course.sequences import SequencePolicy, TinyLM
from grpo_course.sort import (
    SORT_PROMPTS,
    make_policy,
    rollout_reward,
    sort_distance_reward,
)

PROMPTS = torch.tensor([[0], [1], [2]])


def responses(*rows):
    return torch.tensor(rows)


def make_trainer(policy, reward_fn, **knobs):
    """The loop at its first epoch, before any step."""
    config, optimizer = TrainConfig(**knobs), torch.optim.SGD([torch.zeros(1)])
    return Trainer(policy, PROMPTS, reward_fn, optimizer, config)


# Length


@pytest.mark.parametrize(
    ("length", "penalty"), [(0, 0), (6, 0), (7, -0.25), (8, -0.5), (10, -1), (12, -1)]
)
def test_soft_overlong_penalty(length, penalty):
    given = soft_overlong_penalty(torch.tensor(length), max_length=10, buffer=4)
    assert given.item() == penalty


def test_the_penalty_joins_a_reward():
    mask = torch.tensor([[[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]]]).bool()
    rollout = Rollout(PROMPTS[:1], torch.zeros(1, 3, 4, dtype=torch.long), mask)
    reward = with_overlong_penalty(lambda _: torch.ones(1, 3), 4, buffer=2)
    assert reward(rollout).tolist() == [[0, 0.5, 1]]


@pytest.mark.parametrize(("buffer", "says"), [(0, "at least 1"), (11, "from 1 to")])
def test_a_buffer_must_fit_the_limit(buffer, says):
    with pytest.raises(ValueError, match=f"buffer={buffer}.*{says}"):
        soft_overlong_penalty(torch.tensor(3), 10, buffer)


def test_truncated_responses_lose_their_tokens_and_nothing_else():
    mask = torch.tensor([[[1, 1, 1], [1, 0, 0]]]).bool()
    finished = torch.tensor([[False, True]])
    rollout = Rollout(PROMPTS[:1], torch.zeros(1, 2, 3).long(), mask, None, finished)
    dropped = drop_truncated(rollout)
    assert dropped.mask.tolist() == [[[False] * 3, [True, False, False]]]
    assert torch.equal(dropped.responses, rollout.responses)
    with pytest.raises(ValueError, match=r"needs rollout\.finished"):
        drop_truncated(Rollout(PROMPTS, rollout.responses))


# Dynamic sampling


class Script:
    """A policy that answers from a script: one tensor a call."""

    def __init__(self, *calls):
        self.calls, self.asked = list(calls), []

    def sample(self, prompts, num_responses):
        self.asked.append(prompts.flatten().tolist())
        tokens = self.calls.pop(0)
        mask = tokens > 0
        return Rollout(prompts, tokens, mask, sampled_log_probs=-tokens.float())

    def log_probs(self, rollout):
        return rollout.sampled_log_probs


def last_token_reward(rollout):
    return rollout.responses.sum(-1).float()


def sample_groups(policy, prompts, num_resamples):
    knobs = {"num_responses": 2, "num_resamples": num_resamples}
    return make_trainer(policy, last_token_reward, **knobs).sample(prompts)


FIRST = responses([[1], [1]], [[1], [2]], [[3], [3]])
SECOND = responses([[1, 1], [1, 0]], [[4, 0], [4, 0]])
THIRD = responses([[5], [6]])


def test_tied_groups_are_asked_again_and_padded():
    policy = Script(FIRST, SECOND, THIRD)
    rollout, rewards = sample_groups(policy, PROMPTS, 5)
    assert policy.asked == [[0, 1, 2], [0, 2], [2]]
    assert rewards.tolist() == [[2, 1], [1, 2], [5, 6]]
    expected = [[[1, 1], [1, 0]], [[1, 0], [2, 0]], [[5, 0], [6, 0]]]
    assert rollout.responses.tolist() == expected
    assert torch.equal(rollout.mask, rollout.responses > 0)
    assert torch.equal(rollout.sampled_log_probs, -rollout.responses.float())
    assert torch.equal(rollout.prompts, PROMPTS)


def test_no_more_than_the_allowed_tries():
    policy = Script(FIRST, SECOND, THIRD)
    _, rewards = sample_groups(policy, PROMPTS, 1)
    assert rewards.tolist() == [[2, 1], [1, 2], [4, 4]] and len(policy.calls) == 1
    policy = Script(FIRST, SECOND)
    _, rewards = sample_groups(policy, PROMPTS, 0)
    assert rewards.tolist() == [[1, 1], [1, 2], [3, 3]] and len(policy.calls) == 1


def test_each_seed_keeps_the_groups_that_were_not_tied_in_it():
    first = responses([[[1], [1]], [[1], [2]]], [[[1], [2]], [[1], [2]]])
    again = responses([[[7], [8]]], [[[7], [8]]])
    policy = Script(first, again)
    rollout, rewards = sample_groups(policy, PROMPTS[:2], 1)
    assert policy.asked == [[0, 1], [0]]
    assert rewards.tolist() == [[[7, 8], [1, 2]], [[1, 2], [1, 2]]]
    assert torch.equal(rollout.responses[..., 0], rewards.long())


# Reference


def renewed(policy, ref, mixture):
    knobs = {"kl_penalty": 0.1, "ref_mixture": mixture}
    trainer = make_trainer(policy, last_token_reward, **knobs)
    trainer.ref_policy = ref
    trainer.renew_reference()
    return trainer.ref_policy


def test_a_mixed_reference_moves_its_share_of_the_way():
    policy, other = make_policy(SORT_PROMPTS, (0,)), make_policy(SORT_PROMPTS, (1,))
    before = [w.clone() for w in other.model.parameters()]
    mixed = renewed(policy, other, 0.25)
    assert mixed is other
    parts = zip(
        before, policy.model.parameters(), mixed.model.parameters(), strict=True
    )
    for old, new, got in parts:
        torch.testing.assert_close(got, 0.75 * old + 0.25 * new)
    copied = renewed(policy, other, 1.0)
    assert copied is not policy and copied.model is not policy.model
    for a, b in zip(policy.model.parameters(), copied.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_policy_without_a_module_cannot_be_mixed():
    bare = SimpleNamespace(model=None, sample=print, log_probs=print)
    with pytest.raises(TypeError, match="holds no torch module"):
        renewed(bare, bare, 0.5)


def run(**knobs):
    policy = make_policy(SORT_PROMPTS, (0, 1), init_scale=0.3)
    optimizer = torch.optim.Adam(policy.model.parameters(), lr=0.01)
    config = TrainConfig(**{"num_epochs": 4, "num_steps_per_epoch": 2} | knobs)
    judge = rollout_reward(sort_distance_reward)
    return train(policy, SORT_PROMPTS, judge, optimizer, config)


def test_the_loop_mixes_its_reference():
    knobs = {"kl_penalty": 0.1, "compute_ref_model_period": 1}
    plain = run(**knobs).epochs("kl")
    mixed = run(**knobs, ref_mixture=0.3).epochs("kl")
    assert plain.abs().max() < 1e-6
    assert mixed[0].abs().max() < 1e-6 and (mixed[1:] > 1e-6).all()


def test_the_loop_asks_tied_groups_again():
    few = {"num_responses": 2, "num_epochs": 1}
    tied = run(**few).epochs("tied_groups")
    fewer = run(**few, num_resamples=8).epochs("tied_groups")
    assert (tied > 0).all() and (fewer < tied).all()


# Sampler mismatch

OLD = torch.tensor([[[0.5, 0.2, 0.9]]]).log()
SAMPLED = torch.tensor([[[0.25, 0.4, 0.1]]]).log()


def test_sampler_weights_are_truncated_quotients():
    weights = sampler_weights(OLD, SAMPLED, 3.0)
    torch.testing.assert_close(weights, torch.tensor([[[2.0, 0.5, 3.0]]]))
    mask = torch.tensor([[[True, True, False]]])
    junk = torch.where(mask, SAMPLED, math.nan)
    torch.testing.assert_close(
        sampler_weights(OLD, junk, 3.0, mask), torch.tensor([[[2.0, 0.5, 1.0]]])
    )


def test_the_weights_make_an_estimate_of_another_sampler_right():
    """Exactly: the mean under the sampler of weight times f is the mean under pi."""
    pi = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    sampler = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)
    f = torch.tensor([1.0, -2.0, 5.0], dtype=torch.float64)
    weights = sampler_weights(pi.log(), sampler.log(), cap=10.0)
    assert (sampler * weights * f).sum().item() == pytest.approx((pi * f).sum().item())
    assert (sampler * f).sum().item() != pytest.approx((pi * f).sum().item())


def test_the_weights_multiply_deltas_of_responses_and_of_tokens():
    rollout = Rollout(PROMPTS[:1], torch.zeros(1, 1, 3).long(), None, SAMPLED)
    expected = torch.tensor([[[-4.0, -1.0, -6.0]]])
    for deltas in (torch.tensor([[-2.0]]), torch.full((1, 1, 3), -2.0)):
        torch.testing.assert_close(correct_deltas(deltas, rollout, OLD, 3.0), expected)
    with pytest.raises(ValueError, match="no sampled_log_probs"):
        correct_deltas(expected, Rollout(PROMPTS, rollout.responses), OLD, 3.0)
    with pytest.raises(ValueError, match="cap=0"):
        sampler_weights(OLD, SAMPLED, 0.0)


class Scored(Script):
    """A script whose policy scores its tokens otherwise than its sampler."""

    def log_probs(self, rollout):
        return super().log_probs(rollout) + math.log(1.5)


def test_collect_corrects_for_the_sampler():
    def collected(cap):
        knobs = {"deltas_mode": "centered_rewards", "sampler_cap": cap}
        return make_trainer(Scored(FIRST), last_token_reward, **knobs).collect(PROMPTS)

    plain, corrected, capped = map(collected, (None, 4.0, 1.2))
    assert plain.deltas.shape == (3, 2)
    torch.testing.assert_close(corrected.deltas, plain.deltas[..., None] * 1.5)
    torch.testing.assert_close(capped.deltas, plain.deltas[..., None] * 1.2)


def test_a_sampler_says_which_responses_finished():
    sampler = Sampler(max_new_tokens=3, eos=1, pad=1)
    tokens = torch.tensor([[[2, 1, 1], [2, 2, 2], [2, 2, 1]]])
    assert sampler.finished(tokens).tolist() == [[True, False, True]]
    assert Sampler(max_new_tokens=3).finished(tokens) is None


def test_collect_drops_what_was_cut_off():
    """On the tiny language model, whose responses end by chance."""
    model = TinyLM(5, hidden_size=8, seeds=(0, 1))
    generators = [torch.Generator().manual_seed(seed) for seed in (0, 1)]
    policy = SequencePolicy(model, Sampler(4, eos=4, pad=0), generators)
    knobs = {"num_responses": 6, "mask_truncated": True}
    trainer = make_trainer(policy, last_token_reward, **knobs)
    batch = trainer.collect(torch.ones(2, 3, dtype=torch.long))
    finished = batch.rollout.finished
    assert finished.any() and not finished.all()
    assert torch.equal(batch.rollout.mask.any(-1), finished)
    assert (batch.deltas[~finished] != 0).any()  # they still count in their group
