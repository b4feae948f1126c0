"""The sort model: it reads all numbers at once and answers every position at once."""

import math
from collections.abc import Sequence

import torch
from einops import einsum, rearrange, repeat
from torch import Generator, Tensor, nn

from grpo_course.algorithm.sampler import one_generator, one_generator_each
from grpo_course.algorithm.seeds import make_draw, require_seeds
from grpo_course.algorithm.validation import (
    require_at_least,
    require_axes,
    require_finite,
    require_inside,
    require_sizes,
    require_vocabulary,
)


class SortModel(nn.Module):
    """A non-autoregressive sorter with one encode and one decode matrix per position.

    With `seeds=(0, 1, 2)` the weights carry a leading seed axis: three independent
    models that train side by side. The dots in the shapes below stand for that axis;
    without `seeds` it is not there.

    Args:
        vocab_size: how many different numbers there are.
        embedding_dim: width of the vectors in between.
        prompt_length, response_length: how many numbers come in and go out.
        init_scale: factor on the decode weights. Small values make the first policy
            nearly uniform, large values make it sure of itself from the start.
        seeds: one random seed for each model, or None for one model from torch's own.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_dim: int,
        prompt_length: int,
        response_length: int,
        init_scale: float = 1.0,
        seeds: Sequence[int] | None = None,
    ):
        super().__init__()
        require_seeds(seeds)
        sizes = {"vocab_size": vocab_size, "embedding_dim": embedding_dim}
        sizes |= {"prompt_length": prompt_length, "response_length": response_length}
        require_sizes(**sizes)
        require_inside("init_scale", init_scale, {"at least": 0, "below": math.inf})
        self.vocab_size, self.prompt_length = vocab_size, prompt_length
        draw, scale = make_draw(seeds), 1 / math.sqrt(embedding_dim)
        square = (embedding_dim, embedding_dim)
        self.embedding = nn.Parameter(draw(vocab_size, embedding_dim))
        self.encode_weights = nn.Parameter(draw(prompt_length, *square) * scale)
        self.decode_weights = nn.Parameter(
            draw(response_length, *square) * scale * init_scale
        )

    def encode(self, prompts: Tensor) -> Tensor:
        """int [batch pos] -> what was read of each prompt, [... batch dim]"""
        require_tokens("prompts", prompts, self.vocab_size, self.prompt_length)
        embedded = self.embedding[..., prompts, :]  # [... batch pos dim]
        return einsum(
            embedded,
            self.encode_weights,
            "... batch pos dim_in, ... pos dim_in dim -> ... batch dim",
        )

    def forward(self, prompts: Tensor) -> Tensor:
        """int [batch pos] -> logits [... batch pos vocab]"""
        decoded = einsum(
            self.encode(prompts),
            self.decode_weights,
            "... batch dim, ... pos dim dim_out -> ... batch pos dim_out",
        )
        return einsum(  # input and output share the embedding
            decoded,
            self.embedding,
            "... batch pos dim, ... vocab dim -> ... batch pos vocab",
        )


def require_tokens(argument: str, tokens: Tensor, vocab_size: int, length: int) -> None:
    """Check that tokens are whole numbers of the vocabulary, `length` of them a row."""
    require_axes(argument, tokens, "batch pos")
    require_vocabulary(argument, tokens, vocab_size)
    if tokens.shape[-1] != length:
        raise ValueError(
            f"{argument} has {tokens.shape[-1]} numbers a row, but the model was built "
            f"for {length}. Build it with that length, or change the rows."
        )


def generate_responses(
    prompts: Tensor,
    model: SortModel,
    num_responses: int,
    generator: Generator | Sequence[Generator] | None = None,
) -> Tensor:
    """Sample a group for each prompt. int [batch pos] -> int [batch trial pos]

    A model with a seed axis needs one generator for each seed and gives
    [seed batch trial pos]. Raises ValueError for fewer than one response.
    """
    require_at_least("num_responses", num_responses, 1)
    with torch.no_grad():
        probs = model(prompts).softmax(dim=-1)  # [... batch pos vocab]
    require_finite("the policy's probabilities", probs, "try a smaller learning rate")
    if probs.ndim == 3:
        return sample_group(probs, num_responses, one_generator(generator))
    pairs = zip(probs, one_generator_each(probs, generator), strict=True)
    return torch.stack([sample_group(p, num_responses, g) for p, g in pairs])


def sample_group(
    probs: Tensor, num_responses: int, generator: Generator | None
) -> Tensor:
    """Every position of every response is drawn on its own. -> [batch trial pos]"""
    flat = rearrange(probs, "batch pos vocab -> (batch pos) vocab")
    drawn = torch.multinomial(
        flat, num_responses, replacement=True, generator=generator
    )
    return rearrange(
        drawn, "(batch pos) trial -> batch trial pos", batch=probs.shape[0]
    )


def compute_log_probs(prompts: Tensor, responses: Tensor, model: SortModel) -> Tensor:
    """Log-probability of each number. int [batch trial pos] -> [batch trial pos]"""
    log_probs = model(prompts).log_softmax(dim=-1)  # [... batch pos vocab]
    require_axes("responses", responses, "batch trial pos")
    require_tokens("responses", responses, model.vocab_size, log_probs.shape[-2])
    if responses.shape[:-2] != log_probs.shape[:-2]:
        raise ValueError(
            f"responses has shape {list(responses.shape)}, but the model answers "
            f"{list(log_probs.shape[:-2])} prompts (a seed axis first, if it has one). "
            "Score responses with the prompts and the model they were sampled from."
        )
    log_probs = repeat(
        log_probs, "... pos vocab -> ... trial pos vocab", trial=responses.shape[-2]
    )
    picked = log_probs.gather(dim=-1, index=responses[..., None])
    return picked.squeeze(-1)
