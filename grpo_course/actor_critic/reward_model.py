"""A reward learned from pairs: which of two responses is better (Bradley-Terry)."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from einops import einsum
from torch import Tensor, nn

from grpo_course.actor_critic.critic import Reader
from grpo_course.algorithm.aggregation import as_floats
from grpo_course.algorithm.gradient import LEARNING_RATE
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.seeds import make_draw, require_seeds
from grpo_course.algorithm.validation import (
    require_at_least,
    require_axes,
    require_inside,
    require_tensor,
)


def bradley_terry_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """-log sigmoid(chosen - rejected), mean over the pairs: [... pair] -> [...].

    Both are rewards that a model gives. sigmoid(difference) is the probability that
    the first response wins: Bradley and Terry 1952, Biometrika 39; as a loss for a
    reward model Christiano et al. 2017, arXiv 1706.03741. logsigmoid, because
    log(sigmoid(x)) is -inf where x is very negative.
    """
    require_axes("chosen", chosen, "pair")
    require_pairs(chosen, rejected)
    return -F.logsigmoid(as_floats(chosen) - as_floats(rejected)).mean(-1)


def require_pairs(chosen: Tensor, rejected: Tensor) -> None:
    """Check that there is one rejected entry for each chosen one."""
    require_tensor("chosen", chosen, "... pair")
    require_tensor("rejected", rejected, "... pair")
    if chosen.shape != rejected.shape:
        raise ValueError(
            f"chosen has shape {list(chosen.shape)}, but rejected has shape "
            f"{list(rejected.shape)}. They go pair by pair: pass one rejected for each "
            "chosen."
        )


class RewardModel(nn.Module):
    """One number for a whole response. No bias: pairs cannot tell a constant.

    Arguments as `critic.Reader`; `seeds` gives all weights a seed axis in front.
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
        self.readout = nn.Parameter(draw(dim) / dim)

    def forward(self, prompts: Tensor, responses: Tensor) -> Tensor:
        """int [batch pos], [... batch trial pos] -> rewards [... batch trial]"""
        read = self.reader(prompts, responses)[..., -1, :]
        pattern = "... batch trial dim, ... dim -> ... batch trial"
        return einsum(read, self.readout, pattern)

    def as_reward(self) -> Callable[[Rollout], Tensor]:
        """The model as the loop wants a reward: frozen, rollout -> [... batch trial]"""

        @torch.no_grad()
        def reward(rollout: Rollout) -> Tensor:
            return self(rollout.prompts, rollout.responses)

        return reward


def fit_reward_model(
    model: RewardModel,
    prompts: Tensor,
    chosen: Tensor,
    rejected: Tensor,
    num_steps: int = 300,
    learning_rate: float = 0.01,
) -> Tensor:
    """Train on pairs of responses; returns the loss of each step, [step ...].

    prompts int [batch pos], chosen and rejected int [... batch pair pos]: pair by
    pair, the first was preferred. All pairs in every step, with Adam.
    """
    require_pairs(chosen, rejected)
    require_at_least("num_steps", num_steps, 1)
    require_inside("learning_rate", learning_rate, LEARNING_RATE)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=learning_rate), []
    for _ in range(num_steps):
        scores = [model(prompts, responses) for responses in (chosen, rejected)]
        loss = bradley_terry_loss(*(score.flatten(-2) for score in scores))
        optimizer.zero_grad()
        loss.sum().backward()  # seeds are independent: their losses are added
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)
