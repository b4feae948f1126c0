"""What is noted while sampling is what a separate forward pass says."""

import pytest
import torch

from grpo_course.loop import Rollout
from grpo_course.sampling import (
    Sampler,
    pad_rows,
    response_mask,
    shifted_log_probs,
    token_log_probs,
)
from grpo_course.sequences import SequencePolicy, TinyLM, sample_sequences

EOS, PAD = 2, 0
ROWS = [[3], [1, 4, 3], [4, 0]]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("temperature", [0.7, 1.0, 1.6])
@pytest.mark.parametrize("pad", [PAD, EOS])
def test_sampled_and_scored_log_probs_agree(pad, temperature):
    model, prompts = TinyLM(5), pad_rows(ROWS, pad)
    sampler = Sampler(6, eos=EOS, pad=pad, temperature=temperature)
    responses, noted = sample_sequences(model, prompts, 8, sampler, generator())
    mask = response_mask(responses, EOS)
    policy = SequencePolicy(model, sampler)
    scored = policy.log_probs(Rollout(prompts, responses, mask))
    torch.testing.assert_close(scored[mask], noted[mask], atol=1e-5, rtol=0)
    assert (responses[~mask] == pad).all() and (noted[~mask] == 0).all()
    assert mask.all(-1).any() and (~mask).any()  # cut off and ended ones were there


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_each_response_scored_alone_by_a_plain_forward_pass(temperature):
    model, prompts = TinyLM(5), pad_rows(ROWS, PAD)
    sampler = Sampler(4, eos=EOS, pad=PAD, temperature=temperature)
    responses, noted = sample_sequences(model, prompts, 5, sampler, generator())
    mask = response_mask(responses, EOS)
    for i, row in enumerate(ROWS):
        for response, score, real in zip(responses[i], noted[i], mask[i], strict=True):
            text = torch.tensor([row + response[real].tolist()])
            logits = model(text) / temperature
            expected = shifted_log_probs(logits, text)[0, len(row) - 1 :]
            torch.testing.assert_close(score[real], expected, atol=1e-5, rtol=0)


def test_seeds_sample_side_by_side_what_each_samples_alone():
    prompts, sampler = pad_rows(ROWS, PAD), Sampler(4, eos=EOS, pad=PAD)
    together = TinyLM(5, seeds=(1, 0))
    both, noted = sample_sequences(
        together, prompts, 3, sampler, [generator(9), generator(7)]
    )
    alone, score = sample_sequences(TinyLM(5), prompts, 3, sampler, generator(7))
    assert both.shape == (2, 3, 3, 4)
    assert torch.equal(both[1], alone)
    torch.testing.assert_close(noted[1], score)
    policy = SequencePolicy(together, sampler)
    scored = policy.log_probs(Rollout(prompts, both, sampler.mask(both)))
    mask = sampler.mask(both)
    torch.testing.assert_close(scored[mask], noted[mask], atol=1e-5, rtol=0)


def test_samples_follow_the_policy():
    model, prompt = TinyLM(3), torch.tensor([[1]])
    drawn, _ = sample_sequences(model, prompt, 20_000, Sampler(1), generator())
    shares = torch.bincount(drawn.flatten(), minlength=3) / 20_000
    probs = model(prompt)[0, -1].softmax(-1)
    torch.testing.assert_close(shares, probs, atol=0.015, rtol=0)
    seeds = TinyLM(3, seeds=(0, 1))
    drawn, _ = sample_sequences(
        seeds, prompt, 20_000, Sampler(1), [generator(1), generator(2)]
    )
    shares = torch.stack([torch.bincount(d.flatten(), minlength=3) for d in drawn])
    probs = seeds(prompt)[:, 0, -1].softmax(-1)
    torch.testing.assert_close(shares / 20_000, probs, atol=0.015, rtol=0)


def test_greedy_text_is_the_likeliest_at_each_step():
    model, prompts = TinyLM(6), torch.tensor([[1, 2], [3, 4]])
    answers = SequencePolicy(model, Sampler(5)).answer(prompts)
    logits = model(torch.cat([prompts, answers], dim=-1))
    assert torch.equal(logits[:, 1:-1].argmax(-1), answers)


def test_scores_are_float32_whatever_the_logits_are():
    logits = torch.randn(1, 3, 5, dtype=torch.bfloat16, generator=generator())
    scores = token_log_probs(logits, torch.tensor([[0, 1, 2]]))
    assert scores.dtype == torch.float32


def test_a_prompt_that_does_not_fit_is_named_before_anything_is_sampled():
    model, prompts = TinyLM(5, context_length=8), torch.ones(1, 5, dtype=torch.long)
    with pytest.raises(ValueError, match=r"prompts has 5 tokens.*response 4.*holds 8"):
        sample_sequences(model, prompts, 2, Sampler(4))
    responses, _ = sample_sequences(model, prompts, 2, Sampler(3))
    assert responses.shape == (1, 2, 3)


@pytest.mark.parametrize("knobs", [{"eos": 99, "pad": 0}, {"eos": 2, "pad": 99}])
def test_an_end_that_the_model_cannot_write_is_named(knobs):
    with pytest.raises(ValueError, match=r"(eos|pad)=99, but .*below 5"):
        sample_sequences(TinyLM(5), torch.tensor([[1]]), 2, Sampler(3, **knobs))


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match=r"(?s)temperature.*greater than 0"):
        Sampler(3, temperature=0)
    with pytest.raises(ValueError, match=r"(?s)eos=2 ends responses early.*set pad"):
        Sampler(3, eos=2)
    with pytest.raises(ValueError, match="max_new_tokens"):
        Sampler(max_new_tokens=0)
    with pytest.raises(ValueError, match=r"2 seeds.*one torch\.Generator for each"):
        sample_sequences(
            TinyLM(5, seeds=(0, 1)), torch.tensor([[1]]), 2, Sampler(2), generator()
        )
