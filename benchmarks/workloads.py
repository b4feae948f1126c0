"""What our loop and TRL's trainer are timed on: models, prompts, a reward."""

from dataclasses import dataclass
from pathlib import Path

import torch
from clock import products_of_text
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from grpo_course.loop import TrainConfig
from grpo_course.text.models import load_model
from grpo_course.text.prompts import encode_prompts
from grpo_course.text.responses import CHAT_TEMPLATE

PAD, START, EOS = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEXTS = ["What is 12 + 7?", "<think> 12 + 7 = 19 </think> <answer> 19 </answer>"]
TEXTS += ["user", "ass", "ist", "ant"]  # every prompt has 20 tokens
CHARACTERS = "0123456789 \n+?=-abcdefghijklmnorstuwW"
QUESTIONS = [f"What is {i} + {i + 3}?" for i in range(10, 42)]
SUMS = [str(2 * i + 3) for i in range(10, 42)]
GROUP, LEARNING_RATE = 8, 1e-4


@dataclass(frozen=True)
class Workload:
    """What both programs do, and how long."""

    name: str
    vocabulary: int
    hidden: int
    inner: int
    layers: int
    key_heads: int
    prompts: int  # a rollout
    tokens: int  # of each response
    epochs: int  # rollouts
    warmup: int  # of them not timed
    num_steps: int = 1  # mu
    beta: float = 0.0

    @property
    def config(self) -> TrainConfig:
        """The settings of the loop. Old scores are free where the sampler noted them,
        and where there is one step, whose own scores they are."""
        return TrainConfig(
            num_epochs=self.epochs,
            num_responses=GROUP,
            num_steps_per_epoch=self.num_steps,
            kl_penalty=self.beta,
            max_gradient_norm=1.0,
            compute_ref_model_period=10**6,
            max_length=self.tokens,
            old_log_probs_from="first_step" if self.num_steps == 1 else "sampler",
        )


# name, vocabulary, hidden, inner, layers, key heads; prompts, tokens, epochs, warmup
WORKLOADS = (
    Workload("W1", 512, 128, 256, 4, 2, 4, 64, 12, 2, num_steps=2, beta=0.04),
    Workload("W2", 41, 64, 128, 2, 2, 4, 16, 110, 10),
    Workload("a tiny model", 416, 96, 288, 2, 4, 16, 24, 22, 2, beta=0.02),
)


def make_parts(workload: Workload, folder: Path) -> PreTrainedTokenizerFast:
    """Its tokenizer; a random Qwen2 goes to disk: TRL loads its reference from there.

    The tokenizer stays in memory: read from beside a Qwen2 it becomes a Qwen2 one.
    """
    tokenizer = bpe() if workload.vocabulary > 100 else characters()
    config = Qwen2Config(
        vocab_size=workload.vocabulary,
        hidden_size=workload.hidden,
        num_hidden_layers=workload.layers,
        intermediate_size=workload.inner,
        num_attention_heads=4,
        num_key_value_heads=workload.key_heads,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return tokenizer


def bpe() -> PreTrainedTokenizerFast:
    """Byte-level BPE from a few short texts."""
    plain = Tokenizer(models.BPE())
    parts = [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]
    plain.pre_tokenizer = pre_tokenizers.Sequence(parts)
    plain.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=[PAD, START, EOS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    plain.train_from_iterator(TEXTS, trainer)
    return as_chat(plain)


def characters() -> PreTrainedTokenizerFast:
    """One token a character, 41 in all."""
    known = [PAD, START, EOS, "[?]", *CHARACTERS]
    plain = Tokenizer(models.WordLevel({c: i for i, c in enumerate(known)}, "[?]"))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex("(?m)."), "isolated")
    plain.decoder = decoders.Fuse()
    plain.add_special_tokens([PAD, START, EOS])
    return as_chat(plain)


def as_chat(plain: Tokenizer) -> PreTrainedTokenizerFast:
    """With special tokens, padding on the left, and the course's template."""
    made = PreTrainedTokenizerFast(
        tokenizer_object=plain, eos_token=EOS, pad_token=PAD, padding_side="left"
    )
    made.chat_template = CHAT_TEMPLATE
    return made


def digits_reward(completions: list, answer: list[str], **_: object) -> list[float]:
    """The share of digits, and 1 more where the sum occurs."""
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [
        sum(c.isdigit() for c in text) / max(1, len(text)) + (right in text)
        for text, right in zip(texts, answer, strict=True)
    ]


def products(
    workload: Workload, folder: Path, tokenizer: PreTrainedTokenizerFast
) -> dict[str, float]:
    """CPU seconds of the matrix products alone, by part, of one epoch."""
    model = load_model(folder)
    read = encode_prompts(tokenizer, QUESTIONS[: workload.prompts]).numel()  # once
    rows, tokens = workload.prompts * GROUP, workload.tokens
    written = products_of_text(model, read, 0)
    written += tokens * products_of_text(model, rows, rows)
    scored = products_of_text(model, read + rows * (tokens - 1), rows * tokens)
    # Backwards, each product of the forward pass becomes two.
    updates = 3 * workload.num_steps * scored
    return {
        "generation": written,
        "scoring": scored if workload.beta else 0.0,
        "update": updates,
    }
