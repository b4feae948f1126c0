"""How much memory a run needs, before anything is loaded. Simple arithmetic, in bytes.

Parameters are counted exactly. What the forward pass keeps is a rule that was fitted to
Qwen2, Llama and GPT-2 layers with attention that keeps no scores; take it as good to
about a quarter. Left out: a trainer at scale, which holds more copies.
"""

import os
from dataclasses import dataclass

import torch
from transformers import AutoModelForCausalLM, PretrainedConfig
from transformers.pytorch_utils import Conv1D

from grpo_course.text.models import (
    find_device,
    load_shape,
    require_whole_model,
    text_config,
)
from grpo_course.text.responses import chat_messages
from grpo_course.text.scoring import MOST_LOGITS
from grpo_course.text.tiny import tiny_config
from grpo_course.text.training import GRPOConfig, make_task

FLOAT32 = 4  # bytes
NUMBER = {"float32": 4, "bfloat16": 2}  # bytes of what matrix products read and write
LOGIT_COPIES = 3  # scaled, normalized, and their gradient
# Guesses on the safe side that spare loading a tokenizer: tokens, letters a token.
QUESTION, LETTERS = 64, 2
MOST = "most at once"


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
    config = text_config(config)
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


def sizes_of(config: GRPOConfig) -> tuple[Shape, int]:
    """The shape of a run's model, before it is loaded, and the tokens of a prompt."""
    before = chat_messages("", make_task(config).opening(config.system_prompt))
    letters = sum(len(message["content"]) for message in before)
    tokens = QUESTION + letters // LETTERS
    if config.model is not None:
        require_whole_model(config.model)
        return shape_of(load_shape(config.model)), tokens
    tiny = tiny_config(config.vocab_size, config.architecture, **config.sizes)
    return shape_of(tiny), tokens


def cache_bytes(shape: Shape, rows: int, pos: int, number: int = FLOAT32) -> int:
    """Keys and values of all layers while `rows` responses are written."""
    return 2 * shape.layers * shape.key_width * rows * pos * number


def layer_bytes(shape: Shape, number: int) -> int:
    """What one layer keeps of one token for the backward pass."""
    inside = 8 * shape.hidden * FLOAT32
    return inside + (2 * shape.key_width + 4 * shape.intermediate) * number


def activation_bytes(
    shape: Shape, tokens: int, number: int = FLOAT32, checkpointing: bool = False
) -> int:
    """What a forward pass over so many tokens keeps for the backward pass.

    With checkpointing, every layer keeps its input only, and one layer at a time is
    made again.
    """
    inside = layer_bytes(shape, number)
    if checkpointing:
        return tokens * (shape.layers * shape.hidden * FLOAT32 + inside)
    return tokens * shape.layers * inside


def logit_bytes(shape: Shape, rows: int, pos: int, most: int = MOST_LOGITS) -> int:
    """The logits that are held at once; more than `most` of them are made in parts."""
    logits = min(rows * pos * shape.vocabulary, max(most, shape.vocabulary))
    return LOGIT_COPIES * logits * FLOAT32


def estimate(shape: Shape, config: GRPOConfig, prompt_tokens: int) -> dict[str, int]:
    """Bytes by what they are for, and the most that is held at one time.

    Weights and Adam's two averages are float32. With LoRA the model is its own
    reference. Writing the responses, scoring them without a gradient and learning from
    them do not happen at once.
    """
    number, written = NUMBER[config.dtype], config.max_new_tokens
    pos, each = prompt_tokens + written, config.num_responses
    adapter = config.lora_rank * shape.adapter
    learned, whole = FLOAT32 * (adapter or shape.parameters), FLOAT32 * shape.parameters
    held = {
        "policy": whole + FLOAT32 * adapter,
        "reference": whole if config.kl_penalty and not adapter else 0,
        "optimizer": 2 * learned,
        "gradients": learned,
    }
    rows = rows_at_once(config)
    recompute = config.gradient_checkpointing
    # A group's prompt is read once, and each response has its keys and values; where
    # the backward pass recomputes, each reads it anew.
    prompts = rows if recompute or config.minibatch_size else rows // each
    read = prompts * prompt_tokens + rows * written
    copied = 0 if prompts == rows else cache_bytes(shape, rows, pos, number)
    learning = {
        "activations": activation_bytes(shape, read, number, recompute) + copied,
        "logits": logit_bytes(shape, rows, written),
    }
    scored = min(config.micro_batch_size or config.num_prompts, config.num_prompts)
    if not config.kl_penalty and config.old_log_probs_from != "policy":
        scored = 0
    passes = cache_bytes(shape, scored * each, pos, number)
    passes += scored * each * pos * layer_bytes(shape, number)  # of one layer
    scoring = {"scoring": passes + logit_bytes(shape, scored * each, written)}
    rows = config.num_prompts * each
    writing = {
        "cache while writing": cache_bytes(shape, rows, pos, number),
        "logits while writing": LOGIT_COPIES * rows * shape.vocabulary * FLOAT32,
    }
    most = max(sum(turn.values()) for turn in (learning, scoring, writing))
    return held | learning | scoring | writing | {MOST: sum(held.values()) + most}


def rows_at_once(config: GRPOConfig) -> int:
    """How many responses a forward pass with a gradient holds.

    Parts count prompts with all their responses, and in a minibatch single responses.
    """
    most, each = config.num_prompts, config.num_responses
    if config.minibatch_size is not None:
        most, each = config.minibatch_size, 1
    return min(config.micro_batch_size or most, most) * each


def print_estimate(config: GRPOConfig) -> None:
    """Say before loading what a run will need, and what may help if that is too much.

    Raises ValueError where it is more than twice what the machine has: the estimate is
    not so wrong.
    """
    shape, tokens = sizes_of(config)
    sizes = estimate(shape, config, tokens)
    print(f"{shape.parameters:,} parameters; prompts of {tokens} tokens; in MB:")
    for name, size in sizes.items():
        print(f"  {name:<22}{size / 1e6:>12,.1f}")
    need, there = sizes[MOST] / 1e9, memory_of(config.device) / 1e9
    if need > there:
        shortage = (
            f"the run needs about {need:,.1f} GB, and this machine has {there:,.1f} GB."
            " What needs less: --micro-batch-size 1, --gradient-checkpointing True, "
            "--lora-rank 16, or fewer or shorter responses."
        )
        if need > 2 * there:
            raise ValueError(shortage)
        print(shortage)


def memory_of(device: str) -> float:
    """Bytes of a device, used ones too; infinite where nobody says."""
    kind = torch.device(find_device(device))
    if kind.type == "cuda":
        return torch.cuda.get_device_properties(kind).total_memory
    if kind.type != "cpu" or not hasattr(os, "sysconf"):
        return float("inf")
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
