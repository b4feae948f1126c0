"""The shape of a model, which decides how much memory it needs. No weights are made."""

from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig
from transformers.pytorch_utils import Conv1D

from grpo_course.lm import MODELS, gpt2_sizes, llama_sizes
from grpo_course.training import GRPOConfig


@dataclass(frozen=True)
class Shape:
    """What the arithmetic needs to know of a model."""

    parameters: int  # tied ones once
    layers: int
    hidden: int
    key_width: int  # of the keys of one token in one layer; the values' is the same
    intermediate: int  # width inside the feed-forward part
    vocabulary: int
    adapter: int = 0  # parameters of an adapter of rank 1 beside all linear layers


def shape_of(config: PretrainedConfig) -> Shape:
    """The shape of any causal LM; its parameters are counted without memory."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    hidden, heads = config.hidden_size, config.num_attention_heads
    head = getattr(config, "head_dim", None) or hidden // heads
    inner = getattr(config, "intermediate_size", None)
    return Shape(
        parameters=sum(weight.numel() for weight in model.parameters()),
        layers=config.num_hidden_layers,
        hidden=hidden,
        key_width=head * (getattr(config, "num_key_value_heads", None) or heads),
        intermediate=inner or getattr(config, "n_inner", None) or 4 * hidden,
        vocabulary=config.vocab_size,
        adapter=sum(
            sum(part.weight.shape)
            for part in model.base_model.modules()
            if isinstance(part, torch.nn.Linear | Conv1D)
        ),
    )


def tiny_shape(config: GRPOConfig) -> Shape:
    """The shape of the model that a config without `model` makes."""
    sizes = gpt2_sizes if config.architecture == "gpt2" else llama_sizes
    width, layers, heads = config.hidden_size, config.num_layers, config.num_heads
    return shape_of(
        MODELS[config.architecture][0](
            vocab_size=config.vocab_size,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=None,
            **sizes(width, layers, heads, config.context_length),
        )
    )
