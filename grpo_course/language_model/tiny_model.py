"""A causal LM small enough to train from nothing on a laptop, in three architectures.

The classes are those of the `transformers` library, so the code that trains them
trains a pretrained model of the same family, and `save_pretrained` files load there.
"""

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from grpo_course.algorithm.validation import unknown_name

MODELS = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
    "gpt2": (GPT2Config, GPT2LMHeadModel),
}


def make_tiny_model(
    tokenizer: PreTrainedTokenizerBase,
    architecture: str = "qwen2",
    *,
    hidden_size: int = 96,
    num_layers: int = 2,
    num_heads: int = 4,
    context_length: int = 256,
    seed: int = 0,
) -> PreTrainedModel:
    """A causal LM with random weights for the vocabulary of `tokenizer`.

    Qwen2 and Llama tell positions by rotation (RoPE), GPT-2 learns an embedding for
    each. Input and output share one embedding. No dropout. The weights depend on
    `seed` alone, and torch's own random numbers are left as they were.
    Raises ValueError for an architecture that is not one of MODELS.
    """
    if architecture not in MODELS:
        raise unknown_name("architecture", architecture, MODELS)
    config_class, model_class = MODELS[architecture]
    sizes = gpt2_sizes if architecture == "gpt2" else llama_sizes
    config = config_class(
        vocab_size=len(tokenizer),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
        **sizes(hidden_size, num_layers, num_heads, context_length),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model_class(config).eval()


def require_equal_heads(hidden_size: int, num_heads: int) -> None:
    """Check that each head of attention can take an equal part."""
    if hidden_size % num_heads:
        raise ValueError(
            f"hidden_size={hidden_size} with num_heads={num_heads}: each head takes an "
            "equal part, so choose a multiple of num_heads."
        )


def llama_sizes(hidden: int, layers: int, heads: int, context: int) -> dict:
    """The sizes as the configs of Llama and Qwen2 name them."""
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "intermediate_size": 3 * hidden,
        "max_position_embeddings": context,
    }


def gpt2_sizes(hidden: int, layers: int, heads: int, context: int) -> dict:
    """The sizes as the config of GPT-2 names them; its dropout is on unless set."""
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return {
        "n_embd": hidden,
        "n_layer": layers,
        "n_head": heads,
        "n_positions": context,
    } | dropout
