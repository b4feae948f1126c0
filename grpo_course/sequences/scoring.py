"""What the tiny language model thought before each token of its responses."""

import torch
from einops import rearrange, repeat
from torch import Tensor

from grpo_course.algorithm.masks import prompt_mask
from grpo_course.algorithm.validation import require_axes
from grpo_course.sequences.model import TinyLM


def prompt_state(model: TinyLM, prompts: Tensor, pad: int | None = None) -> Tensor:
    """The state after each prompt. int [batch pos] -> [... batch dim]

    With `pad`, padding in front of a prompt leaves no trace in its state.
    """
    real = None if pad is None else prompt_mask(prompts, pad)
    return model.read(prompts, real=real)[..., -1, :]


def response_logits(
    model: TinyLM, prompts: Tensor, responses: Tensor, pad: int | None = None
) -> Tensor:
    """What the model thought before each token of each response.

    int [batch pos] and [... batch trial pos] -> [... batch trial pos vocab]. The
    state before the first token is the prompt's; each prompt is read once.
    """
    require_axes("responses", responses, "batch trial pos")
    require_context(prompts, responses.shape[-1], model.context_length)
    batch, trial = responses.shape[-3:-1]
    if len(prompts) != batch:
        raise ValueError(
            f"prompts has shape {list(prompts.shape)}, but responses has shape "
            f"{list(responses.shape)}: they must agree in batch."
        )
    before = prompt_state(model, prompts, pad)
    before = repeat(before, "... batch dim -> ... (batch trial) dim", trial=trial)
    rows = rearrange(responses, "... batch trial pos -> ... (batch trial) pos")
    states = [before[..., None, :]]
    if rows.shape[-1] > 1:
        states.append(model.read(rows[..., :-1], before))
    logits = model.head(torch.cat(states, dim=-2).flatten(-3, -2))
    pattern = "... (batch trial pos) vocab -> ... batch trial pos vocab"
    return rearrange(logits, pattern, batch=batch, trial=trial)


def require_context(prompts: Tensor, num_new_tokens: int, context_length: int) -> None:
    """Check that prompt and response fit what the model can hold."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    if length + num_new_tokens > context_length:
        raise ValueError(
            f"prompts has {length} tokens a row and the response {num_new_tokens}, but "
            f"the model holds {context_length}. Shorten the prompts, ask for fewer new "
            "tokens, or build the model with a larger context_length."
        )
