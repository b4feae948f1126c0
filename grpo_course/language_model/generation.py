"""Sample groups of responses from a Hugging Face causal LM."""

from collections.abc import Callable
from functools import partial

import torch
from einops import rearrange
from torch import Generator, Tensor
from transformers import PreTrainedModel

from grpo_course.algorithm.sampler import Sampler, draw, pick
from grpo_course.algorithm.validation import require_at_least
from grpo_course.language_model.cache import roomy_cache
from grpo_course.language_model.prefill import (
    Prefix,
    extend,
    prefill,
    require_room,
)

# Dropping rows copies the cache of the others, so it waits until a quarter is done.
WORTH_DROPPING = 0.25


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    prompts: Tensor,
    num_responses: int,
    sampler: Sampler,
    generator: Generator | None = None,
    greedy: bool = False,
) -> tuple[Tensor, Tensor]:
    """Responses, int, and the log-probs noted on the way; both [batch trial pos].

    int [batch pos] in, padded on the left with `sampler.pad`. Each prompt is read
    once for its group. A response that has ended leaves the batch; after its EOS
    come `pad` tokens with log-probability 0. pos is always max_new_tokens.
    With greedy, the likeliest token at each step.
    Raises ValueError for prompts that do not fit the model.
    """
    require_at_least("num_responses", num_responses, 1)
    require_room(model, prompts, sampler.max_new_tokens)
    tokens = prompts.new_zeros(len(prompts) * num_responses, sampler.max_new_tokens)
    scores = torch.zeros(tokens.shape, device=prompts.device)
    choose = partial(draw, generator=generator, greedy=greedy)
    # Inference mode has less to do in each operation, but what is compiled fails in it.
    with torch.no_grad() if is_compiled(model) else torch.inference_mode():
        write(model, prompts, sampler, choose, tokens, scores)
    return blank_after_end(tokens, scores, sampler, num_responses)


def is_compiled(model: PreTrainedModel) -> bool:
    """Whether model.base_model.compile() was called."""
    return model.base_model._compiled_call_impl is not None


def write(
    model: PreTrainedModel,
    prompts: Tensor,
    sampler: Sampler,
    choose: Callable[[Tensor], Tensor],
    tokens: Tensor,
    scores: Tensor,
) -> None:
    """Fill in tokens and scores, [(batch trial) pos], one position after another."""
    cache = roomy_cache(model, prompts.shape[-1] + tokens.shape[-1])
    prefix = prefill(model, prompts, sampler.pad, cache)
    rows = torch.arange(len(tokens), device=tokens.device)  # that are not dropped
    prefix.select(rows // (len(tokens) // len(prompts)))
    for pos in range(tokens.shape[-1]):
        if pos > 0:
            rows = drop_ended(prefix, rows, sampler.finished(tokens[rows, :pos]))
            if len(rows) == 0:
                break
            extend(model, prefix, tokens[rows, pos - 1 : pos])
        log_probs = sampler.log_probs(model.get_output_embeddings()(prefix.hidden))
        token = choose(log_probs)
        tokens[rows, pos], scores[rows, pos] = token, pick(log_probs, token)


def drop_ended(prefix: Prefix, rows: Tensor, ended: Tensor | None) -> Tensor:
    """The rows that go on, if dropping the others is worth it. int, bool [rows]"""
    if ended is None:
        return rows
    left = (~ended).nonzero().squeeze(-1)
    if len(left) >= (1 - WORTH_DROPPING) * len(rows):
        return rows
    prefix.select(left)
    return rows[left]


def blank_after_end(
    tokens: Tensor, scores: Tensor, sampler: Sampler, trial: int
) -> tuple[Tensor, Tensor]:
    """What a row wrote while it waited to be dropped becomes padding.

    [(batch trial) pos] -> [batch trial pos]
    """
    mask = sampler.mask(tokens)
    if mask is not None and sampler.pad is not None:
        tokens = torch.where(mask, tokens, sampler.pad)
        scores = torch.where(mask, scores, 0.0)
    pattern = "(batch trial) pos -> batch trial pos"
    tokens = rearrange(tokens, pattern, trial=trial)
    return tokens, rearrange(scores, pattern, trial=trial)
