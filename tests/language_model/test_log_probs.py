"""Scores and gradients are those of each text alone; few logits are held."""

import pytest
import torch

from grpo_course.lm import chunked_log_probs, generate, response_log_probs
from grpo_course.sampling import Sampler, pad_rows

SETTINGS = [{}, {"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.7, "temperature": 1.5}]
TRIALS = 4


@pytest.fixture
def rollout(model, rows, often, tokenizer):
    """Ragged prompts and ragged responses: prompts, responses, mask, sampler."""
    sampler = Sampler(10, eos=often, pad=tokenizer.pad_token_id)
    prompts, generator = pad_rows(rows, sampler.pad), torch.Generator().manual_seed(0)
    tokens, _ = generate(
        model, prompts, TRIALS, Sampler(10, pad=sampler.pad), generator
    )
    lengths = torch.randint(1, 10, tokens.shape[:2], generator=generator)
    mask = torch.arange(10) < lengths[..., None]
    return prompts, torch.where(mask, tokens, sampler.pad), mask, sampler


def with_settings(sampler, settings):
    return Sampler(sampler.max_new_tokens, sampler.eos, sampler.pad, **settings)


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return [w.grad.clone() for w in model.parameters()]


def assert_close_gradients(ours, expected):
    for mine, other in zip(ours, expected, strict=True):
        size = other.abs().max().item()
        torch.testing.assert_close(mine, other, atol=1e-5 * size + 1e-9, rtol=1e-4)


def weights_of(tokens):
    """An uneven loss, so that no two tokens could change places unnoticed."""
    return torch.randn(tokens.shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 0.7, 1.5])
def test_scores_and_gradients_are_those_of_each_text_alone(
    model, rows, rollout, temperature, naive_log_probs
):
    prompts, tokens, mask, sampler = rollout
    sampler = with_settings(sampler, {"temperature": temperature})
    ours = response_log_probs(model, prompts, tokens, sampler, mask)
    weights, alone = weights_of(tokens), []
    for i, row in enumerate(rows):
        for j in range(TRIALS):
            real = mask[i, j]
            score = naive_log_probs(model, row, tokens[i, j][real], sampler)
            torch.testing.assert_close(ours[i, j][real], score, atol=2e-5, rtol=1e-5)
            alone.append((weights[i, j][real] * score).sum())
    assert (ours[~mask] == 0).all() and (~mask).any()
    expected = gradients(model, sum(alone))
    assert_close_gradients(gradients(model, (weights * ours).sum()), expected)


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_sampling_noted_is_what_scoring_says(model, rows, rollout, settings):
    prompts, _, _, sampler = rollout
    sampler = with_settings(sampler, settings)
    tokens, noted = generate(
        model, prompts, 8, sampler, torch.Generator().manual_seed(2)
    )
    scored = response_log_probs(model, prompts, tokens, sampler, sampler.mask(tokens))
    torch.testing.assert_close(scored, noted, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"top_k": 5}])
def test_chunks_change_neither_scores_nor_gradients(model, rollout, settings):
    prompts, tokens, mask, sampler = rollout
    sampler, weights = with_settings(sampler, settings), weights_of(tokens)
    whole = response_log_probs(model, prompts, tokens, sampler, mask)
    vocab = model.config.vocab_size
    parts = response_log_probs(model, prompts, tokens, sampler, mask, 7 * vocab)
    torch.testing.assert_close(parts, whole, atol=1e-6, rtol=1e-6)
    expected = gradients(model, (weights * whole).sum())
    assert_close_gradients(gradients(model, (weights * parts).sum()), expected)


def test_a_chunk_is_all_that_is_held(tokenizer):
    """Of what the backward pass keeps, nothing is as wide as the vocabulary."""
    vocab, rows = 1000, 64
    head = torch.nn.Linear(8, vocab)
    hidden = torch.randn(rows, 8, requires_grad=True)
    tokens = torch.arange(rows)

    def kept(most_logits):
        sizes = []

        def note(x):
            sizes.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            chunked_log_probs(head, hidden, tokens, Sampler(1), most_logits)
        return max(sizes)

    assert kept(rows * vocab) >= rows * vocab
    assert kept(16 * vocab) <= 8 * vocab  # the weights of the head


def test_a_minibatch_that_cuts_through_groups_scores_the_same(model, rollout):
    prompts, tokens, mask, sampler = rollout
    whole = response_log_probs(model, prompts, tokens, sampler, mask)
    order = torch.randperm(len(prompts) * TRIALS)[:13]
    part = response_log_probs(
        model,
        prompts.repeat_interleave(TRIALS, 0)[order],
        tokens.flatten(0, 1)[order][:, None],
        sampler,
        mask.flatten(0, 1)[order][:, None],
    )
    expected = whole.flatten(0, 1)[order][:, None]
    torch.testing.assert_close(part, expected, atol=1e-5, rtol=1e-5)


def test_each_different_prompt_is_read_once(model, rollout):
    prompts, tokens, _, sampler = rollout
    seen = []
    embedding = model.base_model.get_input_embeddings()
    hook = embedding.register_forward_hook(lambda _, x, __: seen.append(x[0].shape))
    twice = torch.cat([prompts, prompts])
    response_log_probs(model, twice, tokens.repeat(2, 1, 1), sampler)
    hook.remove()
    longest = tokens.shape[-1]
    assert seen == [prompts.shape, (2 * len(prompts) * TRIALS, longest - 1)]


def test_a_token_outside_the_top_has_a_score(model, rollout):
    prompts, tokens, mask, sampler = rollout
    sampler = with_settings(sampler, {"top_k": 1})
    scores = response_log_probs(model, prompts, tokens, sampler, mask)
    assert scores.isfinite().all() and (scores < -0.1).any()


def test_responses_of_one_token_and_no_mask(model, rollout):
    prompts, tokens, _, sampler = rollout
    all_of_it = response_log_probs(model, prompts, tokens, sampler)
    first = response_log_probs(model, prompts, tokens[..., :1], sampler)
    torch.testing.assert_close(first, all_of_it[..., :1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_batch_without_a_token_that_counts(model, rollout, settings):
    """As `mask_truncated` makes it where every response was cut off."""
    prompts, tokens, mask, sampler = rollout
    sampler, none = with_settings(sampler, settings), torch.zeros_like(mask)
    scores = response_log_probs(model, prompts, tokens, sampler, none)
    assert scores.shape == tokens.shape and (scores == 0).all()
    model.zero_grad()
    scores.sum().backward()
    grads = [w.grad for w in model.parameters() if w.grad is not None]
    assert grads and all((grad == 0).all() for grad in grads)
