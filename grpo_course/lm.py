"""A small tokenizer made from the texts that a tiny model is to read and write."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from einops import rearrange
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Generator, Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    Cache,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.cache_utils import DynamicLayer
from transformers.utils import logging

from grpo_course.checks import require_at_least, require_axes, unknown_name
from grpo_course.extras import require_extra
from grpo_course.loop import Rollout
from grpo_course.sampling import Sampler, draw, pick, prompt_mask
from grpo_course.tasks import CHAT_TEMPLATE, TAGS

# --- language_model.tokenizer


PAD, START, EOS = "<|endoftext|>", "<|im_start|>", "<|im_end|>"


SPECIAL = (PAD, START, EOS)


LEAST_VOCABULARY = 256 + len(SPECIAL) + len(TAGS)  # the bytes first


def make_tokenizer(
    texts: Iterable[str], vocab_size: int = 512
) -> PreTrainedTokenizerFast:
    """Byte-level BPE (Sennrich et al. 2016, arXiv 1508.07909) learned from `texts`.

    It starts from all 256 bytes, so it reads any text and gives it back unchanged.
    Every digit is a token of its own: then 12 and 123 share what the model knows of
    1 and 2. The four tags are one token each, but no special ones, so that decoding
    with skip_special_tokens=True leaves them for the rewards to see. `<|im_end|>`
    ends a message, `<|endoftext|>` pads, on the left. `vocab_size` is the most
    tokens there may be; few texts give fewer.
    Raises ValueError if that is below the bytes, the tags and the special tokens.
    """
    require_at_least("vocab_size", vocab_size, LEAST_VOCABULARY)
    bpe = learn_bpe(without_markup(texts), vocab_size - len(TAGS))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=EOS,
        pad_token=PAD,
        additional_special_tokens=[START],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.add_tokens(list(TAGS))
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def learn_bpe(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """All bytes, the special tokens, and the merges that shorten the texts most."""
    bpe = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(texts, trainer)
    return bpe


def without_markup(texts: Iterable[str]) -> Iterable[str]:
    """The texts without tags and special tokens: those are no words to learn."""
    for text in texts:
        for token in (*TAGS, *SPECIAL):
            text = text.replace(token, "\n")
        yield text


# --- language_model.tiny_model


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


# --- language_model.cache


class RoomyLayer(DynamicLayer):
    """Keys and values of one attention layer, with room for all tokens to come.

    The layer of transformers makes longer tensors for every token, and so copies all
    that was read before. Here a token is written behind the others; no gradient passes
    through that, so it is for sampling only.
    """

    def __init__(self, room: int):
        super().__init__()
        self.room = room  # tokens, those of the prompt included

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write [rows heads pos dim] behind what is there; returns all of it."""
        new = key_states, value_states
        if not self.is_initialized:
            self.lazy_initialization(*new)
            self.memory = [empty_room(states, self.room) for states in new]
        begin = self.get_seq_length()
        end = begin + key_states.shape[-2]
        for memory, states in zip(self.memory, new, strict=True):
            memory[:, :, begin:end] = states
        return self.show(end)

    def show(self, pos: int) -> tuple[Tensor, Tensor]:
        """So many tokens are there."""
        self.keys, self.values = (memory[:, :, :pos] for memory in self.memory)
        return self.keys, self.values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some of the rows, or repeat them; the room stays."""
        self.memory = [memory[indices] for memory in self.memory]
        self.show(self.get_seq_length())


def empty_room(states: Tensor, room: int) -> Tensor:
    """[rows heads pos dim] -> [rows heads room dim]"""
    rows, heads, _, dim = states.shape
    return states.new_empty(rows, heads, room, dim)


def roomy_cache(model: PreTrainedModel, room: int) -> Cache:
    """An empty cache for so many tokens a row."""
    return Cache([RoomyLayer(room) for _ in range(model.config.num_hidden_layers)])


# --- language_model.prefill


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


# --- language_model.log_probs


# Logits held at once: 16 million float32 numbers are 64 MB.
MOST_LOGITS = 2**24


def response_log_probs(
    model: PreTrainedModel,
    prompts: Tensor,
    responses: Tensor,
    sampler: Sampler,
    mask: Tensor | None = None,
    most_logits: int = MOST_LOGITS,
) -> Tensor:
    """Log-probability of each token of each response, in float32. [batch trial pos]

    int [batch pos] padded on the left and int [batch trial pos] in. Tokens outside
    `mask` score 0, and what lies behind the longest response is not read at all.
    Each different prompt is read once. Where the vocabulary is large, at most
    `most_logits` logits are held at a time: they are made again in the backward pass.
    Raises ValueError for prompts that do not fit the model.
    """
    require_axes("responses", responses, "batch trial pos")
    require_room(model, prompts, responses.shape[-1])
    batch, trial, pos = responses.shape
    if mask is None:
        mask = torch.ones_like(responses, dtype=torch.bool)
    mask = mask.flatten(0, 1)
    longest = max(1, int(mask.any(dim=0).sum()))  # 1: even where no token counts
    tokens, mask = responses.flatten(0, 1)[:, :longest], mask[:, :longest]
    hidden = hidden_states(model, prompts, tokens, sampler.pad)
    scores = chunked_log_probs(
        model.get_output_embeddings(), hidden[mask], tokens[mask], sampler, most_logits
    )
    out = scores.new_zeros(batch * trial, pos)
    out[:, :longest][mask] = scores
    return out.view(batch, trial, pos)


def hidden_states(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, pad: int | None
) -> Tensor:
    """What the model made of the text before each token. -> [rows pos dim]

    int [batch pos] and [(batch trial) pos] in. Gradients reach a prompt's keys and
    values from all of its responses, as if each had read the prompt for itself.
    """
    which = torch.arange(len(tokens), device=tokens.device)
    which = which // (len(tokens) // len(prompts))
    if model.training and model.is_activation_checkpointing:
        return hidden_states_of_rows(model, prompts[which], tokens, pad)
    unique, same = prompts.unique(dim=0, return_inverse=True)
    prefix = prefill(model, unique, pad)
    prefix.select(same[which])
    before = prefix.hidden[:, None]
    if tokens.shape[-1] == 1:
        return before
    return torch.cat([before, extend(model, prefix, tokens[:, :-1])], dim=1)


def hidden_states_of_rows(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, pad: int | None
) -> Tensor:
    """The same, each prompt read with its response: what recomputes keeps no cache.

    int [rows pos] and [rows pos] in.
    """
    real = real_tokens(prompts, pad)
    real = torch.cat([real, torch.ones_like(tokens[:, :-1], dtype=torch.bool)], dim=-1)
    out = model.base_model(
        input_ids=torch.cat([prompts, tokens[:, :-1]], dim=-1),
        attention_mask=attention_mask(real),
        position_ids=(real.long().cumsum(dim=-1) - 1).clamp(min=0),
        use_cache=False,
    )
    return out.last_hidden_state[:, prompts.shape[-1] - 1 :]


def chunked_log_probs(
    head: torch.nn.Module,
    hidden: Tensor,
    tokens: Tensor,
    sampler: Sampler,
    most_logits: int = MOST_LOGITS,
) -> Tensor:
    """The score of each token from the state before it. [rows dim] -> [rows]

    A chunk's logits are forgotten after the forward pass and made again in the
    backward pass (checkpointing: Chen et al. 2016, arXiv 1604.06174).
    """

    def scores(hidden: Tensor, tokens: Tensor) -> Tensor:
        return pick(sampler.log_probs(head(hidden), keep=tokens), tokens)

    rows = max(1, most_logits // head.get_parameter("weight").shape[0])
    if len(hidden) <= rows:
        return scores(hidden, tokens)
    pairs = zip(hidden.split(rows), tokens.split(rows), strict=True)
    return torch.cat([checkpoint(scores, *pair, use_reentrant=False) for pair in pairs])


# --- language_model.generation


# Dropping rows copies the cache of the others, so it waits until a quarter is done.
WORTH_DROPPING = 0.25


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    prompts: Tensor,
    num_responses: int,
    sampler: Sampler,
    generator: Generator | None = None,
    greedy: bool = False,
) -> tuple[Tensor, Tensor]:
    """Responses, int, and the log-probs noted on the way; both [batch trial pos].

    int [batch pos] in, padded on the left with `sampler.pad`. Each prompt is read
    once for its group. A response that has ended leaves the batch; after its EOS
    come `pad` tokens with log-probability 0. pos is always max_new_tokens.
    With greedy, the likeliest token at each step.
    Raises ValueError for prompts that do not fit the model.
    """
    require_at_least("num_responses", num_responses, 1)
    require_room(model, prompts, sampler.max_new_tokens)
    tokens = prompts.new_zeros(len(prompts) * num_responses, sampler.max_new_tokens)
    scores = torch.zeros(tokens.shape, device=prompts.device)
    choose = partial(draw, generator=generator, greedy=greedy)
    # Inference mode has less to do in each operation, but what is compiled fails in it.
    with torch.no_grad() if is_compiled(model) else torch.inference_mode():
        write(model, prompts, sampler, choose, tokens, scores)
    return blank_after_end(tokens, scores, sampler, num_responses)


def is_compiled(model: PreTrainedModel) -> bool:
    """Whether model.base_model.compile() was called."""
    return model.base_model._compiled_call_impl is not None


def write(
    model: PreTrainedModel,
    prompts: Tensor,
    sampler: Sampler,
    choose: Callable[[Tensor], Tensor],
    tokens: Tensor,
    scores: Tensor,
) -> None:
    """Fill in tokens and scores, [(batch trial) pos], one position after another."""
    cache = roomy_cache(model, prompts.shape[-1] + tokens.shape[-1])
    prefix = prefill(model, prompts, sampler.pad, cache)
    rows = torch.arange(len(tokens), device=tokens.device)  # that are not dropped
    prefix.select(rows // (len(tokens) // len(prompts)))
    for pos in range(tokens.shape[-1]):
        if pos > 0:
            rows = drop_ended(prefix, rows, sampler.finished(tokens[rows, :pos]))
            if len(rows) == 0:
                break
            extend(model, prefix, tokens[rows, pos - 1 : pos])
        log_probs = sampler.log_probs(model.get_output_embeddings()(prefix.hidden))
        token = choose(log_probs)
        tokens[rows, pos], scores[rows, pos] = token, pick(log_probs, token)


def drop_ended(prefix: Prefix, rows: Tensor, ended: Tensor | None) -> Tensor:
    """The rows that go on, if dropping the others is worth it. int, bool [rows]"""
    if ended is None:
        return rows
    left = (~ended).nonzero().squeeze(-1)
    if len(left) >= (1 - WORTH_DROPPING) * len(rows):
        return rows
    prefix.select(left)
    return rows[left]


def blank_after_end(
    tokens: Tensor, scores: Tensor, sampler: Sampler, trial: int
) -> tuple[Tensor, Tensor]:
    """What a row wrote while it waited to be dropped becomes padding.

    [(batch trial) pos] -> [batch trial pos]
    """
    mask = sampler.mask(tokens)
    if mask is not None and sampler.pad is not None:
        tokens = torch.where(mask, tokens, sampler.pad)
        scores = torch.where(mask, scores, 0.0)
    pattern = "(batch trial) pos -> batch trial pos"
    tokens = rearrange(tokens, pattern, trial=trial)
    return tokens, rearrange(scores, pattern, trial=trial)


# --- language_model.policy


class CausalPolicy:
    """Any causal LM with its sampler and its random numbers, as the loop wants it.

    It works where the model lies, CPU or GPU, and knows tokens only, no text. A deep
    copy of it is a frozen reference.

    Dropout is off in both methods. The old log-probs and the new ones must come from
    one and the same function of the weights: with dropout, the ratio of a policy to
    itself is far from 1, and clipping throws good samples away.

    Args:
        model: gives logits as its output embedding times its last hidden state. After
            `model.base_model.compile(dynamic=True)` (torch.compile; it needs a C++
            compiler) the same model is faster once it has run for a minute.
        sampler: how to write; scores follow the same settings.
        generator: random numbers on the model's device; None: torch's own.
        autocast: a dtype to multiply in, torch.bfloat16 on a GPU. The softmax stays
            in float32. None: the dtype of the weights.
        prompts_at_once: whose responses are scored in one forward pass where no
            gradient is asked for, as for a reference; None: all. With a gradient, the
            loop splits the batch itself.

    Raises ValueError for a model that does more to its logits, and for one that
    recomputes in the backward pass (gradient checkpointing) and has dropout.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sampler: Sampler,
        generator: Generator | None = None,
        autocast: torch.dtype | None = None,
        prompts_at_once: int | None = None,
    ):
        self.model, self.sampler, self.generator = model.eval(), sampler, generator
        self.autocast, self.prompts_at_once = autocast, prompts_at_once
        require_plain_head(model)

    def sample(self, prompts: Tensor, num_responses: int) -> Rollout:
        """int [batch pos], padded on the left -> responses [batch trial pos]"""
        self.model.eval()
        prompts = prompts.to(self.model.device)
        with self.precision():
            responses, noted = generate(
                self.model, prompts, num_responses, self.sampler, self.generator
            )
        mask, finished = self.sampler.mask(responses), self.sampler.finished(responses)
        return Rollout(prompts, responses, mask, noted, finished)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> float32 [batch trial pos], under the settings of the sampler"""
        # transformers recomputes in training mode only, so there is no other way.
        recompute = self.model.is_activation_checkpointing and torch.is_grad_enabled()
        if recompute:
            require_no_dropout(self.model)
        self.model.train(recompute)
        rows = len(rollout.prompts)
        most = rows if torch.is_grad_enabled() else self.prompts_at_once or rows
        columns = rollout.prompts, rollout.responses, rollout.mask
        parts = zip(*[in_parts(column, most, rows) for column in columns], strict=True)
        with self.precision():
            scores = [
                response_log_probs(self.model, prompts, responses, self.sampler, mask)
                for prompts, responses, mask in parts
            ]
        return torch.cat(scores)

    @torch.no_grad()
    def answer(self, prompts: Tensor) -> Tensor:
        """The greedy response to each prompt. int [batch pos] -> int [batch pos]"""
        self.model.eval()
        prompts = prompts.to(self.model.device)
        with self.precision():
            responses, _ = generate(self.model, prompts, 1, self.sampler, greedy=True)
        return responses[:, 0]

    def precision(self) -> AbstractContextManager:
        """Where the matrix products run in another dtype than the weights'."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.model.device.type, self.autocast)


def in_parts(column: Tensor | None, most: int, rows: int) -> Sequence[Tensor | None]:
    """A column of a rollout in parts of at most so many rows."""
    if column is None:
        return [None] * -(-rows // most)
    return column.split(most)


@torch.no_grad()
def require_plain_head(model: PreTrainedModel) -> None:
    """Check on two tokens that logits are the output embedding of the last state.

    Sampling and scoring go through both parts by hand, to make few logits at a time.
    """
    tokens = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    hidden = model.base_model(**given).last_hidden_state
    ours = model.get_output_embeddings()(hidden)
    theirs = model(**given).logits
    if ours.shape != theirs.shape or not torch.allclose(ours, theirs, atol=1e-3):
        raise ValueError(
            f"{type(model).__name__} does more to its logits than to multiply its "
            "last hidden state with its output embedding (a scale, a cap), so its "
            "scores would be wrong here. Qwen2, Llama and GPT-2 models do not."
        )


def require_learning(model: PreTrainedModel) -> None:
    """Check that a model that is to be trained is not frozen."""
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ValueError(
            "the model is frozen: none of its weights takes a gradient, so nothing "
            "can be learned. Call model.requires_grad_(True) first."
        )


def require_no_dropout(model: PreTrainedModel) -> None:
    """Check that training mode changes nothing but the recomputing."""
    on = [name for name, part in model.named_modules() if dropout_of(part)]
    if on:
        raise ValueError(
            "the model recomputes in the backward pass, which needs training mode, "
            f"and has dropout there (first in {on[0]}). Set the dropout to 0 in its "
            "config before making or loading it."
        )


def dropout_of(part: nn.Module) -> float:
    """The dropout rate of one module, 0 if it has none."""
    return (
        part.p
        if isinstance(part, nn.Dropout)
        else getattr(part, "attention_dropout", 0.0)
    )


# --- language_model.lora


ADAPTER = "adapter_config.json"  # what peft calls it, in a saved folder


SCALE = 2  # of what the adapter adds: alpha / rank


MARK = "lora_"  # in the names of its weights


def require_peft() -> ModuleType:
    """The peft package. Raises MissingExtra with the cure where it is not installed."""
    return require_extra("peft", "lora", "LoRA needs the package peft")


def has_adapter(path: str | Path) -> bool:
    """Whether a folder holds an adapter, not a whole model."""
    return (Path(path) / ADAPTER).is_file()


def require_whole_model(path: str | Path) -> None:
    """Check that a run can begin with a model: its reference is that model."""
    if has_adapter(path):
        raise ValueError(
            f"model={str(path)!r} holds an adapter and not a whole model. To train it "
            "further, merge the two and save them: AutoPeftModelForCausalLM"
            ".from_pretrained(...).merge_and_unload().save_pretrained(...)."
        )


def lora_config(rank: int) -> Any:
    """peft's settings for an adapter beside every linear layer but the last."""
    return require_peft().LoraConfig(
        r=rank, lora_alpha=SCALE * rank, target_modules="all-linear"
    )


def with_adapter(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """The model with an adapter that learns: a new one, unless it was loaded with one.

    A new one changes nothing yet. Its random numbers are torch's own.
    """
    if not hasattr(model, "peft_config"):
        model.add_adapter(lora_config(rank))
        base = str(model.name_or_path)
        whole = os.path.abspath(base) if os.path.isdir(base) else base
        model.peft_config["default"].base_model_name_or_path = whole
    for name, weight in model.named_parameters():
        weight.requires_grad_(MARK in name)
    return model


class LoraPolicy(CausalPolicy):
    """A model with an adapter, as a policy. What the loop copies is its reference."""

    def __deepcopy__(self, memo: dict) -> "AdapterOff":
        return AdapterOff(self)


class AdapterOff:
    """The frozen reference of a policy with an adapter: the same model without it."""

    def __init__(self, policy: LoraPolicy):
        self.policy = policy

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> float32 [batch trial pos], as the policy's"""
        self.policy.model.disable_adapters()
        try:
            return self.policy.log_probs(rollout)
        finally:
            self.policy.model.enable_adapters()


# --- language_model.pretrained


HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")


# For a base model that knows no roles: the messages, one below the other.
PLAIN_TEMPLATE = "{% for m in messages %}{{ m['content'] }}\n\n{% endfor %}"


def device_name(name: str) -> str:
    """ "auto", or what torch takes for a device."""
    if name != "auto":
        try:
            torch.device(name)
        except RuntimeError:
            raise ValueError(
                'is no device. Choose "auto", which takes a GPU if there is one, '
                '"cpu" or "cuda".'
            ) from None
    return name


def find_device(name: str) -> str:
    """ "auto" is a GPU if there is one. Raises ValueError for what cannot be used."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].partition(". ")[0].rstrip(".")
        raise ValueError(
            f"device={name!r} cannot be used on this machine ({reason}). Choose "
            '"auto", which takes a GPU if there is one, or "cpu".'
        ) from None
    return name


def load_model(path: str | Path, device: str = "cpu") -> PreTrainedModel:
    """The model with float32 weights, in evaluation mode.

    The weights lie in memory of their own, not in the mapped file: where a tensor
    begins decides how its products are rounded, and a resumed run must round alike.
    """
    require_source(path)
    logging.disable_progress_bar()  # a bar a file would tear the bar of the run
    with told_plainly(path):
        model = AutoModelForCausalLM.from_pretrained(
            str(path), dtype=torch.float32, trust_remote_code=False
        )
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    model.to(device)  # type: ignore[arg-type]  # its decorator hides `self`
    return model.eval()


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer, with padding on the left, a padding token and a chat template."""
    require_source(path)
    with told_plainly(path):
        tokenizer = AutoTokenizer.from_pretrained(str(path), trust_remote_code=False)
    tokenizer.padding_side = "left"
    if tokenizer.eos_token is None:
        raise ValueError(f"The tokenizer of {path} has no EOS: no response would end.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    return tokenizer


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write both as `from_pretrained` reads them; the weights as safetensors."""
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_shape(path: str | Path) -> PretrainedConfig:
    """The shape of a model, without its weights."""
    require_source(path)
    with told_plainly(path):
        return AutoConfig.from_pretrained(str(path), trust_remote_code=False)


def require_source(path: str | Path) -> None:
    """Check that a model can be there: a folder with config.json, or a hub name."""
    folder = Path(path)
    if folder.is_dir():
        if has_adapter(folder):
            require_peft()
        elif not (folder / "config.json").is_file():
            found = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
            raise FileNotFoundError(
                f"model={str(path)!r} has no config.json, so it is not the folder of a "
                f"model; it holds: {found}. Pass a folder written by save_pretrained."
            )
    elif folder.exists() or not HUB_NAME.fullmatch(str(path)):
        raise FileNotFoundError(
            f"model={str(path)!r} is no folder, and no name on the hub either. Pass a "
            "folder written by save_pretrained, or a name like "
            "Qwen/Qwen2.5-0.5B-Instruct."
        )


@contextmanager
def told_plainly(path: str | Path) -> Iterator[None]:
    """Turn what transformers raises for a broken source into one clear error."""
    try:
        yield
    except Exception as error:  # safetensors has a class of its own, too
        local = Path(path).is_dir()
        reason = " ".join(str(error).split())[:300]
        cure = (
            "Copy it again, or save it again with save_pretrained."
            if local
            else "Without a network, pass a folder: --model PATH."
        )
        raise ValueError(
            f"model={str(path)!r} could not be loaded ({type(error).__name__}: "
            f"{reason}). {cure}"
        ) from error


# --- language_model.probe


# The mean over tokens that rounding explains, in nats. Measured on CPUs with models of
# up to 24 layers: at most 5e-6 in float32, and 0.032 in bfloat16, which has 8 bits.
# There, single tokens differed by up to 0.19.
EXPECTED = {None: 1e-4, torch.bfloat16: 0.05}


@torch.no_grad()
def sampler_gap(
    policy: CausalPolicy, prompts: Tensor, num_responses: int = 2
) -> Tensor:
    """How far the score of each sampled token is from what the sampler noted. [token]

    int [batch pos] in. In nats. Random numbers are the probe's own.
    """
    generator = Generator(policy.model.device).manual_seed(0)
    writer = CausalPolicy(policy.model, policy.sampler, generator, policy.autocast)
    rollout = writer.sample(prompts, num_responses)
    assert rollout.sampled_log_probs is not None
    gaps = (writer.log_probs(rollout) - rollout.sampled_log_probs).abs()
    return gaps.flatten() if rollout.mask is None else gaps[rollout.mask]


def probe_line(policy: CausalPolicy, prompts: Tensor) -> str:
    """The gap beside what rounding explains, in words."""
    gaps, expected = sampler_gap(policy, prompts), EXPECTED[policy.autocast]
    dtype = "float32" if policy.autocast is None else "bfloat16"
    told = (
        f"Scores differ from what the sampler noted by {gaps.mean():.2g} nats a token, "
        f"{gaps.max():.2g} at most; rounding in {dtype} explains {expected:g}."
    )
    if gaps.mean() <= expected:
        return told
    cure = "" if policy.autocast is None else " Try --dtype float32."
    return f"{told} This is more: the gradient would be of another policy.{cure}"
