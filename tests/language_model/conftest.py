"""Tiny causal LMs of three architectures, random and trained, and ragged prompts."""

import pytest
import torch
from transformers import TopKLogitsWarper, TopPLogitsWarper

from grpo_course.lm import MODELS, generate, make_tiny_model
from grpo_course.sampling import Sampler, pad_rows, response_mask
from grpo_course.tasks import prompt_text


@pytest.fixture(scope="session")
def rows(tokenizer, easy_problems):
    """Prompts of unequal lengths, as lists."""
    questions = [p.question for p in easy_problems[:5]]
    texts = [questions[0][:9], "a", *questions[2:]]
    encoded = [tokenizer(prompt_text(tokenizer, t, None)).input_ids for t in texts]
    assert len(set(map(len, encoded))) >= 4
    return encoded


@pytest.fixture(scope="session", params=MODELS)
def model(request, tokenizer):
    """Random weights, scaled up until the next token is no longer a fair die."""
    made = make_tiny_model(tokenizer, request.param, hidden_size=32, num_heads=2)
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(3)
    return made


@pytest.fixture(scope="session")
def often(model, rows, tokenizer):
    """As EOS, this token ends the rows at the most different lengths."""
    sampler = Sampler(12, pad=tokenizer.pad_token_id)
    prompts = pad_rows(rows, tokenizer.pad_token_id)
    tokens, _ = generate(model, prompts, 8, sampler, torch.Generator().manual_seed(0))

    def lengths(eos):
        return response_mask(tokens, eos).sum(-1).unique().numel()

    return max(tokens.unique().tolist(), key=lengths)


@pytest.fixture(scope="session")
def naive_log_probs():
    """One text at a time, without padding or cache; truncated as transformers does."""

    def score(model, prompt, response, sampler):
        text = torch.tensor([*prompt, *response.tolist()])[None]
        logits = model(text).logits[0, len(prompt) - 1 : -1] / sampler.temperature
        if sampler.top_k is not None:
            logits = TopKLogitsWarper(sampler.top_k)(text, logits)
        if sampler.top_p is not None:
            logits = TopPLogitsWarper(sampler.top_p)(text, logits)
        return logits.log_softmax(-1).gather(-1, response[:, None]).squeeze(-1)

    return score


@pytest.fixture(scope="session")
def rows_seen_by():
    """How many rows [rows pos ...] each forward pass of a module got."""

    def look(module, call):
        seen = []
        hook = module.register_forward_hook(
            lambda _, x, __: seen.append(x[0].shape[:-1])
        )
        call()
        hook.remove()
        return seen

    return look
