"""The sampler: token after token, for many responses at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn
from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel

from grpo_course.checks import require_at_least
from grpo_course.long_work import counted
from grpo_course.sampling import Sampler, draw, pick
from grpo_course.text.scoring import Prefix, of_one_length, require_room

# Dropping rows copies the cache of the others, so it waits until a quarter is done.
WORTH_DROPPING = 0.25


# --- The sampler


def is_compiled(model: PreTrainedModel) -> bool:
    """Whether `model.base_model.compile()` was called."""
    return getattr(model.base_model, "_compiled_call_impl", None) is not None


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    prompts: Tensor,
    num_responses: int,
    sampler: Sampler,
    generator: Generator | None = None,
    greedy: bool = False,
    read_once: bool = True,
) -> tuple[Tensor, Tensor]:
    """Responses, int, and the log-probs noted on the way; both [batch trial pos].

    int [batch pos] in, padded on the left with `sampler.pad`. Each prompt is read
    once for its group. A response that has ended leaves the batch; after its EOS
    come `pad` tokens with log-probability 0. pos is always max_new_tokens.
    With greedy, the likeliest token at each step. Without `read_once` the model's own
    `generate` writes, on any model, and asks for each token here.
    """
    require_at_least("num_responses", num_responses, 1)
    require_room(model, prompts, sampler.max_new_tokens)
    tokens = prompts.new_zeros(len(prompts) * num_responses, sampler.max_new_tokens)
    scores = torch.zeros(tokens.shape, device=prompts.device)

    def choose(logits: Tensor, rows: Tensor, pos: int) -> Tensor:
        log_probs = sampler.log_probs(logits)
        token = draw(log_probs, generator, greedy)
        tokens[rows, pos], scores[rows, pos] = token, pick(log_probs, token)
        return token

    if not read_once:
        for rows, own in of_one_length(prompts, sampler.pad, num_responses):
            write_by_model(model, own, sampler, rows, choose)
    # Inference mode has less to do in each operation; what is compiled fails in it.
    elif is_compiled(model):
        write(model, prompts, sampler, tokens, choose)
    else:
        with torch.inference_mode():
            write(model, prompts, sampler, tokens, choose)
    mask = sampler.mask(tokens)
    if mask is not None and sampler.pad is not None:  # a row that waited wrote on
        tokens = torch.where(mask, tokens, sampler.pad)
        scores = torch.where(mask, scores, 0.0)
    shape = len(prompts), num_responses, sampler.max_new_tokens
    return tokens.view(shape), scores.view(shape)


Choose = Callable[[Tensor, Tensor, int], Tensor]  # logits, rows, pos -> tokens


def write(
    model: PreTrainedModel,
    prompts: Tensor,
    sampler: Sampler,
    tokens: Tensor,
    choose: Choose,
) -> None:
    """Fill tokens, [(batch trial) pos], one position of all rows after another."""
    head, prefix = model.get_output_embeddings(), Prefix(model, prompts, sampler.pad)
    rows = torch.arange(len(tokens), device=tokens.device)  # that are not dropped
    prefix.select(rows // (len(tokens) // len(prompts)))
    places = range(tokens.shape[-1])
    for pos in counted(places, f"sampling {len(tokens)} responses", "token"):
        if pos > 0:
            ended = sampler.finished(tokens[rows, :pos])
            if ended is not None:
                left = (~ended).nonzero().squeeze(-1)
                if len(left) == 0:
                    break
                if len(left) < (1 - WORTH_DROPPING) * len(rows):
                    prefix.select(left)
                    rows = rows[left]
            prefix.extend(tokens[rows, pos - 1 : pos])
        choose(head(prefix.hidden), rows, pos)


def write_by_model(
    model: PreTrainedModel,
    prompts: Tensor,
    sampler: Sampler,
    rows: Tensor,
    choose: Choose,
) -> None:
    """The slow road: `generate` of transformers, which takes the token we chose.

    Its own settings, such as a repetition penalty, are put aside meanwhile.
    """

    def only_ours(texts: Tensor, logits: Tensor) -> Tensor:
        token = choose(logits, rows, texts.shape[-1] - prompts.shape[-1])
        return torch.full_like(logits, -torch.inf).scatter(-1, token[:, None], 0.0)

    config, saved = GenerationConfig(), model.generation_config
    config.update(max_new_tokens=sampler.max_new_tokens, do_sample=False)
    ends = [*sampler.eos] if isinstance(sampler.eos, tuple) else sampler.eos
    config.update(eos_token_id=ends, pad_token_id=sampler.pad)
    model.generation_config = config
    try:
        model.generate(
            input_ids=prompts,
            attention_mask=torch.ones_like(prompts),
            generation_config=config,
            logits_processor=LogitsProcessorList([only_ours]),
        )
    finally:
        model.generation_config = saved


@contextmanager
def cast_once(model: PreTrainedModel, dtype: torch.dtype | None) -> Iterator[None]:
    """Linear layers hold their weights in the dtype that autocast multiplies them in.

    Without gradients, each token would cast all of them anew. The numbers are the same.
    """
    every = [] if dtype is None or is_compiled(model) else model.modules()
    layers = [each for each in every if type(each) is nn.Linear]
    weights = [layer.weight for layer in layers]
    try:
        for layer in layers:
            cast = layer.weight.detach().to(dtype)
            layer.weight = nn.Parameter(cast, requires_grad=False)
        yield
    finally:
        for layer, weight in zip(layers, weights, strict=True):
            layer.weight = weight
