"""Pretraining: a language model from nothing, on stories and sums that never repeat.

The matrices learn by Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), the
embedding and the scales by AdamW. Batch and step follow from the seed and the number of
the step alone, so a run goes on from any step as if it had never stopped.
"""

from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F
from torch.optim import AdamW, Muon, Optimizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.settings import settings
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.language_model.template import conversation_text
from grpo_course.language_model.tiny_model import make_tiny_model, require_equal_heads
from grpo_course.language_model.tokenizer import LEAST_VOCABULARY, make_tokenizer
from grpo_course.language_model.warm_start import linear_schedule
from grpo_course.stories.batches import CHUNK, Batch, draw_chunk
from grpo_course.stories.problems import make_stories

TOKENIZER_STORIES = 4000  # from which the tokenizer learns its words
STAGES = (0.5, 0.6, 0.75, 0.9)  # of the run
WARMUP, FINAL_SHARE = 30, 0.02  # steps, and what is left of a rate at the end
MOMENTUM, WEIGHT_DECAY = 0.95, 0.01  # of Muon
BETAS = (0.9, 0.95)  # of AdamW, without weight decay


@settings()
class PretrainConfig:
    """The settings of a pretraining; the default ones made the model of the course."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    num_steps: int = Field(default=4800, ge=1)
    batch_size: int = Field(default=64, ge=1)  # problems a step
    sums: float = Field(default=0.25, ge=0, le=1)  # share of the problems: bare sums
    prompt_weight: float = Field(default=0.1, ge=0)  # of a prompt's token in the loss
    matrix_rate: float = Field(default=0.02, gt=0)  # learning rate of Muon
    other_rate: float = Field(default=3e-3, gt=0)  # learning rate of AdamW
    vocab_size: int = Field(default=1024, ge=LEAST_VOCABULARY)
    hidden_size: int = Field(default=160, ge=1)  # a multiple of num_heads
    num_layers: int = Field(default=4, ge=1)
    num_heads: int = Field(default=4, ge=1)
    context_length: int = Field(default=256, ge=1)  # tokens
    num_threads: int = Field(default=1, ge=1)  # of the CPU; it decides the rounding
    save_every: int = Field(default=100, ge=1)  # steps

    def __post_init__(self) -> None:
        require_equal_heads(self.hidden_size, self.num_heads)

    def stages(self) -> set[int]:
        """The steps whose checkpoints are kept: arithmetic emerges between them."""
        return {round(share * self.num_steps) for share in STAGES}

    def saves_at(self, step: int) -> bool:
        """Whether a checkpoint is written after so many steps."""
        last = step == self.num_steps
        return last or step % self.save_every == 0 or step in self.stages()


class Pretraining:
    """A model that learns, and the number of steps it took."""

    def __init__(
        self,
        config: PretrainConfig,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        self.config, self.tokenizer, self.step = config, tokenizer, 0
        self.model = model.train()
        # In bfloat16 it is the faster one on a CPU, half as fast again.
        model.set_attn_implementation("eager")
        self.optimizers = make_optimizers(config, model)
        self.schedules = [
            linear_schedule(each, config.num_steps, WARMUP, FINAL_SHARE)
            for each in self.optimizers
        ]
        self.batches: list[Batch] = []  # those of the chunk at hand

    def learn(self) -> float:
        """One step. -> the mean loss of the responses' tokens, in nats"""
        place = self.step % CHUNK
        if place == 0 or not self.batches:
            self.batches = self.draw_batches(self.step // CHUNK)
        batch = self.batches[place]
        losses = self.token_losses(batch)
        weights = batch.weights[:, 1:]
        loss = (losses * weights).sum() / weights.sum()
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer, schedule in zip(self.optimizers, self.schedules, strict=True):
            optimizer.step()
            schedule.step()
        self.step += 1
        return losses.detach()[batch.responses[:, 1:]].mean().item()

    def state(self) -> dict:
        """What a run must remember beside the model and its tokenizer."""
        return {"step": self.step, "parts": [p.state_dict() for p in self.parts()]}

    def load_state(self, saved: dict) -> None:
        """Put it back."""
        self.step = saved["step"]
        for part, state in zip(self.parts(), saved["parts"], strict=True):
            part.load_state_dict(state)

    def parts(self) -> list[Any]:
        """The optimizers and their learning rates."""
        return [*self.optimizers, *self.schedules]

    def draw_batches(self, number: int) -> list[Batch]:
        """The next CHUNK batches."""
        config = self.config
        return draw_chunk(
            self.tokenizer,
            number,
            config.batch_size,
            seed=config.seed,
            sums=config.sums,
            prompt_weight=config.prompt_weight,
        )

    def token_losses(self, batch: Batch) -> Tensor:
        """Minus the log-probability of each token but the first. [batch pos], nats"""
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(batch.tokens, use_cache=False).logits
        return F.cross_entropy(
            logits[:, :-1].float().transpose(1, 2),
            batch.tokens[:, 1:],
            reduction="none",
        )


def make_optimizers(config: PretrainConfig, model: PreTrainedModel) -> list[Optimizer]:
    """Muon for the matrices of the layers, AdamW for all else."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    return [
        Muon(
            matrices,
            lr=config.matrix_rate,
            momentum=MOMENTUM,
            weight_decay=WEIGHT_DECAY,
        ),
        AdamW(others, lr=config.other_rate, betas=BETAS, weight_decay=0.0),
    ]


def begin_pretraining(config: PretrainConfig) -> Pretraining:
    """A model with random weights, and a tokenizer that learned from stories."""
    stories = make_stories("train", TOKENIZER_STORIES, f"{config.seed} tokenizer")
    texts = [conversation_text(s.question, demonstration(s)) for s in stories]
    tokenizer = make_tokenizer(texts, config.vocab_size)
    model = make_tiny_model(
        tokenizer,
        hidden_size=config.hidden_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        context_length=config.context_length,
        seed=config.seed,
    )
    return Pretraining(config, model, tokenizer)
