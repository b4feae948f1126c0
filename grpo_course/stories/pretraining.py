"""Pretraining: a language model from nothing, on stories and sums that never repeat.

The matrices learn by Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon), the
embedding and the scales by AdamW. Batch and step follow from the seed and the number of
the step alone, so a run goes on from any step as if it had never stopped.
"""

import random
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F
from torch.optim import AdamW, Muon, Optimizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grpo_course.algorithm.settings import settings
from grpo_course.gsm8k.prompts import demonstration
from grpo_course.language_model.encoding import prompt_text
from grpo_course.language_model.template import conversation_text
from grpo_course.language_model.tiny_model import make_tiny_model
from grpo_course.language_model.tokenizer import make_tokenizer
from grpo_course.language_model.warm_start import linear_schedule
from grpo_course.stories.problems import Story, make_stories, make_sums

TOKENIZER_STORIES = 4000  # from which the tokenizer learns its words
CHUNK = 8  # batches are cut from so many at a time, sorted by length: less padding
WARMUP, FINAL_SHARE = 30, 0.02  # steps, and what is left of a rate at the end
MUON = {"momentum": 0.95, "weight_decay": 0.01}
ADAM = {"betas": (0.9, 0.95), "weight_decay": 0.0}


@settings()
class PretrainConfig:
    """The settings of a pretraining; the default ones made the model of the course."""

    seed: int = 0
    num_steps: int = Field(default=3000, ge=1)
    batch_size: int = Field(default=64, ge=1)  # problems a step
    sums: float = Field(default=0.2, ge=0, le=1)  # share of the problems: bare sums
    prompt_weight: float = Field(default=0.1, ge=0)  # of a prompt's token in the loss
    matrix_rate: float = Field(default=0.02, gt=0)  # learning rate of Muon
    other_rate: float = Field(default=3e-3, gt=0)  # learning rate of AdamW
    vocab_size: int = 640
    hidden_size: int = 160
    num_layers: int = 4
    num_heads: int = 4
    context_length: int = 256  # tokens
    save_every: int = Field(default=100, ge=1)  # steps


@dataclass(frozen=True)
class Batch:
    """Whole conversations, padded on the right; all [batch pos].

    tokens: int. weights: float, of each token in the loss; 0 for padding.
    responses: bool, the tokens of the responses.
    """

    tokens: Tensor
    weights: Tensor
    responses: Tensor


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
            self.batches = self.draw_chunk(self.step // CHUNK)
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

    def token_losses(self, batch: Batch) -> Tensor:
        """Minus the log-probability of each token but the first, in nats. [batch pos]"""
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(batch.tokens, use_cache=False).logits
        return F.cross_entropy(
            logits[:, :-1].float().transpose(1, 2),
            batch.tokens[:, 1:],
            reduction="none",
        )

    def draw_chunk(self, number: int) -> list[Batch]:
        """The batches of one chunk, each of problems of about one length."""
        config = self.config
        seed = f"{config.seed} {number}"
        count = CHUNK * config.batch_size
        num_sums = round(config.sums * count)
        problems = make_stories("train", count - num_sums, seed)
        problems += make_sums(num_sums, seed)
        rows = [self.encode(problem) for problem in problems]
        rows.sort(key=lambda row: len(row[0]) + len(row[1]))
        size = config.batch_size
        batches = [self.pad(rows[i : i + size]) for i in range(0, count, size)]
        random.Random(seed).shuffle(batches)
        return batches

    def encode(self, problem: Story) -> tuple[list[int], list[int]]:
        """The tokens of the prompt, and those of the response with its end."""
        asked = prompt_text(self.tokenizer, problem.question, None)
        texts = [asked, demonstration(problem)]
        prompt, response = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        return prompt, [*response, self.tokenizer.eos_token_id]

    def pad(self, rows: list[tuple[list[int], list[int]]]) -> Batch:
        """Prompts with their responses as one batch."""
        width = max(len(prompt) + len(response) for prompt, response in rows)
        tokens = torch.full((len(rows), width), self.tokenizer.pad_token_id)
        weights = torch.zeros(len(rows), width)
        responses = torch.zeros(len(rows), width, dtype=torch.bool)
        for i, (prompt, response) in enumerate(rows):
            end = len(prompt) + len(response)
            tokens[i, :end] = torch.tensor(prompt + response)
            weights[i, : len(prompt)] = self.config.prompt_weight
            weights[i, len(prompt) : end] = 1.0
            responses[i, len(prompt) : end] = True
        return Batch(tokens, weights, responses)


def make_optimizers(config: PretrainConfig, model: PreTrainedModel) -> list[Optimizer]:
    """Muon for the matrices of the layers, AdamW for all else."""
    named = list(model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    return [
        Muon(matrices, lr=config.matrix_rate, **MUON),
        AdamW(others, lr=config.other_rate, **ADAM),
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
