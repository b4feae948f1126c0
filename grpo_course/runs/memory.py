"""How much memory a run needs, before anything is loaded. Simple arithmetic, in bytes.

Parameters are counted exactly. What the forward pass keeps is a rule that was fitted
to Qwen2, Llama and GPT-2 layers with attention that keeps no scores; take it as good
to about a quarter.
"""

from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig

from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.log_probs import MOST_LOGITS
from grpo_course.language_model.pretrained import load_shape
from grpo_course.language_model.tiny_model import MODELS, gpt2_sizes, llama_sizes

FLOAT32 = 4  # bytes
NUMBER = {"float32": 4, "bfloat16": 2}  # bytes of what matrix products read and write
LOGIT_COPIES = 3  # scaled, normalized, and their gradient
# A guess that spares loading a tokenizer: a question, without a system prompt or with.
SHORT_PROMPT, LONG_PROMPT = 64, 320


@dataclass(frozen=True)
class Shape:
    """What the arithmetic needs to know of a model."""

    parameters: int  # tied ones once
    layers: int
    hidden: int
    key_width: int  # of the keys of one token in one layer; the values' is the same
    intermediate: int  # width inside the feed-forward part
    vocabulary: int


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
    )


def weight_bytes(parameters: int) -> int:
    """Weights, or gradients, in float32."""
    return FLOAT32 * parameters


def adam_bytes(parameters: int) -> int:
    """Adam's means of gradients and of their squares."""
    return 2 * FLOAT32 * parameters


def cache_bytes(shape: Shape, rows: int, pos: int, number: int = FLOAT32) -> int:
    """Keys and values of all layers while `rows` responses are written."""
    return 2 * shape.layers * shape.key_width * rows * pos * number


def activation_bytes(
    shape: Shape,
    rows: int,
    pos: int,
    number: int = FLOAT32,
    checkpointing: bool = False,
) -> int:
    """What a forward pass keeps for the backward pass.

    A layer keeps eight times its width in float32, and keys, values and four times
    the inner width in the dtype of the products. With checkpointing, every layer
    keeps its input only, and one layer at a time is made again.
    """
    inside = 8 * shape.hidden * FLOAT32
    inside += (2 * shape.key_width + 4 * shape.intermediate) * number
    if checkpointing:
        return rows * pos * (shape.layers * shape.hidden * FLOAT32 + inside)
    return rows * pos * shape.layers * inside


def logit_bytes(shape: Shape, rows: int, pos: int, most: int = MOST_LOGITS) -> int:
    """The logits that are held at once; more than `most` of them are made in parts."""
    logits = min(rows * pos * shape.vocabulary, max(most, shape.vocabulary))
    return LOGIT_COPIES * logits * FLOAT32


def estimate(shape: Shape, config: GRPOConfig, prompt_tokens: int) -> dict[str, int]:
    """Bytes by what they are for, and the most that is held at one time.

    Writing the responses and learning from them do not happen at once.
    """
    rows, written = rows_at_once(config), config.max_new_tokens
    number, pos = NUMBER[config.dtype], prompt_tokens + written
    all_rows = config.num_prompts * config.num_responses
    held = {
        "policy": weight_bytes(shape.parameters),
        "reference": weight_bytes(shape.parameters) if config.kl_penalty else 0,
        "optimizer": adam_bytes(shape.parameters),
        "gradients": weight_bytes(shape.parameters),
    }
    keep = (rows, pos, number, config.gradient_checkpointing)
    learning = {
        "activations": activation_bytes(shape, *keep),
        "logits": logit_bytes(shape, rows, written),
    }
    writing = {
        "cache while writing": cache_bytes(shape, all_rows, pos, number),
        "logits while writing": LOGIT_COPIES * all_rows * shape.vocabulary * FLOAT32,
    }
    most = max(sum(learning.values()), sum(writing.values()))
    return held | learning | writing | {"most at once": sum(held.values()) + most}


def rows_at_once(config: GRPOConfig) -> int:
    """How many responses a forward pass with a gradient holds.

    A part is so many prompts with all their responses, and in a minibatch, so many
    single responses.
    """
    most, each = config.num_prompts, config.num_responses
    if config.minibatch_size is not None:
        most, each = config.minibatch_size, 1
    return min(config.micro_batch_size or most, most) * each


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


def print_estimate(config: GRPOConfig) -> None:
    """Say before loading what a run will need."""
    name = config.model
    shape = tiny_shape(config) if name is None else shape_of(load_shape(name))
    tokens = SHORT_PROMPT if config.system_prompt is None else LONG_PROMPT
    print(memory_table(shape, estimate(shape, config, tokens), tokens))


def memory_table(shape: Shape, parts: dict[str, int], prompt_tokens: int) -> str:
    """Lines of text."""
    lines = [
        f"{shape.parameters:,} parameters; prompts of {prompt_tokens} tokens; in MB:"
    ]
    lines += [f"  {name:<22}{size / 1e6:>12,.1f}" for name, size in parts.items()]
    return "\n".join(lines)
