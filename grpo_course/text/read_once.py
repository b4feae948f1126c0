"""Whether a prompt may be read once for all responses to it: a model is asked.

Qwen2, Llama, GPT-2 and most others pass. A model that is of another kind (a scale or a
cap on the logits, a recurrent state) takes the slow road: its own `generate` and its
own forward pass over each text, without padding.
"""

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel

from grpo_course.sampling import Sampler
from grpo_course.text.generation import generate
from grpo_course.text.models import WORK, text_config
from grpo_course.text.scoring import most_positions, response_log_probs

# Settings that say from which length on a text is read in another way: windows, chunks
# and blocks of attention, how many tokens an index chooses, and where positions are
# scaled anew. A name too many here costs a probe; one too few goes unseen.
BEGINS = re.compile(
    "window(_size|_len)?$|chunk|block_size|compress|index_topk|topk_blocks|"
    "original_max_position|floor_scale|n_floor|local_attention$|mem_len"
)
BEYOND = 16  # tokens that a probe reads where something has begun


def lengths_that_change(model: PreTrainedModel) -> list[int]:
    """After how many tokens something begins, as the config of a model says. Sorted.

    The last of them is the longest text that the model reads, where nothing begins.
    """

    def numbers(value: Any) -> Iterator[int]:
        if isinstance(value, dict | list | tuple):
            for each in value.values() if isinstance(value, dict) else value:
                yield from numbers(each)
        elif isinstance(value, int) and not isinstance(value, bool):
            yield value

    def found(settings: dict) -> Iterator[int]:
        for name, value in settings.items():
            if BEGINS.search(str(name)):
                yield from numbers(value)
            elif isinstance(value, dict):  # of positions, say, for each kind of layer
                yield from found(value)

    settings = text_config(model).to_dict()
    blocks = settings.get("index_topk_blocks") or 0
    chosen = blocks * (settings.get("index_block_size") or 0)
    begins = {length for length in (*found(settings), chosen) if length > 1}
    room = most_positions(model) or max(begins, default=0) + BEYOND
    return [*sorted(length for length in begins if length < room), room]


def probe_prompts(model: PreTrainedModel, pad: int | None, begins: int) -> Tensor:
    """Prompts to try a model with, int [row pos]; only the last has no padding.

    They are several real tokens, because the embedding of the pad token may be zero,
    and so are its logits, whatever their scale. With `begins`, two rows come to that
    length while they are answered, and a third that is short stands beside them.
    """
    ids = torch.arange(model.get_input_embeddings().get_parameter("weight").shape[0])
    ids = ids if pad is None else ids[ids != pad]
    if begins:
        noise = Generator().manual_seed(0)
        chosen = torch.randint(len(ids), (3, max(begins - 1, 1)), generator=noise)
        prompts, padding = ids[chosen], [begins - 5, 3, 0]
    else:
        ids = ids[torch.linspace(0, len(ids) - 1, 6).long()]
        prompts, padding = torch.stack([ids[:4], ids[2:]]), [2, 0]
    if pad is not None:
        for row, count in zip(prompts, padding, strict=True):
            row[: min(max(count, 0), len(row) - 1)] = pad
    return prompts.to(model.device)


@torch.no_grad()
def why_not_read_once(
    model: PreTrainedModel,
    pad: int | None,
    begins: int = 0,
    until: int = 0,
    read_once: bool = True,
) -> str | None:
    """Why a prompt may not be read once here, in words; None where it may.

    A few tokens are written and scored there, and scored by the model's own forward
    pass: behind short prompts, or behind such that cross the length at which something
    `begins`, in texts of at most `until` tokens. A cap shows on large logits only, so
    once they are made a hundred times as large where they leave the head. Without
    `read_once` only the slow road is tried.
    Raises ValueError if on the slow road, too, what is noted is not what is scored.
    """
    prompts = probe_prompts(model, pad, begins)
    new = min(BEYOND, until - prompts.shape[-1]) if begins else 2
    sampler = Sampler(new, pad=pad)
    head, base, why = model.get_output_embeddings(), model.base_model, None
    exact = max(torch.finfo(each).eps for each in (model.dtype, torch.float32))
    rounding = min(1e3 * exact, 0.1)  # of the spread of logits; scores are float32
    made: list[Tensor] = []

    def enlarge(_: nn.Module, __: object, logits: Tensor) -> Tensor:
        made.append(100 * logits)
        return made[0]

    def few_logits() -> Tensor:
        return model(input_ids=prompts[-1:, :4]).logits

    def differs(read_once: bool) -> bool:
        """Whether a road's log-probs are other than those of the forward pass."""
        noise = Generator(model.device).manual_seed(0)
        tokens, noted = generate(
            model, prompts, 1 if begins else 2, sampler, noise, read_once=read_once
        )
        alone, scored = (
            response_log_probs(model, prompts, tokens, sampler, read_once=road)
            for road in (False, read_once)
        )
        gap = torch.stack([noted, scored])
        logits = few_logits()
        size = (logits.max() - logits.min()).clamp(min=1)
        return not (gap - alone).abs().max() <= rounding * size  # NaN differs, too

    kinds = {*(getattr(text_config(model), "layer_types", None) or ())}
    kinds -= {"full_attention", "sliding_attention"}
    compiled = getattr(base, "_compiled_call_impl", None)
    if compiled is not None:
        base._compiled_call_impl = None  # compiling takes long
    try:
        if read_once and not begins:
            with head.register_forward_hook(enlarge):
                logits = few_logits()
            size = made[0].max() - made[0].min()
            if kinds:
                these = ", ".join(sorted(kinds))
                why = f"layers of the kind {these} keep something else"
            elif (made[0] - logits).abs().max() > rounding * size:
                why = "a scale or a cap changes its logits"
        if read_once and why is None and differs(read_once=True):
            why = "tried out, it gives other log-probabilities"
            why += f" beyond {begins} tokens" if begins else ""
    except Exception as error:  # of whatever kind: the model is of another
        why = f"tried out, it fails ({type(error).__name__}: {str(error)[:150]})"
    finally:
        if compiled is not None:
            base._compiled_call_impl = compiled
    if read_once and why is None:
        return None
    try:
        fault = differs(read_once=False) and (
            "its own generate() samples from other probabilities than its forward pass "
            "gives, so no gradient would be right"
        )
    except Exception as error:
        fault = f"its own generate() fails ({type(error).__name__}: {str(error)[:150]})"
    if fault and begins:
        raise ValueError(
            f"{type(model).__name__}: in a text of more than {begins} tokens {fault}. "
            "Prompt and response together may have no more here: ask for fewer new "
            "tokens (--max-new-tokens), shorten the prompts, or choose another model."
        )
    if fault:
        raise ValueError(
            f"{type(model).__name__}: {fault}. Nothing was trained or saved. Choose "
            f"another model: {WORK} hold."
        )
    return why
