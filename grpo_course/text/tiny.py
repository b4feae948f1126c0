"""A tokenizer and a tiny random model, for those who have none."""

import re
from collections.abc import Iterable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from grpo_course.text.config import MODELS as MODELS
from grpo_course.text.responses import CHAT_TEMPLATE, EOS, PAD, SPECIAL, START, TAGS


def make_tokenizer(
    texts: Iterable[str], vocab_size: int = 512
) -> PreTrainedTokenizerFast:
    """Byte-level BPE (Sennrich et al. 2016, arXiv 1508.07909) learned from `texts`.

    It starts from all 256 bytes, so it gives any text back unchanged. Every digit is a
    token of its own: then 12 and 123 share what the model knows of 1 and 2. The four
    tags are one token each, but no special ones, which decoding may leave out.
    `vocab_size` is the most tokens there may be; few texts give fewer.
    """
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


def tiny_config(
    vocab_size: int,
    architecture: str = "qwen2",
    *,
    hidden_size: int = 96,
    num_layers: int = 2,
    num_heads: int = 4,
    context_length: int = 256,
    eos_token_id: int | None = None,
    pad_token_id: int | None = None,
) -> PretrainedConfig:
    """The config of a model of one of MODELS with those sizes.

    Input and output share one embedding; no dropout.
    """
    if architecture == "gpt2":  # has dropout unless told otherwise
        more: dict = dict.fromkeys(["resid_pdrop", "embd_pdrop", "attn_pdrop"], 0.0)
    else:
        more = {"num_key_value_heads": num_heads, "intermediate_size": 3 * hidden_size}
    return AutoConfig.for_model(
        architecture,
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        max_position_embeddings=context_length,
        vocab_size=vocab_size,
        bos_token_id=None,
        eos_token_id=eos_token_id,
        pad_token_id=pad_token_id,
        tie_word_embeddings=True,
        **more,
    )


def make_tiny_model(
    tokenizer: PreTrainedTokenizerBase,
    architecture: str = "qwen2",
    *,
    seed: int = 0,
    **sizes: int,
) -> PreTrainedModel:
    """A causal LM with random weights for the vocabulary of `tokenizer`.

    `sizes` are those of `tiny_config`.
    Qwen2 and Llama tell positions by rotation (RoPE), GPT-2 learns an embedding for
    each. The weights depend on `seed` alone, and torch's own random numbers are left
    as they were.
    """
    config = tiny_config(
        len(tokenizer),
        architecture,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **sizes,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForCausalLM.from_config(config).eval()
