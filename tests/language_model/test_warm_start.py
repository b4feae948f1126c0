"""Demonstrations: only the response is learned, at a rate that rises and falls."""

import pytest
import torch

from grpo_course.gsm8k import GSM8K, demonstration, make_problems
from grpo_course.lm import CausalPolicy, make_tiny_model
from grpo_course.sampling import Sampler
from grpo_course.tasks import as_rollout, decode_responses
from grpo_course.training import (
    GRPOConfig,
    demonstration_loss,
    linear_schedule,
    make_optimizer,
    make_policy,
    run_warm_start,
    warm_start,
)

PROBLEMS = make_problems("train", 300, seed=3)


def test_the_loss_is_that_of_the_library_on_response_tokens(model, tokenizer):
    """transformers leaves out the labels -100 and shifts by itself."""
    policy = CausalPolicy(
        model, Sampler(24, tokenizer.eos_token_id, tokenizer.pad_token_id)
    )
    questions = [problem.question for problem in PROBLEMS[:6]]
    texts = [demonstration(problem) for problem in PROBLEMS[:6]]
    batch = as_rollout(tokenizer, questions, texts)
    text = torch.cat([batch.prompts, batch.responses[:, 0]], dim=-1)
    real = torch.cat([batch.prompts != tokenizer.pad_token_id, batch.mask[:, 0]], -1)
    labels = torch.where(real, text, -100)
    labels[:, : batch.prompts.shape[-1]] = -100
    expected = model(
        input_ids=text,
        attention_mask=real.long(),
        position_ids=(real.long().cumsum(-1) - 1).clamp(min=0),
        labels=labels,
    ).loss
    torch.testing.assert_close(demonstration_loss(policy, batch), expected)


def test_a_demonstration_comes_back_as_text(tokenizer):
    questions = [p.question for p in PROBLEMS[:8]]
    texts = [demonstration(p) for p in PROBLEMS[:8]]
    rollout = as_rollout(tokenizer, questions, texts)
    assert [group[0] for group in decode_responses(tokenizer, rollout)] == texts
    last = rollout.mask.sum(-1)[..., None] - 1
    assert (rollout.responses.gather(-1, last) == tokenizer.eos_token_id).all()


def test_the_rate_rises_and_falls():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule, rates = linear_schedule(optimizer, 10, warmup=2, final_share=0.1), []
    for _ in range(10):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates[0] == pytest.approx(1 / 3) and rates[2] == pytest.approx(1)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)


def small_policy(tokenizer):
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    sampler = Sampler(24, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return CausalPolicy(model, sampler)


def test_too_few_problems(tokenizer):
    show = GSM8K().demonstration
    with pytest.raises(ValueError, match=r"number of problems=5.*at least 32"):
        warm_start(small_policy(tokenizer), tokenizer, PROBLEMS[:5], show, GRPOConfig())


def test_what_is_shown_depends_on_the_seed_alone(tokenizer):
    """Which problems, and what `demonstrate` draws; the system prompt is read too."""
    seen = {}
    for seed in (0, 0, 1):
        shown = []

        def show(problem, rng, shown=shown):
            shown.append((problem.question, rng.random()))
            return demonstration(problem)

        config = GRPOConfig(warm_start_steps=2, seed=seed)
        losses = warm_start(small_policy(tokenizer), tokenizer, PROBLEMS, show, config)
        assert len(losses) == 2 and len(shown) == 64
        assert seen.setdefault(seed, shown) == shown
    assert seen[0] != seen[1]


def test_a_system_prompt_is_read(tokenizer):
    losses = {}
    for prompt in (None, "Think."):
        config = GRPOConfig(warm_start_steps=1, system_prompt=prompt)
        policy = small_policy(tokenizer)
        show = GSM8K(forms=(1, 0, 0, 0)).demonstration
        (losses[prompt],) = warm_start(policy, tokenizer, PROBLEMS, show, config)
    assert losses[None] != losses["Think."]


def test_a_frozen_model_is_refused(tokenizer):
    """Before anything is trained, in the warm start and in GRPO."""
    model = make_tiny_model(tokenizer, hidden_size=16, num_heads=2).requires_grad_(
        False
    )
    config = GRPOConfig(warm_start_steps=1, warm_start_batch_size=8)
    policy = make_policy(config, model, tokenizer)
    with pytest.raises(ValueError, match=r"frozen.*requires_grad_\(True\)"):
        run_warm_start(config, model, tokenizer, PROBLEMS)
    with pytest.raises(ValueError, match=r"frozen.*requires_grad_\(True\)"):
        make_optimizer(config, policy)
    next(model.parameters()).requires_grad_(True)  # a part may be enough
    assert run_warm_start(config, model, tokenizer, PROBLEMS)
    assert make_optimizer(config, policy)
