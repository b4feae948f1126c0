"""How much memory a run needs, before anything is loaded. Simple arithmetic, in bytes.

Parameters are counted exactly (in `shape`). What the forward pass keeps is a rule that
was fitted to Qwen2, Llama and GPT-2 layers with attention that keeps no scores; take it
as good to about a quarter.
"""

from grpo_course.lm import MOST_LOGITS, load_shape
from grpo_course.runs.shape import Shape, shape_of, tiny_shape
from grpo_course.training import GRPOConfig

FLOAT32 = 4  # bytes
NUMBER = {"float32": 4, "bfloat16": 2}  # bytes of what matrix products read and write
LOGIT_COPIES = 3  # scaled, normalized, and their gradient
# A guess that spares loading a tokenizer: a question, without a system prompt or with.
SHORT_PROMPT, LONG_PROMPT = 64, 320


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
    inside = layer_bytes(shape, number)
    if checkpointing:
        return rows * pos * (shape.layers * shape.hidden * FLOAT32 + inside)
    return rows * pos * shape.layers * inside


def layer_bytes(shape: Shape, number: int) -> int:
    """What one layer keeps of one token."""
    inside = 8 * shape.hidden * FLOAT32
    return inside + (2 * shape.key_width + 4 * shape.intermediate) * number


def scoring_bytes(shape: Shape, rows: int, pos: int, number: int = FLOAT32) -> int:
    """A forward pass without a gradient: the cache, and one layer at a time."""
    cache = cache_bytes(shape, rows, pos, number)
    return cache + rows * pos * layer_bytes(shape, number)


def logit_bytes(shape: Shape, rows: int, pos: int, most: int = MOST_LOGITS) -> int:
    """The logits that are held at once; more than `most` of them are made in parts."""
    logits = min(rows * pos * shape.vocabulary, max(most, shape.vocabulary))
    return LOGIT_COPIES * logits * FLOAT32


def estimate(shape: Shape, config: GRPOConfig, prompt_tokens: int) -> dict[str, int]:
    """Bytes by what they are for, and the most that is held at one time.

    Writing the responses, scoring them (by the reference, say) and learning from them
    do not happen at once.
    """
    rows, written = rows_at_once(config), config.max_new_tokens
    number, pos = NUMBER[config.dtype], prompt_tokens + written
    all_rows = config.num_prompts * config.num_responses
    scored = scored_at_once(config)
    keep = (rows, pos, number, config.gradient_checkpointing)
    learning = {
        "activations": activation_bytes(shape, *keep),
        "logits": logit_bytes(shape, rows, written),
    }
    passes = scoring_bytes(shape, scored, pos, number)
    scoring = {"scoring": passes + logit_bytes(shape, scored, written)}
    writing = {
        "cache while writing": cache_bytes(shape, all_rows, pos, number),
        "logits while writing": LOGIT_COPIES * all_rows * shape.vocabulary * FLOAT32,
    }
    held, turns = held_bytes(shape, config), (learning, scoring, writing)
    most = max(sum(turn.values()) for turn in turns)
    parts = held | learning | scoring | writing
    return parts | {"most at once": sum(held.values()) + most}


def held_bytes(shape: Shape, config: GRPOConfig) -> dict[str, int]:
    """What is held all the time. With LoRA the model is its own reference."""
    adapter = config.lora_rank * shape.adapter
    learned = adapter or shape.parameters
    copied = config.kl_penalty and not adapter
    return {
        "policy": weight_bytes(shape.parameters + adapter),
        "reference": weight_bytes(shape.parameters) if copied else 0,
        "optimizer": adam_bytes(learned),
        "gradients": weight_bytes(learned),
    }


def rows_at_once(config: GRPOConfig) -> int:
    """How many responses a forward pass with a gradient holds.

    A part is so many prompts with all their responses, and in a minibatch, so many
    single responses.
    """
    most, each = config.num_prompts, config.num_responses
    if config.minibatch_size is not None:
        most, each = config.minibatch_size, 1
    return min(config.micro_batch_size or most, most) * each


def scored_at_once(config: GRPOConfig) -> int:
    """How many responses a forward pass without a gradient holds; 0: there is none."""
    if not config.kl_penalty and config.old_log_probs_from != "policy":
        return 0
    most = min(config.micro_batch_size or config.num_prompts, config.num_prompts)
    return most * config.num_responses


def sizes_of(config: GRPOConfig) -> tuple[Shape, int]:
    """The shape of a run's model, before it is loaded, and the tokens of a prompt."""
    name = config.model
    shape = tiny_shape(config) if name is None else shape_of(load_shape(name))
    return shape, SHORT_PROMPT if config.system_prompt is None else LONG_PROMPT


def print_estimate(config: GRPOConfig) -> None:
    """Say before loading what a run will need."""
    shape, tokens = sizes_of(config)
    print(memory_table(shape, estimate(shape, config, tokens), tokens))


def memory_table(shape: Shape, parts: dict[str, int], prompt_tokens: int) -> str:
    """Lines of text."""
    lines = [
        f"{shape.parameters:,} parameters; prompts of {prompt_tokens} tokens; in MB:"
    ]
    lines += [f"  {name:<22}{size / 1e6:>12,.1f}" for name, size in parts.items()]
    return "\n".join(lines)
