"""Whether a prompt may be read once for all responses to it: a model is asked.

Qwen2, Llama, GPT-2 and most others pass. A model that is of another kind (a scale or a
cap on the logits, a recurrent state) takes the slow road: its own `generate` and its
own forward pass over each text, without padding.
"""

import torch
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel

from grpo_course.sampling import Sampler
from grpo_course.text.generation import generate
from grpo_course.text.models import WORK, text_config
from grpo_course.text.scoring import response_log_probs


def probe_prompts(model: PreTrainedModel, pad: int | None) -> Tensor:
    """Two prompts to try a model with, int [row pos]; only the last has no padding.

    They are several real tokens, because the embedding of the pad token may be zero,
    and so are its logits, whatever their scale.
    """
    ids = torch.arange(model.get_input_embeddings().get_parameter("weight").shape[0])
    ids = ids if pad is None else ids[ids != pad]
    ids = ids[torch.linspace(0, len(ids) - 1, 6).long()]
    prompts = torch.stack([ids[:4], ids[2:]])
    if pad is not None:
        prompts[0, :2] = pad
    return prompts.to(model.device)


@torch.no_grad()
def why_not_read_once(model: PreTrainedModel, pad: int | None) -> str | None:
    """Why a prompt may not be read once here, in words; None where it may.

    A few tokens are written and scored there, and scored by the model's own forward
    pass. A cap shows on large logits only, so once they are made a hundred times as
    large where they leave the head.
    Raises ValueError if on the slow road, too, what is noted is not what is scored.
    """
    prompts, sampler = probe_prompts(model, pad), Sampler(2, pad=pad)
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
        tokens, noted = generate(model, prompts, 2, sampler, noise, read_once=read_once)
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
        with head.register_forward_hook(enlarge):
            logits = few_logits()
        size = made[0].max() - made[0].min()
        if kinds:
            these = ", ".join(sorted(kinds))
            why = f"layers of the kind {these} keep something else"
        elif (made[0] - logits).abs().max() > rounding * size:
            why = "a scale or a cap changes its logits"
        elif differs(read_once=True):
            why = "tried out, it gives other log-probabilities"
    except Exception as error:  # of whatever kind: the model is of another
        why = f"tried out, it fails ({type(error).__name__}: {str(error)[:150]})"
    finally:
        if compiled is not None:
            base._compiled_call_impl = compiled
    if why is None:
        return None
    try:
        fault = differs(read_once=False) and (
            "its own generate() samples from other probabilities than its forward pass "
            "gives, so no gradient would be right"
        )
    except Exception as error:
        fault = f"its own generate() fails ({type(error).__name__}: {str(error)[:150]})"
    if fault:
        raise ValueError(
            f"{type(model).__name__}: {fault}. Nothing was trained or saved. Choose "
            f"another model: {WORK} hold."
        )
    return why
