"""Who guesses the reward to come: a network of its own, or a head on the actor."""

import math
from collections.abc import Callable, Sequence

import torch
from einops import einsum, repeat
from torch import Tensor, nn

from grpo_course.algorithm.aggregation import aggregate, as_floats
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.seeds import Draw, make_draw, require_seeds, zeros
from grpo_course.algorithm.validation import (
    require_axes,
    require_callable,
    require_inside,
    require_same_shape,
    require_sizes,
    require_vocabulary,
)


class Reader(nn.Module):
    """Reads a prompt and a response, one encode matrix for each position of both.

    Args:
        vocab_size: how many different tokens there are.
        dim: width of the vectors in between.
        prompt_length, response_length: how many tokens come in.
        draw: from `make_draw`; with seeds, all weights get a seed axis in front.
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        prompt_length: int,
        response_length: int,
        draw: Draw,
    ):
        super().__init__()
        lengths = {"prompt_length": prompt_length, "response_length": response_length}
        require_sizes(vocab_size=vocab_size, dim=dim, **lengths)
        scale = 1 / math.sqrt(dim)
        self.embedding = nn.Parameter(draw(vocab_size, dim))
        self.prompt_weights = nn.Parameter(draw(prompt_length, dim, dim) * scale)
        self.response_weights = nn.Parameter(draw(response_length, dim, dim) * scale)

    def forward(self, prompts: Tensor, responses: Tensor) -> Tensor:
        """int [batch pos], [... batch trial pos] -> [... batch trial state dim]

        State t has read the prompt and the first t tokens of the response: one
        state more than there are tokens.
        """
        self.require_tokens(prompts, responses)
        prompt = einsum(
            self.embedding[..., prompts, :],
            self.prompt_weights,
            "... batch pos dim_in, ... pos dim_in dim -> ... batch dim",
        )
        read = einsum(  # every token at every position, then the sampled ones
            self.embedding,
            self.response_weights,
            "... vocab dim_in, ... pos dim_in dim -> ... pos vocab dim",
        )
        tokens = pick(read, responses)  # [... batch trial pos dim]
        nothing = torch.zeros_like(tokens[..., :1, :])
        so_far = torch.cat([nothing, tokens], dim=-2).cumsum(-2)
        return (prompt[..., None, None, :] + so_far).tanh()

    def require_tokens(self, prompts: Tensor, responses: Tensor) -> None:
        """Check that both are what the weights were made for, and line up."""
        require_axes("prompts", prompts, "batch pos")
        require_axes("responses", responses, "batch trial pos")
        if len(prompts) != responses.shape[-3]:
            raise ValueError(
                f"prompts has shape {list(prompts.shape)}, but responses has shape "
                f"{list(responses.shape)}: they must agree in batch."
            )
        weights = {"prompts": self.prompt_weights, "responses": self.response_weights}
        for name, tokens in (("prompts", prompts), ("responses", responses)):
            length = weights[name].shape[-3]
            if tokens.shape[-1] != length:
                raise ValueError(
                    f"{name} have {tokens.shape[-1]} tokens, but the reader was built "
                    f"for {length}. Build it with that length, or change the rows."
                )
            require_vocabulary(name, tokens, self.embedding.shape[-2])


def pick(table: Tensor, tokens: Tensor) -> Tensor:
    """Rows of a table at each position.

    [... pos vocab dim], int [... batch trial pos] -> [... batch trial pos dim]
    """
    chosen = torch.nn.functional.one_hot(tokens, table.shape[-2]).to(table)
    pattern = "... pos vocab dim, ... batch trial pos vocab -> ... batch trial pos dim"
    return einsum(table, chosen, pattern)


class Critic(nn.Module):
    """A network of its own; its value of a token has read all tokens before it.

    It starts with zero for everything. Arguments as `Reader`; `seeds` as SortModel.
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        prompt_length: int,
        response_length: int,
        seeds: Sequence[int] | None = None,
    ):
        super().__init__()
        require_seeds(seeds)
        draw = make_draw(seeds)
        self.reader = Reader(vocab_size, dim, prompt_length, response_length, draw)
        self.readout = nn.Parameter(zeros(seeds, response_length, dim))
        self.bias = nn.Parameter(zeros(seeds, response_length))

    def forward(self, rollout: Rollout) -> Tensor:
        """The reward still to come, before each token: [... batch trial pos]"""
        states = self.reader(rollout.prompts, rollout.responses)[..., :-1, :]
        pattern = "... batch trial pos dim, ... pos dim -> ... batch trial pos"
        return einsum(states, self.readout, pattern) + self.bias[..., None, None, :]


class ValueHead(nn.Module):
    """One linear layer on features that the actor has anyway.

    `features` maps prompts to [... batch dim]. An actor that reads only the prompt
    gives one value for all responses to it. Starts with zero for everything.
    """

    def __init__(
        self,
        features: Callable[[Tensor], Tensor],
        dim: int,
        response_length: int,
        seeds: Sequence[int] | None = None,
    ):
        super().__init__()
        require_seeds(seeds)
        require_sizes(dim=dim, response_length=response_length)
        require_callable("features", features, "maps prompts to [... batch dim]")
        self.features = features
        self.readout = nn.Parameter(zeros(seeds, response_length, dim))
        self.bias = nn.Parameter(zeros(seeds, response_length))

    def forward(self, rollout: Rollout) -> Tensor:
        """The reward still to come, before each token: [... batch trial pos]"""
        features, trial = self.features(rollout.prompts), rollout.responses.shape[-2]
        pattern = "... batch dim, ... pos dim -> ... batch pos"
        values = einsum(features, self.readout, pattern) + self.bias[..., None, :]
        return repeat(values, "... batch pos -> ... batch trial pos", trial=trial)


def value_loss(
    values: Tensor,
    returns: Tensor,
    old_values: Tensor | None = None,
    clip: float | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Half the squared error of the critic, mean over tokens: [...].

    All [... batch trial pos]. With `clip`, in units of the reward, a value that
    left its old one by more than that counts with the larger of two errors, its own
    and that of the clipped value: no gain from moving on. PPO's reference code;
    Engstrom et al. 2020, arXiv 2005.12729.
    """
    require_axes("values", values, "batch trial pos")
    require_same_shape("returns", returns, "values", values)
    values, returns = as_floats(values), as_floats(returns)
    errors = (values - returns).square()
    if clip is not None:
        require_inside("clip", clip, {"above": 0}, ", or None, which does not clip")
        if old_values is None:
            raise ValueError(
                f"clip={clip} needs old_values, the critic's values when the responses "
                "were sampled. clip=None does not clip."
            )
        require_same_shape("old_values", old_values, "values", values)
        clipped = old_values + (values - old_values).clamp(-clip, clip)
        errors = torch.maximum(errors, (clipped - returns).square())
    return aggregate(errors, mask, "token_mean") / 2
