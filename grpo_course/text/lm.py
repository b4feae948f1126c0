"""Any causal language model as a policy: it writes responses and scores them.

From top to bottom: a tokenizer and a tiny random model for those who have none; how a
prompt is read once for all responses to it; scores, with their gradients; the sampler;
then `CausalPolicy`, which puts these together for the loop. At the end: adapters
(LoRA), models on disk, and the probe that compares sampler and scorer.

Reading a prompt once is what makes this fast. It takes two things for granted: what a
model keeps of a text are keys and values, and its logits are its output embedding
times its last hidden state. That holds for Qwen2, Llama, GPT-2 and most others.
`CausalPolicy` tries it out on a few tokens, and once more before the first text that is
longer than a window or whatever else begins at a length. A model that is of another
kind (a scale or a cap on the logits, a recurrent state) takes the slow road: its own
`generate` and its own forward pass over each text, without padding. One printed line
says so. Where that road is wrong, too, the model is refused.

Left out: text, which is the business of `tasks.py`; beam search; several devices.
"""

import copy
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Generator, Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    GenerationConfig,
    LogitsProcessorList,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

from grpo_course import install
from grpo_course.checks import (
    require_at_least,
    require_axes,
    require_extra,
    unknown_name,
)
from grpo_course.files import PARSING, read_text
from grpo_course.long_work import counted
from grpo_course.loop import Rollout
from grpo_course.sampling import (
    Sampler,
    draw,
    is_end,
    pad_rows,
    pick,
    prompt_mask,
    response_mask,
    unpad_rows,
    up_to_last,
)
from grpo_course.text.tasks import (
    CHAT_TEMPLATE,
    TAGS,
    plain_template,
    prompt_text,
    turn_end,
)

PAD, START, EOS = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL = (PAD, START, EOS)
LEAST_VOCABULARY = 256 + len(SPECIAL) + len(TAGS)  # the bytes first
MODELS = ("qwen2", "llama", "gpt2")  # of which a tiny one can be made
# Logits held at once: 16 million float32 numbers are 64 MB.
MOST_LOGITS = 2**24
WORK = "Qwen2 and 3, Llama, Gemma, Phi, SmolLM, OLMo, Granite"
FOR_LORA = "lora", "LoRA needs the package peft"
# Dropping rows copies the cache of the others, so it waits until a quarter is done.
WORTH_DROPPING = 0.25


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
    bpe = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    words = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(TAGS),
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    markup = re.compile("|".join(map(re.escape, (*TAGS, *SPECIAL))))  # no words
    bpe.train_from_iterator((markup.sub("\n", text) for text in texts), trainer)
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


def text_config(
    model_or_config: PreTrainedModel | PretrainedConfig,
) -> PretrainedConfig:
    """The config of the part that reads and writes text; most models have no other.

    In a model that also sees or hears, as in Gemma 3 and 4, window, layers, positions
    and vocabulary stand in an inner config.
    """
    config = getattr(model_or_config, "config", model_or_config)
    return config.get_text_config(decoder=True)


def tiny_config(
    architecture: str, hidden: int, layers: int, heads: int, context: int, **tokens: Any
) -> PretrainedConfig:
    """The config of a model with those sizes, for a vocabulary that `tokens` tells.

    Input and output share one embedding; no dropout.
    Raises ValueError for an architecture that is not one of MODELS.
    """
    if architecture not in MODELS:
        raise unknown_name("architecture", architecture, MODELS)
    if architecture == "gpt2":  # has dropout unless told otherwise
        more: dict = dict.fromkeys(["resid_pdrop", "embd_pdrop", "attn_pdrop"], 0.0)
    else:
        more = {"num_key_value_heads": heads, "intermediate_size": 3 * hidden}
    return AutoConfig.for_model(
        architecture,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=context,
        bos_token_id=None,
        tie_word_embeddings=True,
        **more,
        **tokens,
    )


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
    each. The weights depend on `seed` alone, and torch's own random numbers are left
    as they were. Raises ValueError for an architecture that is not one of MODELS.
    """
    sizes = hidden_size, num_layers, num_heads, context_length
    names = {
        name: getattr(tokenizer, name) for name in ("eos_token_id", "pad_token_id")
    }
    config = tiny_config(architecture, *sizes, vocab_size=len(tokenizer), **names)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config).eval()


# --- A prompt is read once for all responses to it


class Prefix:
    """Where the model stands after its prompts, one row for each response to come.

    Reads int [rows pos], padded on the left. A token's position is its place among the
    real ones: padding moves nothing.
    """

    def __init__(self, model: PreTrainedModel, prompts: Tensor, pad: int | None):
        self.model = model
        self.cache = DynamicCache()  # keys and values of what was read
        self.real = real_tokens(prompts, pad)
        self.padded, place = not bool(self.real.all()), self.real.long().cumsum(dim=-1)
        self.position = place[:, -1:]  # int [rows 1], of the token to come
        mask = self.real.long() if self.padded else None  # None is faster
        # [rows dim], of the last token read
        self.hidden = self.read(prompts, mask, (place - 1).clamp(min=0))[:, -1]
        # One token's mask, bool [rows 1 1 pos], may be made for it. transformers would
        # make the same one from the padding, which takes it longer than a small model
        # takes to read the token. It is the same if no window moves along.
        config = text_config(model)
        windows = [getattr(config, f, None) for f in ("sliding_window", "layer_types")]
        plain = windows[0] is None and {*(windows[1] or ())} <= {"full_attention"}
        how = getattr(config, "_attn_implementation", None)
        self.ready_mask = plain and how == "sdpa"

    def read(self, tokens: Tensor, mask: Tensor | None, position: Tensor) -> Tensor:
        """int [rows pos] -> hidden states [rows pos dim]"""
        out = self.model.base_model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=position,
            past_key_values=self.cache,
            use_cache=True,
        )
        return out.last_hidden_state

    def extend(self, tokens: Tensor) -> Tensor:
        """Read further tokens, int [rows pos] -> hidden states [rows pos dim].

        None may be padding, unless nothing that counts follows it.
        """
        self.real = torch.cat([self.real, torch.ones_like(tokens).bool()], dim=-1)
        mask = self.real.long() if self.padded else None
        if self.padded and tokens.shape[-1] == 1 and self.ready_mask:
            mask = self.real[:, None, None]
        steps = torch.arange(tokens.shape[-1], device=tokens.device)
        states = self.read(tokens, mask, self.position + steps)
        self.position, self.hidden = self.position + len(steps), states[:, -1]
        return states

    def select(self, rows: Tensor) -> None:
        """Keep some of the rows, or repeat them. int [chosen]"""
        self.cache.batch_select_indices(rows)
        self.hidden, self.real = self.hidden[rows], self.real[rows]
        self.position = self.position[rows]


def real_tokens(prompts: Tensor, pad: int | None) -> Tensor:
    """False on the padding in front. int [rows pos] -> bool [rows pos]"""
    if pad is None:
        return torch.ones_like(prompts, dtype=torch.bool)
    return prompt_mask(prompts, pad)


def hidden_states(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, pad: int | None
) -> Tensor:
    """What the model made of the text before each token. -> [rows pos dim]

    int [batch pos] and [(batch trial) pos] in. Gradients reach a prompt's keys and
    values from all of its responses, as if each had read the prompt for itself. What
    recomputes in the backward pass keeps no cache: each response reads its own prompt.
    """
    which = torch.arange(len(tokens), device=tokens.device)
    which = which // (len(tokens) // len(prompts))
    if model.training and recomputes(model):
        texts = torch.cat([prompts[which], tokens[:, :-1]], dim=-1)
        real = torch.ones_like(texts, dtype=torch.bool)
        real[:, : prompts.shape[-1]] = real_tokens(prompts, pad)[which]
        out = model.base_model(
            input_ids=texts,
            attention_mask=None if real.all() else real.long(),
            position_ids=(real.long().cumsum(dim=-1) - 1).clamp(min=0),
            use_cache=False,
        )
        return out.last_hidden_state[:, prompts.shape[-1] - 1 :]
    unique, same = prompts.unique(dim=0, return_inverse=True)
    prefix = Prefix(model, unique, pad)
    prefix.select(same[which])
    before = prefix.hidden[:, None]
    if tokens.shape[-1] == 1:
        return before
    return torch.cat([before, prefix.extend(tokens[:, :-1])], dim=1)


def make_recompute(model: PreTrainedModel) -> None:
    """Turn gradient checkpointing on, by the name that this version gives it."""
    names = "activation_checkpointing_enable", "gradient_checkpointing_enable"
    enable = next(getattr(model, name) for name in names if hasattr(model, name))
    enable({"use_reentrant": False})


def recomputes(model: PreTrainedModel) -> bool:
    """Whether gradient checkpointing is on; each version calls the question anew."""
    return any(getattr(m, "gradient_checkpointing", False) for m in model.modules())


# --- Scores


def most_positions(model: PreTrainedModel) -> int | None:
    """How many tokens a text may have; None where the model does not say."""
    return getattr(text_config(model), "max_position_embeddings", None)


def require_room(model: PreTrainedModel, prompts: Tensor, num_new_tokens: int) -> None:
    """Check that prompt and response fit the positions that the model knows."""
    require_axes("prompts", prompts, "batch pos")
    length = prompts.shape[-1]
    room = most_positions(model)
    if room is not None and length + num_new_tokens > room:
        raise ValueError(
            f"prompts has {length} tokens a row and the response {num_new_tokens}, but "
            f"the model knows {room} positions. Shorten the prompts, ask for fewer new "
            "tokens (max_new_tokens), or make the model with a larger context_length."
        )


def response_log_probs(
    model: PreTrainedModel,
    prompts: Tensor,
    responses: Tensor,
    sampler: Sampler,
    mask: Tensor | None = None,
    most_logits: int = MOST_LOGITS,
    read_once: bool = True,
) -> Tensor:
    """Log-probability of each token of each response, in float32. [batch trial pos]

    int [batch pos] padded on the left and int [batch trial pos] in. Tokens outside
    `mask` score 0, and what lies behind the longest response is not read at all.
    Each different prompt is read once. Where the vocabulary is large, at most
    `most_logits` logits are held at a time: they are made again in the backward pass.
    Without `read_once` the model's own forward pass reads each text, on any model.
    Raises ValueError for prompts that do not fit the model.
    """
    require_axes("responses", responses, "batch trial pos")
    require_room(model, prompts, responses.shape[-1])
    batch, trial, pos = responses.shape
    if mask is None:
        mask = torch.ones_like(responses, dtype=torch.bool)
    mask = mask.flatten(0, 1)
    longest = int(up_to_last(mask.any(dim=0)).sum())
    longest = max(1, longest)  # even where no token counts
    tokens, mask = responses.flatten(0, 1)[:, :longest], mask[:, :longest]
    if read_once:
        hidden = hidden_states(model, prompts, tokens, sampler.pad)[mask]
        head = model.get_output_embeddings()
        scores = chunked_log_probs(head, hidden, tokens[mask], sampler, most_logits)
    else:
        scores = text_log_probs(model, prompts, tokens, sampler)[mask]
    out = scores.new_zeros(batch * trial, pos)
    out[:, :longest][mask] = scores
    return out.view(batch, trial, pos)


def chunked_log_probs(
    head: nn.Module,
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


def text_log_probs(
    model: PreTrainedModel, prompts: Tensor, tokens: Tensor, sampler: Sampler
) -> Tensor:
    """The slow road: one forward pass over prompts and responses. -> [rows pos]

    int [batch pos] and [(batch trial) pos] in.
    """
    parts, order = [], []
    for which, own in of_one_length(prompts, sampler.pad, len(tokens) // len(prompts)):
        texts = torch.cat([own, tokens[which]], dim=-1)
        every = torch.ones_like(texts)
        out = model(input_ids=texts, attention_mask=every, use_cache=False)
        logits = out.logits[:, own.shape[-1] - 1 : -1]
        parts.append(sampler.token_log_probs(logits, tokens[which]))
        order.append(which)
    return torch.cat(parts)[torch.cat(order).argsort()]


def of_one_length(
    prompts: Tensor, pad: int | None, trial: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Prompts without their padding, those of one length at a time, a row a response.

    How a model treats padding is its own affair, and recurrent ones see it.
    int [batch pos] -> pairs of int [rows], which of [(batch trial)], and int [rows pos]
    """
    lengths = real_tokens(prompts, pad).sum(dim=-1).repeat_interleave(trial)
    for length in lengths.unique().tolist():
        which = (lengths == length).nonzero().squeeze(-1)
        yield which, prompts[which // trial, prompts.shape[-1] - length :]


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
    Raises ValueError for prompts that do not fit the model.
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
Tool = Callable[[list[int]], list[int]]  # the tokens of a turn -> its own


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

    Its own settings are put aside meanwhile: a repetition penalty that somebody saved
    with the model would change what is sampled from, and not what is scored.
    """

    places = range(sampler.max_new_tokens)
    written = iter(counted(places, f"sampling {len(rows)} responses", "token"))

    def only_ours(texts: Tensor, logits: Tensor) -> Tensor:
        next(written, None)
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

    Without gradients autocast remembers no weight that it cast, so each token would
    cast all of them anew. The numbers are the same. None: nothing is cast.
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


# --- The policy


class CausalPolicy:
    """Any causal LM with its sampler and its random numbers, as the loop wants it.

    It works where the model lies, CPU or GPU, and knows tokens only, no text. A deep
    copy of it is a frozen reference.

    Dropout is off in both methods. The old log-probs and the new ones must come from
    one and the same function of the weights: with dropout, the ratio of a policy to
    itself is far from 1, and clipping throws good samples away. So scoring raises
    ValueError for a model that has dropout and recomputes in the backward pass.

    Args:
        model: any causal LM of transformers. Where reading a prompt once for its group
            would be wrong, a printed line says why, and the slow road is taken. After
            `model.base_model.compile(dynamic=True)` (torch.compile; it needs a C++
            compiler) the same model is faster once it has run for a minute.
        sampler: how to write; scores follow the same settings.
        generator: random numbers on the model's device; None: torch's own.
        autocast: a dtype to multiply in, torch.bfloat16 on a GPU. The softmax stays
            in float32. None: the dtype of the weights.
        prompts_at_once: whose responses are scored in one forward pass where no
            gradient is asked for, as for a reference; None: all. With a gradient, the
            loop splits the batch itself.
        tool: what it writes behind a turn that has ended, from the tokens of that turn
            to its own; none, and the response ends there. None: there is no tool.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sampler: Sampler,
        generator: Generator | None = None,
        autocast: torch.dtype | None = None,
        prompts_at_once: int | None = None,
        tool: Tool | None = None,
    ):
        self.model, self.sampler, self.generator = model.eval(), sampler, generator
        self.autocast, self.prompts_at_once = autocast, prompts_at_once
        if tool is not None and sampler.eos is None:
            raise ValueError(
                "tool writes where a turn has ended, and none ever does: the sampler "
                "has no eos. Give it one."
            )
        self.tool, self.read_once = tool, True
        self.untried = lengths_that_change(model)
        self.take_road()

    def take_road(self, begins: int = 0, until: int = 0) -> None:
        """Take the slow road if need be, and say why; see `why_not_read_once`."""
        self.model.eval()
        road = begins, until, self.read_once
        if (why := why_not_read_once(self.model, self.sampler.pad, *road)) is None:
            return
        self.read_once = False
        print(
            f"{type(self.model).__name__}: each response reads its own prompt, with "
            "the model's generate() and forward pass, which is slower. A prompt cannot "
            f"be read once for its group here: {why}."
        )

    def try_length(self, length: int) -> None:
        """Try out whatever begins at a length before texts of so many tokens.

        Once for each such length. This takes less than one update with such texts.
        Raises ValueError where sampler and scorer cannot agree beyond it.
        """
        while len(self.untried) > 1 and self.untried[0] < length:
            self.take_road(*self.untried[:2])
            self.untried = self.untried[1:]

    def sample(
        self, prompts: Tensor, num_responses: int, greedy: bool = False
    ) -> Rollout:
        """int [batch pos], padded on the left -> responses [batch trial pos]

        With greedy, the likeliest token at each step.
        """
        if self.tool is not None:
            return take_turns(self, prompts, num_responses, self.tool, greedy)
        tokens, noted = self.write(prompts, num_responses, greedy, self.sampler)
        mask, finished = self.sampler.mask(tokens), self.sampler.finished(tokens)
        return Rollout(prompts.to(tokens.device), tokens, mask, noted, finished)

    def write(
        self, prompts: Tensor, num_responses: int, greedy: bool, sampler: Sampler
    ) -> tuple[Tensor, Tensor]:
        """Responses and the log-probs noted on the way, as `generate` gives them."""
        self.try_length(prompts.shape[-1] + sampler.max_new_tokens)
        self.model.eval()
        prompts, how = prompts.to(self.model.device), (sampler, self.generator)
        with self.precision(), cast_once(self.model, self.autocast):
            road = greedy, self.read_once
            return generate(self.model, prompts, num_responses, *how, *road)

    def log_probs(self, rollout: Rollout) -> Tensor:
        """-> float32 [batch trial pos], under the settings of the sampler"""
        self.try_length(rollout.prompts.shape[-1] + rollout.responses.shape[-1])
        # transformers recomputes in training mode only, so there is no other way.
        recompute = torch.is_grad_enabled() and recomputes(self.model)
        if recompute:
            require_no_dropout(self.model)
        self.model.train(recompute)
        rows, scores = len(rollout.prompts), []
        score = partial(response_log_probs, read_once=self.read_once)
        most = rows if torch.is_grad_enabled() else self.prompts_at_once or rows
        with self.precision():
            for first in counted(range(0, rows, most), "scoring", "part"):
                part = slice(first, first + most)
                given = rollout.prompts[part], rollout.responses[part], self.sampler
                mask = None if rollout.mask is None else rollout.mask[part]
                scores.append(score(self.model, *given, mask))
        return torch.cat(scores)

    def precision(self) -> AbstractContextManager:
        """Where the matrix products run in another dtype than the weights'."""
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(self.model.device.type, self.autocast)


def take_turns(
    policy: CausalPolicy, prompts: Tensor, num_responses: int, tool: Tool, greedy: bool
) -> Rollout:
    """Responses in which a tool has its say, as one text each with holes in its mask.

    A turn of the policy's ends as any response does. Where the tool then writes, the
    policy reads that and goes on, and `max_new_tokens` holds for all of it together.
    """
    sampler, device = policy.sampler, policy.model.device
    width, eos, pad = sampler.max_new_tokens, sampler.eos, sampler.pad
    assert eos is not None and pad is not None  # see CausalPolicy
    shape = len(prompts), num_responses
    read = [row for row in unpad_rows(prompts, pad) for _ in range(num_responses)]
    said: list[list[int]] = [[] for _ in read]  # by both
    began = [0] * len(said)  # where the turn did that is being written
    tokens = torch.full((len(said), width), pad, device=device)
    noted = torch.zeros_like(tokens, dtype=torch.float32)
    mask = torch.zeros_like(tokens, dtype=torch.bool)
    finished, waiting = mask[:, 0].clone(), [*range(len(said))]
    while waiting:
        # Who has written most has least room left: then the others go on.
        room = width - max(len(said[row]) for row in waiting)
        if room == width:  # at first, when a prompt is read once for its group
            made = policy.write(prompts, num_responses, greedy, sampler)
        else:
            texts = pad_rows([read[row] + said[row] for row in waiting], pad)
            some = replace(sampler, max_new_tokens=room)
            made = policy.write(texts, 1, greedy, some)
        turns, scores = (x.flatten(0, 1) for x in made)
        lengths = response_mask(turns, eos).sum(dim=-1).tolist()
        ends = is_end(turns, eos).any(dim=-1)
        for i, row in enumerate(waiting):
            own = slice(len(said[row]), len(said[row]) + lengths[i])
            mask[row, own], noted[row, own] = True, scores[i, : lengths[i]]
            said[row] += turns[i, : lengths[i]].tolist()
            if ends[i]:
                reply = tool(said[row][began[row] :])
                said[row] += reply
                finished[row], began[row] = not reply, len(said[row])
        waiting = [
            row for row in waiting if not finished[row] and len(said[row]) < width
        ]
    for row, text in enumerate(said):
        tokens[row, : len(text)] = torch.tensor(text[:width], device=device)
    columns = (x.unflatten(0, shape) for x in (tokens, mask, noted, finished))
    return Rollout(prompts.to(device), *columns)


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
        how = sampler, noise, False, read_once
        tokens, noted = generate(model, prompts, 1 if begins else 2, *how)
        given = model, prompts, tokens, sampler
        alone = response_log_probs(*given, read_once=False)
        gap = torch.stack([noted, response_log_probs(*given, read_once=read_once)])
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


def require_learning(model: PreTrainedModel) -> None:
    """Check that a model that is to be trained is not frozen."""
    if not any(weight.requires_grad for weight in model.parameters()):
        raise ValueError(
            "the model is frozen: none of its weights takes a gradient, so nothing "
            "can be learned. Call model.requires_grad_(True) first."
        )


def require_no_dropout(model: PreTrainedModel) -> None:
    """Check that training mode changes nothing but the recomputing."""
    for name, part in model.named_modules():
        rate = part.p if isinstance(part, nn.Dropout) else 0.0
        if rate or getattr(part, "attention_dropout", 0.0):
            raise ValueError(
                "the model recomputes in the backward pass, which needs training mode, "
                f"and has dropout there (first in {name}). Set the dropout to 0 in its "
                "config before making or loading it."
            )


# --- Adapters (LoRA: Hu et al. 2021, arXiv 2106.09685), with the package peft


def has_adapter(path: str | Path) -> bool:
    """Whether a folder holds an adapter, not a whole model."""
    return (Path(path) / "adapter_config.json").is_file()


def whole_model(path: str | Path) -> str:
    """The model itself, or the one that an adapter stands beside, as it was noted.

    Where that folder is gone, the model that the run beside the adapter names is taken.
    Raises FileNotFoundError where neither is there, ValueError for what is no JSON.
    """

    def said(file: Path, key: str) -> str:
        try:
            return str(json.loads(read_text(file)).get(key) or "")
        except PARSING as error:
            raise ValueError(
                f"{file} is not what was written ({error}). Copy it again."
            ) from None

    if not has_adapter(path):
        return str(path)
    noted = Path(path, "adapter_config.json")
    name = said(noted, "base_model_name_or_path")
    names = [name]
    if (run := Path(path, "grpo_config.json")).is_file():  # in the words of its user
        names.append(said(run, "model"))
    there = [each for each in names if Path(each, "config.json").is_file()]
    if there or is_hub_name(name):
        return [*there, name][0]
    raise FileNotFoundError(
        f"model={str(path)!r} holds an adapter beside the model {name!r}, which is not "
        'there any more. Put it back, or write its new place behind "base_model_name_or'
        f'_path" in {noted}.'
    )


def require_whole_model(path: str | Path) -> None:
    """Check that a run can begin with a model: its reference is that model."""
    if has_adapter(path):
        raise ValueError(
            f"model={str(path)!r} holds an adapter and not a whole model. To train it "
            f"further, merge the two, then pass --model {MERGED}: {merging(path)}"
        )


MERGED = "merged"


def merging(path: str | Path) -> str:
    """The command that writes a model and its adapter as one, to be pasted."""
    given = ", ".join(json.dumps(each) for each in (Path(path).as_posix(), MERGED))
    work = f"from grpo_course.text.lm import merge_adapter; merge_adapter({given})"
    return install.quoted(sys.executable, "-c", work)


def merge_adapter(path: str | Path, folder: str | Path) -> None:
    """Write an adapter and its model as one model, with its tokenizer, into a folder.

    Raises FileExistsError where there is something already.
    """
    peft = require_extra("peft", *FOR_LORA)
    if Path(folder).exists():
        raise FileExistsError(f"{folder} is there already. Name another folder.")
    model = peft.PeftModel.from_pretrained(load_model(whole_model(path)), str(path))
    save_model(model.merge_and_unload(), load_tokenizer(path), Path(folder))


def lora_config(rank: int) -> Any:
    """peft's settings for an adapter beside every linear layer but the last."""
    peft = require_extra("peft", *FOR_LORA)
    return peft.LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",  # by which peft's AutoPeftModelForCausalLM finds it
    )


def lasting(name: str) -> str:
    """A model's name as it holds in any folder: a path from the root, or a hub name."""
    return os.path.abspath(name) if os.path.isdir(name) else name


def with_adapter(model: PreTrainedModel, rank: int) -> PreTrainedModel:
    """The model with an adapter that learns: a new one, unless it was loaded with one.

    A new one changes nothing yet. Its random numbers are torch's own.
    """
    if not hasattr(model, "peft_config"):
        model.add_adapter(lora_config(rank))
        base = lasting(str(model.name_or_path))
        model.peft_config["default"].base_model_name_or_path = base
    for name, weight in model.named_parameters():
        weight.requires_grad_("lora_" in name)
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


# --- Models on disk, or on the hub


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
    logging.disable_progress_bar()  # a bar a file would tear the bar of the run
    whole = whole_model(path)
    load_shape(whole)  # refuses what is no causal language model
    with loading(whole):
        model = AutoModelForCausalLM.from_pretrained(
            whole, dtype=torch.float32, trust_remote_code=False
        )
    if has_adapter(path):
        with loading(path):
            model.load_adapter(str(path))
        model.peft_config["default"].base_model_name_or_path = lasting(whole)
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    model.to(device)
    return model.eval()


# Files that hold the words of a tokenizer, by their names in transformers.
VOCABULARY = re.compile(r"^tokenizer\.json$|^vocab|\.model$|spiece|tekken|\.tiktoken$")


def load_tokenizer(path: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer, with padding on the left, a padding token and a chat template.

    Raises ValueError for a model without one, or without an end of a text.
    """
    folder = Path(path)
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    try:
        with loading(path):
            tokenizer = AutoTokenizer.from_pretrained(
                str(path), trust_remote_code=False
            )
        # Without its files transformers makes one that reads nothing, or fails.
        read = {*tokenizer("a 1", add_special_tokens=False)["input_ids"]}
        reads = not read <= {tokenizer.unk_token_id}
    except ValueError:
        if not names or any(map(VOCABULARY.search, names)):
            raise
        reads = False
    if not reads and not any(map(VOCABULARY.search, names)):
        origin = whole_model(path) if has_adapter(path) else "OWNER/MODEL"
        copying = (
            "from transformers import AutoTokenizer; AutoTokenizer.from_pretrained"
            f"({json.dumps(origin)}).save_pretrained({json.dumps(folder.as_posix())})"
        )
        raise ValueError(
            f"model={str(path)!r} has no tokenizer. Put that of the model that it was "
            "made from beside it; instead of OWNER/MODEL, give the name or the folder "
            f"of that model: {install.quoted(sys.executable, '-c', copying)}"
        )
    tokenizer.padding_side = "left"
    if tokenizer.eos_token is None:
        raise ValueError(f"The tokenizer of {path} has no EOS: no response would end.")
    if tokenizer.chat_template is None:
        tokenizer.chat_template = plain_template(tokenizer)
    # A prompt's own first token would be taken for padding, were it the same one.
    text = prompt_text(tokenizer, "?", None)
    first = tokenizer(text, add_special_tokens=False)["input_ids"][:1]
    own = [tokenizer.pad_token or tokenizer.eos_token, *tokenizer.all_special_tokens]
    pads = [t for t in own if [tokenizer.convert_tokens_to_ids(t)] != first]
    if not pads:
        raise ValueError(
            f"The tokenizer of {path} begins every prompt with {own[0]!r} and has no "
            "other token to pad with. Give it one: tokenizer.pad_token = '<unk>', say."
        )
    if tokenizer.pad_token != pads[0]:
        tokenizer.pad_token = pads[0]
    return tokenizer


def turn_ends(
    generation: GenerationConfig | None, tokenizer: PreTrainedTokenizerBase
) -> tuple[int, ...]:
    """Every token that ends a response: EOS, what `generate` of the model stops at,
    and what the chat template writes behind an answer.
    """
    listed = getattr(generation, "eos_token_id", None)
    several = listed if isinstance(listed, list | tuple) else [listed]
    ends = [tokenizer.eos_token_id, turn_end(tokenizer), *several]
    return tuple(dict.fromkeys(end for end in ends if end is not None))


def load_shape(path: str | Path) -> PretrainedConfig:
    """The shape of a model, or of the one beside an adapter, without its weights.

    Raises ValueError for a model that is no causal language model.
    """
    whole = whole_model(path)
    with loading(whole):
        config = AutoConfig.from_pretrained(whole, trust_remote_code=False)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ValueError(
            f"model={str(path)!r} is of the type {config.model_type!r}, which "
            "transformers does not load as a causal language model. Choose another "
            f"model: {WORK} hold."
        )
    return config


def load_generation(path: str | Path) -> GenerationConfig:
    """How a model is to be sampled from, without its weights."""
    shape = load_shape(path)
    try:
        return GenerationConfig.from_pretrained(str(path))
    except OSError:  # it has none: it is as the shape says
        return GenerationConfig.from_model_config(shape)


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> None:
    """Write both as `from_pretrained` reads them; the weights as safetensors."""
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def is_hub_name(name: str) -> bool:
    """Whether a name may be one on the hub, OWNER/MODEL."""
    return bool(re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name))


@contextmanager
def loading(path: str | Path) -> Iterator[None]:
    """A folder with config.json or a name on the hub; what fails is told in one error.

    Raises FileNotFoundError for what is neither, ValueError where transformers fails.
    """
    folder = Path(path)
    if folder.is_dir():
        if has_adapter(folder):
            require_extra("peft", *FOR_LORA)
        elif not (folder / "config.json").is_file():
            found = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
            raise FileNotFoundError(
                f"model={str(path)!r} has no config.json, so it is not the folder of a "
                f"model; it holds: {found}. Pass a folder written by save_pretrained."
            )
        cure = "Copy it again, or save it again with save_pretrained."
    elif folder.exists() or not is_hub_name(str(path)):
        raise FileNotFoundError(
            f"model={str(path)!r} is no folder, and no name on the hub either. Pass a "
            "folder written by save_pretrained, or a name like "
            "Qwen/Qwen2.5-0.5B-Instruct."
        )
    else:
        cure = (
            "Without a network, pass a folder: --model PATH. "
            f"`{install.call('fetch')}` makes one, models/smollm2."
        )
    try:
        yield
    except Exception as error:  # safetensors has a class of its own, too
        reason = " ".join(str(error).split())
        if len(reason) > 300:  # whole sentences, where there are some
            reason = reason[:300].rpartition(". ")[0] or reason[:300]
        raise ValueError(
            f"model={str(path)!r} could not be loaded ({type(error).__name__}: "
            f"{reason}). {cure}"
        ) from error


# --- Does the scorer say what the sampler noted?


# The mean over tokens that rounding explains, in nats. Measured on CPUs with models of
# up to 24 layers: at most 5e-6 in float32, and 0.032 in bfloat16, which has 8 bits.
# There, single tokens differed by up to 0.19.
EXPECTED = {None: 1e-4, torch.bfloat16: 0.05}


@torch.no_grad()
def sampler_gap(
    policy: CausalPolicy, prompts: Tensor, num_responses: int = 2
) -> Tensor:
    """How far note and score of each sampled token are from a forward pass. [token]

    int [batch pos] in. In nats, at temperature 1 and among all tokens: a cut between
    two tokens would turn rounding into more. Each text has a forward pass of the
    model's own, without padding. Random numbers are the probe's own.
    """
    writer = copy.copy(policy)
    writer.generator = Generator(policy.model.device).manual_seed(0)
    writer.sampler = replace(policy.sampler, temperature=1.0, top_k=None, top_p=None)
    rollout = writer.sample(prompts, num_responses)
    assert rollout.sampled_log_probs is not None
    texts = rollout.prompts, rollout.responses, writer.sampler, rollout.mask
    with writer.precision():
        alone = response_log_probs(policy.model, *texts, read_once=False)
    both = torch.stack([rollout.sampled_log_probs, writer.log_probs(rollout)])
    gaps = (both - alone).abs().amax(dim=0)
    return gaps.flatten() if rollout.mask is None else gaps[rollout.mask]


def probe_line(policy: CausalPolicy, prompts: Tensor) -> str:
    """The gap on the first two prompts beside what rounding explains, in words.

    int [batch pos] in; whatever begins at a length in texts as long is tried out, too.
    Raises ValueError for a gap that rounding does not explain.
    """
    policy.try_length(prompts.shape[-1] + policy.sampler.max_new_tokens)
    gaps, expected = sampler_gap(policy, prompts[:2]), EXPECTED[policy.autocast]
    dtype = "float32" if policy.autocast is None else "bfloat16"
    told = (
        f"Scores differ from what the sampler noted by {gaps.mean():.2g} nats a token, "
        f"{gaps.max():.2g} at most; rounding in {dtype} explains {expected:g}."
    )
    if gaps.mean() <= expected:
        return told
    cure = "Choose another model" if policy.autocast is None else "Try --dtype float32"
    raise ValueError(
        f"{type(policy.model).__name__}: {told} This is more: the gradient would be of "
        f"another policy. Nothing was trained. {cure}."
    )
