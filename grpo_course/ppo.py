"""Who guesses the reward to come: a network of its own, or a head on the actor."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from einops import einsum, repeat
from pydantic import Field
from torch import Tensor, nn

from grpo_course.checks import (
    require_at_least,
    require_axes,
    require_callable,
    require_inside,
    require_log_probs,
    require_one_each,
    require_ref_log_probs,
    require_same_shape,
    require_sizes,
    require_tensor,
    require_vocabulary,
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
    LEARNING_RATE,
    Batch,
    Rollout,
    TrainConfig,
    Trainer,
    require_config,
)
from grpo_course.sampling import Draw, make_draw, require_seeds, zeros

# --- actor_critic.critic


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


# --- actor_critic.gae


# The ranges of both knobs: a reward at the end of a response is usually not discounted.
GAMMA, LAM = {"above": 0, "at most": 1}, {"at least": 0, "at most": 1}


def td_errors(
    rewards: Tensor,
    values: Tensor,
    gamma: float = 1.0,
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

    Raises ValueError for shapes that do not line up, and for gamma outside (0, 1].
    """
    require_axes("rewards", rewards, "pos")
    require_axes("values", values, "pos")
    if rewards.shape != values.shape:
        raise ValueError(
            f"rewards have shape {list(rewards.shape)}, but values have shape "
            f"{list(values.shape)}: each token needs one of both. A reward for the "
            "whole response goes to its last token: reward_per_token."
        )
    require_inside("gamma", gamma, GAMMA)
    mask = as_bool_mask(mask, values)
    rewards, values = (hide(as_floats(x), mask) for x in (rewards, values))
    after = next_values(values, mask, bootstrap)
    return hide(rewards + gamma * after - values, mask)


def next_values(values: Tensor, mask: Tensor, bootstrap: Tensor | None) -> Tensor:
    """The value of the next token under the mask, after the last one `bootstrap`."""
    after = torch.zeros_like(values[..., 0])
    if bootstrap is not None:
        require_same_shape("bootstrap", bootstrap, "values[..., 0]", after)
        after = as_floats(bootstrap)
    backwards = []
    for value, kept in from_the_end(values, mask):
        backwards.append(after)
        after = torch.where(kept, value, after)
    return torch.stack(backwards[::-1], dim=-1)


def from_the_end(values: Tensor, mask: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The entries of one position after another, from the last to the first."""
    return zip(reversed(values.unbind(-1)), reversed(mask.unbind(-1)), strict=True)


def generalized_advantages(
    rewards: Tensor,
    values: Tensor,
    gamma: float = 1.0,
    lam: float = 0.95,
    mask: Tensor | None = None,
    bootstrap: Tensor | None = None,
) -> Tensor:
    """GAE: the TD errors from a token on, each step weighed by gamma * lam.

    Arguments as `td_errors`. lam = 0 is the TD error (little noise, as wrong as the
    critic), lam = 1 the return minus the value (right on average, noisy). Only tokens
    under the mask are steps; the others get zero, as in verl.
    Schulman et al. 2015, arXiv 1506.02438.

    Raises as `td_errors`, and ValueError for lam outside [0, 1].
    """
    require_inside("lam", lam, LAM)
    errors = td_errors(rewards, values, gamma, mask, bootstrap)
    mask, backwards = as_bool_mask(mask, errors), []
    advantage = torch.zeros_like(errors[..., 0])
    for error, kept in from_the_end(errors, mask):
        advantage = torch.where(kept, error + gamma * lam * advantage, advantage)
        backwards.append(advantage)
    return hide(torch.stack(backwards[::-1], dim=-1), mask)


def reward_per_token(
    rewards: Tensor, like: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The reward of a response, given at its last token; zero before and after.

    rewards [... batch trial], `like` and `mask` [... batch trial pos]. A response
    whose mask is empty has no token to give it to, and gets none.
    """
    require_axes("like", like, "batch trial pos")
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
    together. The sum over a response is that of `algorithm.kl.kl_reward`.
    Ziegler et al. 2019, arXiv 1909.08593.
    """
    require_same_shape("token_rewards", token_rewards, "log_probs", log_probs)
    require_ref_log_probs(ref_log_probs, log_probs)
    mask = as_bool_mask(mask, log_probs)
    new, ref = hide(log_probs.detach(), mask), hide(ref_log_probs, mask)
    require_log_probs(log_probs=new, ref_log_probs=ref)
    beta = as_beta(coefficient, new)[..., None, None, None]
    return token_rewards - beta * (new - ref)


def whiten(values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean zero and spread one over all tokens of a batch: [... batch trial pos].

    The sample spread, over the tokens under the mask; each seed by itself. As in
    `algorithm.deltas.center` a first value is taken off before averaging, so that
    tied values give exactly zero.
    """
    require_axes("values", values, "batch trial pos")
    values, mask = as_floats(values), as_bool_mask(mask, values)
    count = mask.sum(TOKEN_AXES, keepdim=True)
    shifted = hide(values - first_kept(values, mask), mask)
    mean = shifted.sum(TOKEN_AXES, keepdim=True) / count.clamp(min=1)
    centered = hide(shifted - mean, mask)
    squares = centered.square().sum(TOKEN_AXES, keepdim=True)
    spread = (squares / (count - 1).clamp(min=1)).sqrt()
    return centered / (spread + SPREAD_EPSILON)


def first_kept(values: Tensor, mask: Tensor) -> Tensor:
    """The first value under the mask. [... batch trial pos] twice -> [... 1 1 1]"""
    first = mask.flatten(-3).int().argmax(dim=-1, keepdim=True)
    return values.flatten(-3).gather(-1, first)[..., None, None]


# --- actor_critic.ppo


@settings()
class PPOConfig(TrainConfig):
    """What PPO must be told beside the knobs of the loop."""

    gamma: float = Field(default=1.0, gt=0, le=1)  # discount per token
    # how far GAE trusts the rewards more than the critic
    lam: float = Field(default=0.95, ge=0, le=1)
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
        *parts: Any,
        critic: Callable[[Rollout], Tensor],
        entropy: Callable[[Rollout], Tensor] | None = None,
        bootstrap: Callable[[Rollout], Tensor] | None = None,
        **callbacks: Any,
    ):
        super().__init__(*parts, **callbacks)
        require_config(self.config, PPOConfig)
        require_callable("critic", critic, "maps a rollout to values [... pos]")
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
        values, mask = self.critic(batch.rollout), batch.rollout.mask
        rewards, after = self.token_rewards(batch), self.value_after(batch.rollout)
        knobs = config.gamma, config.lam
        deltas = generalized_advantages(rewards, values, *knobs, mask, after)
        targets = torch.cat([deltas + values, values], dim=-1)
        deltas = whiten(deltas, mask) if config.whiten_deltas else deltas
        return self.correct(replace(batch, deltas=deltas, targets=targets))

    def value_after(self, rollout: Rollout) -> Tensor | None:
        """What is expected after a response that was cut off. -> [... batch trial]"""
        if self.bootstrap is None or rollout.finished is None:
            return None
        return self.bootstrap(rollout).masked_fill(rollout.finished, 0.0)

    def token_rewards(self, batch: Batch) -> Tensor:
        """The reward at the last token, and each token's KL, if rewards pay for it."""
        old, ref, mask = batch.old_log_probs, batch.ref_log_probs, batch.rollout.mask
        rewards = reward_per_token(batch.rewards, batch.rollout.responses, mask)
        if old is None or ref is None or self.config.kl_place == "loss":
            return rewards
        return kl_per_token(rewards, old, ref, self.beta, mask)

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


# --- actor_critic.reward_model


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
