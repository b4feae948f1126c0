"""PPO, which stands beside GRPO: a critic in the place of the group.

Top down: GAE turns a critic's guesses into a delta for every token; a critic
and its loss; PPO, which is the loop of `loop` with both put in.

The ratio, its clip and the means over tokens are not told here: they are GRPO's, in
`formulas`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from einops import einsum
from pydantic import Field
from torch import Tensor, nn

from grpo_course.checks import (
    require_axes,
    require_one_each,
    require_same_shape,
    settings,
)
from grpo_course.formulas import (
    SPREAD_EPSILON,
    TOKEN_AXES,
    aggregate,
    as_beta,
    as_bool_mask,
    as_floats,
    hide,
)
from grpo_course.loop import (
    GRPO,
    Batch,
    Rollout,
    TrainConfig,
    Trainer,
)
from grpo_course.sampling import Draw, make_draw, require_seeds

# Deltas for tokens: rewards and a critic's values, one of each a token.

GAMMA, LAMBDA = 1.0, 0.95  # nothing is discounted; GAE's trust in the rewards


def td_errors(
    rewards: Tensor,
    values: Tensor,
    gamma: float = GAMMA,
    mask: Tensor | None = None,
    bootstrap: Tensor | None = None,
) -> Tensor:
    """Reward plus discounted next value minus value: [... batch trial pos].

    `rewards` and `values` have one entry a token; a value is the critic's guess
    before the token is written. `mask` is False on padding, and on tokens that the
    policy did not write, such as the answer of a tool: they are passed over.

    After the last token there is nothing to expect, unless the response was cut off
    there and would have gone on. `bootstrap` [... batch trial] is the critic's guess
    after the last token, zero where a response ended. A limit that belongs to the
    task is an end: Pardo et al. 2018, arXiv 1712.00378.

    Raises ValueError for shapes that do not line up.
    """
    require_axes("values", values, "pos")
    if rewards.shape != values.shape:
        raise ValueError(
            f"rewards have shape {list(rewards.shape)}, but values have shape "
            f"{list(values.shape)}: each token needs one of both. A reward for the "
            "whole response goes to its last token: reward_per_token."
        )
    mask = as_bool_mask(mask, values)
    rewards, values = (hide(as_floats(x), mask) for x in (rewards, values))
    after = torch.zeros_like(values[..., 0])
    if bootstrap is not None:
        require_same_shape("bootstrap", bootstrap, "values[..., 0]", after)
        after = as_floats(bootstrap)
    next_values: list[Tensor] = []
    for t in reversed(range(values.shape[-1])):
        next_values.insert(0, after)
        after = torch.where(mask[..., t], values[..., t], after)
    return hide(rewards + gamma * torch.stack(next_values, dim=-1) - values, mask)


def generalized_advantages(
    rewards: Tensor,
    values: Tensor,
    gamma: float = GAMMA,
    lam: float = LAMBDA,
    mask: Tensor | None = None,
    bootstrap: Tensor | None = None,
) -> Tensor:
    """GAE: the TD errors from a token on, each step weighed by gamma * lam.

    Arguments and errors as `td_errors`. lam = 0 is the TD error (little noise, as wrong
    as the critic), lam = 1 the return minus the value (right on average, noisy). Only
    tokens under the mask are steps; the others get zero, as in verl.
    Schulman et al. 2015, arXiv 1506.02438.
    """
    errors = td_errors(rewards, values, gamma, mask, bootstrap)
    mask, advantage = as_bool_mask(mask, errors), torch.zeros_like(errors[..., 0])
    advantages: list[Tensor] = []
    for t in reversed(range(errors.shape[-1])):
        further = errors[..., t] + gamma * lam * advantage
        advantage = torch.where(mask[..., t], further, advantage)
        advantages.insert(0, advantage)
    return hide(torch.stack(advantages, dim=-1), mask)


def reward_per_token(
    rewards: Tensor, like: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The reward of a response, given at its last token; zero before and after.

    rewards [... batch trial], `like` and `mask` [... batch trial pos]. A response
    whose mask is empty has no token to give it to, and gets none.
    """
    require_one_each("rewards", rewards, like)
    mask = as_bool_mask(mask, like)
    to_the_end = mask.flip(-1).cumsum(-1).flip(-1)  # tokens from here on
    is_last = mask & (to_the_end == 1)
    return torch.where(is_last, rewards[..., None], 0.0)


def kl_per_token(
    token_rewards: Tensor,
    log_probs: Tensor,
    ref_log_probs: Tensor,
    coefficient: float | Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """KL in the reward, paid where it arises: minus beta log(pi/ref) at each token.

    All [... batch trial pos]; beta is a number, or [seed] where seeds train
    together. The sum over a response is that of `formulas.kl_reward`.
    Ziegler et al. 2019, arXiv 1909.08593.
    """
    mask = as_bool_mask(mask, log_probs)
    new, ref = hide(log_probs.detach(), mask), hide(ref_log_probs, mask)
    beta = as_beta(coefficient, new)[..., None, None, None]
    return token_rewards - beta * (new - ref)


def whiten_tokens(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean zero and spread one over all tokens of a batch: [... batch trial pos].

    The sample spread, over the tokens under the mask; each seed by itself. As in
    `formulas.center` a first value is taken off before averaging, so that tied values
    give exactly zero.
    """
    require_axes("values", values, "batch trial pos")
    values, mask = as_floats(values), as_bool_mask(mask, values)
    index = mask.flatten(-3).int().argmax(dim=-1, keepdim=True)
    first = values.flatten(-3).gather(-1, index)[..., None, None]
    count = mask.sum(TOKEN_AXES, keepdim=True)
    shifted = hide(values - first, mask)
    mean = shifted.sum(TOKEN_AXES, keepdim=True) / count.clamp(min=1)
    centered = hide(shifted - mean, mask)
    squares = centered.square().sum(TOKEN_AXES, keepdim=True)
    spread = (squares / (count - 1).clamp(min=1)).sqrt()
    return centered / (spread + SPREAD_EPSILON)


# Networks that read a prompt and a response, and guess the reward to come.


class Reader(nn.Module):
    """Reads a prompt and a response, one encode matrix for each position of both.

    Args:
        vocab_size: how many different tokens there are.
        dim: width of the vectors in between.
        prompt_length, response_length: how many tokens come in.
        seeds: as `SortModel`; all weights get a seed axis in front, the dots below.
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
        draw, scale = make_draw(seeds), 1 / math.sqrt(dim)
        self.weights = nn.ParameterDict(
            {
                "embedding": draw(vocab_size, dim),
                "prompt": draw(prompt_length, dim, dim) * scale,
                "response": draw(response_length, dim, dim) * scale,
            }
        )
        self.start_readout(draw)

    def start_readout(self, draw: Draw) -> None:
        """What turns states into numbers: each kind of reader has its own weights."""

    def read(self, prompts: Tensor, responses: Tensor) -> Tensor:
        """int [batch pos], [... batch trial pos] -> [... batch trial state dim]

        State t has read the prompt and the first t tokens of the response: one
        state more than there are tokens. Raises ValueError for other lengths than
        those it was built for.
        """
        lengths = prompts.shape[-1], responses.shape[-1]
        embedding, of_prompt, of_response = self.weights.values()
        built = of_prompt.shape[-3], of_response.shape[-3]
        if lengths != built:
            raise ValueError(
                f"prompts and responses have {lengths} tokens, but the reader was "
                f"built for {built}. Build it with those lengths, or change the rows."
            )
        prompt = einsum(
            embedding[..., prompts, :],
            of_prompt,
            "... batch pos dim_in, ... pos dim_in dim -> ... batch dim",
        )
        table = einsum(  # every token at every position, then the sampled ones
            embedding,
            of_response,
            "... vocab dim_in, ... pos dim_in dim -> ... pos vocab dim",
        )
        tokens = einsum(
            table,
            F.one_hot(responses, table.shape[-2]).to(table),
            "... pos vocab dim, ... batch trial pos vocab -> ... batch trial pos dim",
        )
        nothing = torch.zeros_like(tokens[..., :1, :])
        so_far = torch.cat([nothing, tokens], dim=-2).cumsum(-2)
        return (prompt[..., None, None, :] + so_far).tanh()


class Critic(Reader):
    """A network of its own; its value of a token has read all tokens before it.

    It starts with zero for everything.
    """

    def start_readout(self, draw: Draw) -> None:
        like = self.weights["response"].detach()[..., 0]  # [... pos dim]
        self.readout = nn.Parameter(torch.zeros_like(like))
        self.bias = nn.Parameter(torch.zeros_like(like[..., 0]))

    def forward(self, rollout: Rollout) -> Tensor:
        """The reward still to come, before each token: [... batch trial pos]"""
        states = self.read(rollout.prompts, rollout.responses)[..., :-1, :]
        pattern = "... batch trial pos dim, ... pos dim -> ... batch trial pos"
        return einsum(states, self.readout, pattern) + self.bias[..., None, None, :]


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
    require_same_shape("returns", returns, "values", values)
    values, returns = as_floats(values), as_floats(returns)
    errors = (values - returns).square()
    if clip is not None:
        if old_values is None:
            raise ValueError(
                f"clip={clip} needs old_values, the critic's values when the responses "
                "were sampled. clip=None does not clip."
            )
        clipped = old_values + (values - old_values).clamp(-clip, clip)
        errors = torch.maximum(errors, (clipped - returns).square())
    return aggregate(errors, mask, "token_mean") / 2


# PPO: the loop with a critic.


@settings()
class PPOConfig(TrainConfig):
    """What PPO must be told beside the knobs of the loop."""

    gamma: float = Field(default=GAMMA, gt=0, le=1)  # discount per token
    # how far GAE trusts the rewards more than the critic
    lam: float = Field(default=LAMBDA, ge=0, le=1)
    whiten_deltas: bool = True  # mean zero and spread one over all tokens
    value_weight: float = Field(default=0.5, ge=0)  # c_V
    # in units of the reward; None: no clipping
    value_clip: float | None = Field(default=None, gt=0)
    entropy_bonus: float = Field(default=0.0, ge=0)  # c_H


class PPO(Trainer):
    """A critic in the place of the group. Schulman et al. 2017, arXiv 1707.06347.

    Two methods differ from GRPO's: `collect` makes the deltas, `loss` adds what the
    critic learns. `critic` maps a rollout to values [... batch trial pos]; the
    optimizer must hold its weights beside the policy's. `entropy` maps a rollout to the
    exact entropy of its policy, [... batch] in nats. `bootstrap` maps a rollout to the
    critic's guess after its last token, [... batch trial], which counts where
    `rollout.finished` is False; without it a cut is an end. Further arguments as
    `Trainer`.

    Raises ValueError for an entropy bonus without a way to compute the entropy.
    """

    config: PPOConfig

    def __init__(
        self,
        *arguments: Any,
        critic: Callable[[Rollout], Tensor],
        entropy: Callable[[Rollout], Tensor] | None = None,
        bootstrap: Callable[[Rollout], Tensor] | None = None,
        **callbacks: Any,
    ):
        super().__init__(*arguments, **callbacks)
        self.critic, self.entropy, self.bootstrap = critic, entropy, bootstrap
        if self.config.entropy_bonus and entropy is None:
            raise ValueError(
                f"entropy_bonus={self.config.entropy_bonus} needs entropy, a function "
                "from a rollout to the exact entropy of its policy. Minus the sampled "
                "log-probabilities will not do: their gradient is zero on average."
            )

    @torch.no_grad()
    def collect(self, prompts: Tensor) -> Batch:
        """Deltas [... batch trial pos] by GAE, and what the critic learns from.

        That is [... batch trial 2*pos]: the returns, then the critic's values now,
        on one axis so that a minibatch can be cut out of both like of the rest.
        """
        batch, config = GRPO.collect(self, prompts), self.config
        rollout, mask = batch.rollout, batch.rollout.mask
        old, ref = batch.old_log_probs, batch.ref_log_probs
        rewards = reward_per_token(batch.rewards, rollout.responses, mask)
        if old is not None and ref is not None and config.kl_place == "reward":
            rewards = kl_per_token(rewards, old, ref, self.beta, mask)
        after = None  # an end: nothing more to expect
        if self.bootstrap is not None and rollout.finished is not None:
            after = self.bootstrap(rollout).masked_fill(rollout.finished, 0.0)
        values, knobs = self.critic(rollout), (config.gamma, config.lam)
        deltas = generalized_advantages(rewards, values, *knobs, mask, after)
        targets = torch.cat([deltas + values, values], dim=-1)
        deltas = whiten_tokens(deltas, mask) if config.whiten_deltas else deltas
        return self.correct(replace(batch, deltas=deltas, targets=targets))

    def loss(self, batch: Batch) -> tuple[Tensor, dict]:
        """The policy's loss, plus c_V times the critic's, minus c_H times entropy."""
        loss, record = super().loss(batch)
        if batch.targets is None:
            raise ValueError("the batch has no targets: collect it with this trainer.")
        returns, old_values = batch.targets.chunk(2, dim=-1)
        values, clip = self.critic(batch.rollout), self.config.value_clip
        critic_loss = value_loss(values, returns, old_values, clip, batch.rollout.mask)
        extra = self.config.value_weight * critic_loss
        record["value_loss"] = critic_loss.detach()
        if self.config.entropy_bonus and self.entropy:
            entropy = self.entropy(batch.rollout).mean(-1)
            extra = extra - self.config.entropy_bonus * entropy
            record["entropy_now"] = entropy.detach()
        return loss + extra, record | {"loss": (loss + extra).detach()}
