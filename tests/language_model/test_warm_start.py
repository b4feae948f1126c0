"""Demonstrations: only the response is learned, slips are what they say they are."""

import random

import pytest
import torch

from grpo_course.algorithm.sampler import Sampler
from grpo_course.gsm8k.config import GRPOConfig
from grpo_course.gsm8k.encoding import as_rollout, decode_responses
from grpo_course.gsm8k.grading import is_correct
from grpo_course.gsm8k.policy import CausalPolicy
from grpo_course.gsm8k.problems import Problem, make_problems
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.gsm8k.slips import with_slip
from grpo_course.gsm8k.warm_start import (
    demonstrate,
    demonstration_loss,
    linear_schedule,
    warm_start,
)

PROBLEMS = make_problems("train", 300, seed=3)
FULL = (1, 0, 0, 0)


def test_demonstrations_are_learned(trained):
    _, losses = trained
    assert sum(losses[-10:]) / 10 < 0.25 * losses[0]


def test_the_loss_is_that_of_the_library_on_response_tokens(model, tokenizer):
    """transformers leaves out the labels -100 and shifts by itself."""
    policy = CausalPolicy(
        model, Sampler(24, tokenizer.eos_token_id, tokenizer.pad_token_id)
    )
    batch = demonstrate(tokenizer, PROBLEMS[:6], GRPOConfig(), random.Random(0))
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


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_slips(tokenizer, share):
    config = GRPOConfig(warm_start_slips=share, warm_start_forms=FULL)
    batch = demonstrate(tokenizer, PROBLEMS, config, random.Random(0))
    texts = [group[0] for group in decode_responses(tokenizer, batch)]
    pairs = zip(texts, PROBLEMS, strict=True)
    wrong = sum(not is_correct(text, p.answer) for text, p in pairs) / len(texts)
    assert abs(wrong - share) <= 4 * (share * (1 - share) / len(texts)) ** 0.5


def test_a_slip_is_off_by_one_and_carried_on():
    for i, problem in enumerate(PROBLEMS):
        slip = with_slip(problem, random.Random(i))
        assert abs(int(slip.answer) - int(problem.answer)) == 1
        assert slip.question == problem.question
        *lines, last = slip.solution.split("\n")
        assert last == f"#### {slip.answer}" and lines[-1].endswith(f"={slip.answer}")
        assert len(lines) == len(problem.operations)
        results = [int(line.partition("=")[2]) for line in lines]
        assert min(results) >= 0
        if len(lines) == 2:  # the second sum begins with what the first said
            assert lines[1].startswith(f"{results[0]}{problem.operations[1]}")


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


def test_too_few_problems(tokenizer, trained):
    with pytest.raises(ValueError, match=r"number of problems=5.*at least 32"):
        warm_start(trained[0], tokenizer, PROBLEMS[:5], GRPOConfig())


def test_a_slip_needs_a_problem_that_was_made_by_rule():
    with pytest.raises(ValueError, match="was not made by rule"):
        with_slip(Problem("What is 3+4?", "3+4=7\n#### 7", "7"), random.Random(0))
