"""Sample groups of responses from a Hugging Face causal LM."""

import torch
from einops import rearrange
from torch import Generator, Tensor
from transformers import PreTrainedModel

from grpo_course.algorithm.sampler import Sampler, draw, pick
from grpo_course.algorithm.validation import require_at_least
from grpo_course.language_model.prefill import extend, prefill, require_room

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
    prefix = prefill(model, prompts, sampler.pad)
    rows = torch.arange(len(prompts) * num_responses, device=prompts.device)
    prefix.select(rows // num_responses)
    tokens = prompts.new_zeros(len(rows), sampler.max_new_tokens)
    scores = torch.zeros(tokens.shape, device=prompts.device)
    done = torch.zeros_like(rows, dtype=torch.bool)
    for pos in range(sampler.max_new_tokens):
        log_probs = sampler.log_probs(model.get_output_embeddings()(prefix.hidden))
        token = draw(log_probs, generator, greedy)
        tokens[rows, pos], scores[rows, pos] = token, pick(log_probs, token)
        if sampler.eos is not None:
            done = done | (token == sampler.eos)
        if done.all() or pos + 1 == sampler.max_new_tokens:
            break
        if done.float().mean() > WORTH_DROPPING:
            left = (~done).nonzero().squeeze(-1)
            prefix.select(left)
            rows, token, done = rows[left], token[left], done[left]
        extend(model, prefix, token[:, None])
    return blank_after_end(tokens, scores, sampler, num_responses)


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
