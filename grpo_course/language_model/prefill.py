"""Read each prompt once, for all the responses that follow it: prefill.

The keys and values that the attention layers made of a prompt are kept (the KV cache)
and repeated, one copy for each response. They are the same for all of them.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

from grpo_course.algorithm.masks import prompt_mask
from grpo_course.algorithm.validation import require_axes

# Architectures that take a mask as it is, where transformers would make one of its own
# for every token. It was tried on these; any other gets the padding, as before.
READY_MASKS = ("qwen2", "llama", "gpt2")


@dataclass
class Prefix:
    """Where the model stands after its prompts, one row for each response to come."""

    cache: Cache  # keys and values of what was read
    hidden: Tensor  # [rows dim], of the last token read
    real: Tensor  # bool [rows pos], False on padding
    padded: bool  # whether there was any
    position: Tensor  # int [rows 1], of the token to come

    def select(self, rows: Tensor) -> None:
        """Keep some of the rows, or repeat them. int [chosen]"""
        self.cache.batch_select_indices(rows)
        self.hidden, self.real = self.hidden[rows], self.real[rows]
        self.position = self.position[rows]


def prefill(
    model: PreTrainedModel, prompts: Tensor, pad: int | None, cache: Cache | None = None
) -> Prefix:
    """int [rows pos], padded on the left -> where the model stands after them.

    A token's position is its place among the real ones: padding moves nothing.
    `cache` is an empty one, by default one that gradients pass through.
    """
    real = real_tokens(prompts, pad)
    mask, place = attention_mask(real), real.long().cumsum(dim=-1)
    out = model.base_model(
        input_ids=prompts,
        attention_mask=mask,
        position_ids=(place - 1).clamp(min=0),
        past_key_values=DynamicCache() if cache is None else cache,
        use_cache=True,
    )
    last, padded = out.last_hidden_state[:, -1], mask is not None
    return Prefix(out.past_key_values, last, real, padded, place[:, -1:])


def extend(model: PreTrainedModel, prefix: Prefix, tokens: Tensor) -> Tensor:
    """Read further tokens, int [rows pos] -> hidden states [rows pos dim].

    Moves `prefix` on. No token may be padding, unless nothing that counts follows it.
    """
    steps = torch.arange(tokens.shape[-1], device=tokens.device)
    more = torch.ones_like(tokens, dtype=torch.bool)
    prefix.real = torch.cat([prefix.real, more], dim=-1)
    out = model.base_model(
        input_ids=tokens,
        attention_mask=mask_of_last(model, prefix, tokens.shape[-1]),
        position_ids=prefix.position + steps,
        past_key_values=prefix.cache,
        use_cache=True,
    )
    prefix.position = prefix.position + tokens.shape[-1]
    prefix.hidden = out.last_hidden_state[:, -1]
    return out.last_hidden_state


def real_tokens(prompts: Tensor, pad: int | None) -> Tensor:
    """False on the padding in front. int [rows pos] -> bool [rows pos]"""
    if pad is None:
        return torch.ones_like(prompts, dtype=torch.bool)
    return prompt_mask(prompts, pad)


def attention_mask(real: Tensor) -> Tensor | None:
    """As the models want it; None where there is no padding, which is faster."""
    return None if real.all() else real.long()


def mask_of_last(model: PreTrainedModel, prefix: Prefix, steps: int) -> Tensor | None:
    """Where the last `steps` tokens may look. -> bool [rows 1 steps pos]

    None where one token may look at everything. A model that does not take ready masks
    gets the padding, int [rows pos], and works out the same, which takes it longer.
    """
    if not takes_ready_masks(model):
        return prefix.real.long() if prefix.padded else None
    if steps == 1:
        return prefix.real[:, None, None] if prefix.padded else None
    real = prefix.real if prefix.padded else prefix.real[:1]  # all rows are alike
    past = real.shape[-1] - steps
    causal = torch.ones(steps, past + steps, dtype=torch.bool, device=real.device)
    return real[:, None, None] & causal.tril(past)


def takes_ready_masks(model: PreTrainedModel) -> bool:
    """Whether a mask may be made for it: PyTorch's attention, over the whole text."""
    config = model.config
    return (
        config.model_type in READY_MASKS
        and config._attn_implementation == "sdpa"
        and "sliding_attention" not in (getattr(config, "layer_types", None) or ())
    )


def require_room(model: PreTrainedModel, prompts: Tensor, num_new_tokens: int) -> None:
    """Check that prompt and response fit the positions that the model knows."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    room = getattr(model.config, "max_position_embeddings", None)
    if room is not None and length + num_new_tokens > room:
        raise ValueError(
            f"prompts has {length} tokens a row and the response {num_new_tokens}, but "
            f"the model knows {room} positions. Shorten the prompts, ask for fewer new "
            "tokens (max_new_tokens), or make the model with a larger context_length."
        )
