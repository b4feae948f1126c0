"""Score responses with a Hugging Face causal LM, with a gradient."""

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from grpo_course.algorithm.sampler import Sampler, pick
from grpo_course.algorithm.validation import require_axes
from grpo_course.language_model.prefill import (
    attention_mask,
    extend,
    prefill,
    real_tokens,
    require_room,
)

# Logits held at once: 16 million float32 numbers are 64 MB.
MOST_LOGITS = 2**24


def response_log_probs(
    model: PreTrainedModel,
    prompts: Tensor,
    responses: Tensor,
    sampler: Sampler,
    mask: Tensor | None = None,
    most_logits: int = MOST_LOGITS,
) -> Tensor:
    """Log-probability of each token of each response, in float32. [batch trial pos]

    int [batch pos] padded on the left and int [batch trial pos] in. Tokens outside
    `mask` score 0, and what lies behind the longest response is not read at all.
    Each different prompt is read once. Where the vocabulary is large, at most
    `most_logits` logits are held at a time: they are made again in the backward pass.
    Raises ValueError for prompts that do not fit the model.
    """
    require_axes("responses", responses, "batch trial pos")
    require_room(model, prompts, responses.shape[-1])
    batch, trial, pos = responses.shape
    if mask is None:
        mask = torch.ones_like(responses, dtype=torch.bool)
    mask = mask.flatten(0, 1)
    longest = max(1, int(mask.any(dim=0).sum()))  # 1: even where no token counts
    tokens, mask = responses.flatten(0, 1)[:, :longest], mask[:, :longest]
    hidden = hidden_states(model, prompts, tokens, sampler.pad)
    scores = chunked_log_probs(
        model.get_output_embeddings(), hidden[mask], tokens[mask], sampler, most_logits
    )
    out = scores.new_zeros(batch * trial, pos)
    out[:, :longest][mask] = scores
    return out.view(batch, trial, pos)


def hidden_states(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, pad: int | None
) -> Tensor:
    """What the model made of the text before each token. -> [rows pos dim]

    int [batch pos] and [(batch trial) pos] in. Gradients reach a prompt's keys and
    values from all of its responses, as if each had read the prompt for itself.
    """
    which = torch.arange(len(tokens), device=tokens.device)
    which = which // (len(tokens) // len(prompts))
    if model.training and model.is_activation_checkpointing:
        return hidden_states_of_rows(model, prompts[which], tokens, pad)
    unique, same = prompts.unique(dim=0, return_inverse=True)
    prefix = prefill(model, unique, pad)
    prefix.select(same[which])
    before = prefix.hidden[:, None]
    if tokens.shape[-1] == 1:
        return before
    return torch.cat([before, extend(model, prefix, tokens[:, :-1])], dim=1)


def hidden_states_of_rows(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, pad: int | None
) -> Tensor:
    """The same, each prompt read with its response: what recomputes keeps no cache.

    int [rows pos] and [rows pos] in.
    """
    real = real_tokens(prompts, pad)
    real = torch.cat([real, torch.ones_like(tokens[:, :-1], dtype=torch.bool)], dim=-1)
    out = model.base_model(
        input_ids=torch.cat([prompts, tokens[:, :-1]], dim=-1),
        attention_mask=attention_mask(real),
        position_ids=(real.long().cumsum(dim=-1) - 1).clamp(min=0),
        use_cache=False,
    )
    return out.last_hidden_state[:, prompts.shape[-1] - 1 :]


def chunked_log_probs(
    head: torch.nn.Module,
    hidden: Tensor,
    tokens: Tensor,
    sampler: Sampler,
    most_logits: int = MOST_LOGITS,
) -> Tensor:
    """The score of each token from the state before it. [rows dim] -> [rows]

    A chunk's logits are forgotten after the forward pass and made again in the
    backward pass (checkpointing: Chen et al. 2016, arXiv 1604.06174).
    """

    def scores(hidden: Tensor, tokens: Tensor) -> Tensor:
        return pick(sampler.log_probs(head(hidden), keep=tokens), tokens)

    rows = max(1, most_logits // head.get_parameter("weight").shape[0])
    if len(hidden) <= rows:
        return scores(hidden, tokens)
    pairs = zip(hidden.split(rows), tokens.split(rows), strict=True)
    return torch.cat([checkpoint(scores, *pair, use_reentrant=False) for pair in pairs])
