"""A causal LM in the one loop: it learns, and its reference stays as it was."""

import copy
from dataclasses import replace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen2Config

from grpo_course import lm as policy_module
from grpo_course.lm import (
    EXPECTED,
    CausalPolicy,
    make_tiny_model,
    probe_line,
    sampler_gap,
)
from grpo_course.loop import TrainConfig, train
from grpo_course.sampling import Sampler, pad_rows

INNER = {
    "mu=1": {"old_log_probs_from": "first_step"},
    "mu=1, pi_old from the sampler": {"old_log_probs_from": "sampler"},
    "mu=2, minibatches": {"num_steps_per_epoch": 2, "minibatch_size": 12},
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def policy(model, often, tokenizer):
    sampler = Sampler(12, eos=often, pad=tokenizer.pad_token_id, temperature=1.1)
    return CausalPolicy(copy.deepcopy(model), sampler, generator())


@pytest.fixture
def prompts(rows, tokenizer):
    return pad_rows(rows, tokenizer.pad_token_id)


def even_reward(rollout):
    """The share of even tokens."""
    even = (rollout.responses % 2 == 0) & rollout.mask
    return even.sum(-1) / rollout.mask.sum(-1)


def test_a_rollout_and_its_scores(policy, prompts):
    rollout = policy.sample(prompts, 6)
    assert rollout.responses.shape == (5, 6, 12) and torch.equal(
        rollout.prompts, prompts
    )
    assert (~rollout.mask).any()
    scores = policy.log_probs(rollout)
    assert scores.requires_grad and not rollout.sampled_log_probs.requires_grad
    torch.testing.assert_close(
        scores.detach(), rollout.sampled_log_probs, atol=2e-5, rtol=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize("inner", INNER)
def test_the_loop_trains_it(policy, prompts, inner):
    config = TrainConfig(
        **{"num_steps_per_epoch": 1} | INNER[inner],
        num_epochs=6,
        num_responses=12,
        kl_penalty=0.01,
        compute_ref_model_period=100,
        max_gradient_norm=1.0,
    )
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=3e-3)
    history = train(policy, prompts, even_reward, optimizer, config)
    steps = 6 if "mu=1" in inner else 6 * 2 * 5
    assert len(history.records) == steps
    first = history.records[0]
    assert abs(first["ratio_min"] - 1) < 1e-4 and abs(first["ratio_max"] - 1) < 1e-4
    assert abs(first["kl"]) < 1e-6 < history.final("kl")
    rewards = history.epochs("mean_reward")
    assert rewards[-2:].mean() > rewards[:2].mean()


def test_a_copy_is_a_frozen_reference(policy, prompts):
    rollout, reference = policy.sample(prompts, 4), copy.deepcopy(policy)
    with torch.no_grad():
        before = reference.log_probs(rollout)
        for weight in policy.model.parameters():
            weight.mul_(1.1)
        assert torch.equal(reference.log_probs(rollout), before)
        assert not torch.allclose(policy.log_probs(rollout), before)
    assert torch.equal(
        copy.deepcopy(reference).sample(prompts, 4).responses,
        reference.sample(prompts, 4).responses,
    )


def dropout_model():
    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2)
    return GPT2LMHeadModel(config)


def test_dropout_is_off_in_both(prompts):
    prompts = prompts % 50
    policy = CausalPolicy(dropout_model().train(), Sampler(5), generator())
    rollout = policy.sample(prompts, 4)
    policy.model.train()  # as a trainer might
    scores = policy.log_probs(rollout).detach()
    torch.testing.assert_close(scores, rollout.sampled_log_probs, atol=2e-5, rtol=1e-5)


def test_recomputing_in_the_backward_pass_changes_nothing(policy, prompts):
    rollout = policy.sample(prompts, 4)

    def scores_and_gradient():
        policy.model.zero_grad()
        scores = policy.log_probs(rollout)
        scores.square().sum().backward()
        return scores.detach(), [w.grad.clone() for w in policy.model.parameters()]

    plain, expected = scores_and_gradient()
    policy.model.activation_checkpointing_enable()
    recomputed, gradient = scores_and_gradient()
    torch.testing.assert_close(recomputed, plain, atol=2e-5, rtol=1e-5)
    for mine, other in zip(gradient, expected, strict=True):
        size = other.abs().max().item()
        torch.testing.assert_close(mine, other, atol=2e-5 * size, rtol=1e-3)


def test_recomputing_with_dropout_is_refused(prompts):
    policy = CausalPolicy(dropout_model(), Sampler(5), generator())
    rollout = policy.sample(prompts % 50, 2)
    policy.model.activation_checkpointing_enable()
    with pytest.raises(ValueError, match=r"recomputes in the backward.*has dropout"):
        policy.log_probs(rollout)


def test_autocast_multiplies_in_bfloat16_and_scores_in_float32(policy, prompts):
    rollout = policy.sample(prompts, 4)
    exact = policy.log_probs(rollout)
    policy.autocast = torch.bfloat16
    rounded = policy.log_probs(rollout)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    assert (rounded - exact).abs().mean() < 0.1
    rounded.sum().backward()
    assert policy.sample(prompts, 2).sampled_log_probs.dtype == torch.float32


def test_a_model_that_scales_its_logits_is_refused(model):
    class Scaled(GPT2LMHeadModel):
        def forward(self, *args, **kwargs):
            out = super().forward(*args, **kwargs)
            out.logits = out.logits * 0.5
            return out

    config = GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2)
    with pytest.raises(ValueError, match=r"Scaled does more to its logits"):
        CausalPolicy(Scaled(config), Sampler(5))


def test_a_saved_model_comes_back_the_same(policy, prompts, tmp_path):
    rollout = policy.sample(prompts, 2)
    policy.model.save_pretrained(tmp_path)
    again = type(policy.model).from_pretrained(tmp_path)
    scores = CausalPolicy(again, policy.sampler).log_probs(rollout)
    assert torch.equal(scores, policy.log_probs(rollout))


def test_the_seed_makes_the_model_and_leaves_other_random_numbers_alone(tokenizer):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (make_tiny_model(tokenizer, seed=s) for s in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    pairs = list(zip(first.parameters(), again.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)
    assert isinstance(first.config, Qwen2Config)
    with pytest.raises(ValueError, match="architecture='bert' is not known"):
        make_tiny_model(tokenizer, "bert")


def test_a_reference_is_scored_in_parts(policy, prompts, monkeypatch):
    """Some prompts at a time without a gradient; with one, the loop splits."""
    sizes, score = [], policy_module.response_log_probs

    def counted(model, prompts, *rest):
        sizes.append(len(prompts))
        return score(model, prompts, *rest)

    monkeypatch.setattr(policy_module, "response_log_probs", counted)
    rollout = policy.sample(prompts, 3)
    policy.prompts_at_once = 2
    reference, whole = copy.deepcopy(policy), policy.log_probs(rollout)
    for seen in (rollout, replace(rollout, mask=None)):
        with torch.no_grad():
            parts = reference.log_probs(seen)
        torch.testing.assert_close(parts[rollout.mask], whole[rollout.mask].detach())
    assert sizes == [5, 2, 2, 1, 2, 2, 1]


def test_the_probe_sees_a_scorer_that_is_another(policy, prompts):
    line = probe_line(policy, prompts)
    assert "rounding in float32 explains 0.0001" in line and "more" not in line
    state = policy.generator.get_state()
    gaps = sampler_gap(policy, prompts)
    assert gaps.mean() < 1e-5 and torch.equal(state, policy.generator.get_state())
    policy.autocast = torch.bfloat16
    gaps = sampler_gap(policy, prompts)
    assert 1e-5 < gaps.mean() < EXPECTED[torch.bfloat16]
    assert "rounding in bfloat16 explains 0.05" in probe_line(policy, prompts)


def test_the_probe_tells_of_a_gap(policy, prompts, monkeypatch):
    scores = CausalPolicy.log_probs
    monkeypatch.setattr(CausalPolicy, "log_probs", lambda *a: scores(*a) + 0.2)
    assert "This is more" in probe_line(policy, prompts)
    policy.autocast = torch.bfloat16
    assert "Try --dtype float32" in probe_line(policy, prompts)
