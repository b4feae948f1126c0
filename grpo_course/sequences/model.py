"""A tiny autoregressive language model: embedding, GRU, head."""

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from grpo_course.algorithm.seeds import require_seeds
from grpo_course.algorithm.validation import require_sizes, require_vocabulary


class TinyLM(nn.Module):
    """Reads tokens one by one into a hidden state; the state scores the next token.

    With `seeds=(0, 1, 2)` the weights carry a leading seed axis: independent models
    that train side by side. The dots in the shapes below stand for that axis.
    The recurrent cell is the GRU of Cho et al. 2014, arXiv 1406.1078, as in torch.

    Args:
        vocab_size: how many different tokens there are.
        hidden_size: width of the hidden state.
        context_length: the most tokens of prompt and response together.
        seeds: one random seed for each model, or None for one model of seed 0.
    """

    embedding: Tensor  # [... vocab dim]
    input_weights: Tensor  # [... dim 3*dim]
    input_bias: Tensor  # [... 1 3*dim]
    hidden_weights: Tensor  # [... dim 3*dim]
    hidden_bias: Tensor  # [... 1 3*dim]
    head_weights: Tensor  # [... dim vocab]
    head_bias: Tensor  # [... 1 vocab]

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int = 32,
        context_length: int = 32,
        seeds: Sequence[int] | None = None,
    ):
        super().__init__()
        require_seeds(seeds)
        sizes = {"vocab_size": vocab_size, "hidden_size": hidden_size}
        require_sizes(**sizes, context_length=context_length)
        self.vocab_size, self.context_length = vocab_size, context_length
        self.hidden_size, gates = hidden_size, 3 * hidden_size
        shapes = {
            "embedding": (vocab_size, hidden_size),
            "input_weights": (hidden_size, gates),
            "input_bias": (1, gates),
            "hidden_weights": (hidden_size, gates),
            "hidden_bias": (1, gates),
            "head_weights": (hidden_size, vocab_size),
            "head_bias": (1, vocab_size),
        }
        own = (0,) if seeds is None else seeds
        drawn = [draw_weights(shapes, hidden_size, seed) for seed in own]
        for name in shapes:
            stacked = torch.stack([weights[name] for weights in drawn])
            self.register_parameter(
                name, nn.Parameter(stacked[0] if seeds is None else stacked)
            )

    def start(self, tokens: Tensor) -> Tensor:
        """The state before any token: zeros. int [... rows pos] -> [... rows dim]"""
        rows = tokens.shape[-2]
        return self.embedding.new_zeros(
            *self.embedding.shape[:-2], rows, self.hidden_size
        )

    def embed(self, tokens: Tensor) -> Tensor:
        """int [... rows pos] -> [... rows pos dim]"""
        if self.embedding.ndim == 2:
            return self.embedding[tokens]
        seed = torch.arange(len(self.embedding), device=tokens.device)
        return self.embedding[seed[:, None, None], tokens]

    def step(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        """One step of the GRU. [... rows 3 dim], [... rows dim] -> [... rows dim]"""
        reset_in, update_in, new_in = inputs.chunk(3, dim=-1)
        gates = hidden @ self.hidden_weights + self.hidden_bias
        reset, update, new = gates.chunk(3, dim=-1)
        reset, update = (reset_in + reset).sigmoid(), (update_in + update).sigmoid()
        return torch.lerp((new_in + reset * new).tanh(), hidden, update)

    def read(
        self, tokens: Tensor, hidden: Tensor | None = None, real: Tensor | None = None
    ) -> Tensor:
        """The state after each token. int [... rows pos] -> [... rows pos dim]

        `hidden` [... rows dim] carries on from an earlier state. Where `real`, bool
        [... rows pos], is False, the token is padding and the state stays as it is.
        Raises ValueError for tokens that are not in the vocabulary.
        """
        require_vocabulary("tokens", tokens, self.vocab_size)
        hidden = self.start(tokens) if hidden is None else hidden
        bias = self.input_bias[..., None, :]
        weights = self.input_weights
        weights = weights if weights.ndim == 2 else weights[:, None]
        inputs = self.embed(tokens) @ weights + bias
        states = []
        for pos in range(tokens.shape[-1]):
            after = self.step(inputs[..., pos, :], hidden)
            if real is not None:
                after = torch.where(real[..., pos, None], after, hidden)
            hidden = after
            states.append(hidden)
        return torch.stack(states, dim=-2)

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of the next token. [... rows dim] -> [... rows vocab]"""
        return hidden @ self.head_weights + self.head_bias

    def forward(self, tokens: Tensor, real: Tensor | None = None) -> Tensor:
        """int [... rows pos] -> logits [... rows pos vocab], those at t score t + 1."""
        states = self.read(tokens, real=real)
        logits = self.head(states.flatten(-3, -2))
        return logits.unflatten(-2, states.shape[-3:-1])


def draw_weights(shapes: dict, hidden_size: int, seed: int) -> dict[str, Tensor]:
    """Normal embeddings, all else uniform in +-1/sqrt(hidden), as torch has it."""
    generator = Generator().manual_seed(seed)
    bound = 1 / math.sqrt(hidden_size)
    weights = {
        name: (2 * torch.rand(shape, generator=generator) - 1) * bound
        for name, shape in shapes.items()
    }
    weights["embedding"] = torch.randn(shapes["embedding"], generator=generator)
    return weights
