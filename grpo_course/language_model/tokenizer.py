"""A small tokenizer made from the texts that a tiny model is to read and write."""

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from grpo_course.algorithm.validation import require_at_least
from grpo_course.language_model.template import CHAT_TEMPLATE, TAGS

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
