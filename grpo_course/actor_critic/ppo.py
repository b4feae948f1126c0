"""PPO in the one loop: deltas from a critic, and what the critic learns."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from grpo_course.actor_critic.critic import value_loss
from grpo_course.actor_critic.gae import (
    generalized_advantages,
    kl_per_token,
    reward_per_token,
    whiten,
)
from grpo_course.algorithm.config import TrainConfig, require_config
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Batch, Rollout
from grpo_course.algorithm.settings import settings
from grpo_course.algorithm.validation import require_callable


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
        batch, config = super().collect(prompts), self.config
        values, mask = self.critic(batch.rollout), batch.rollout.mask
        rewards, after = self.token_rewards(batch), self.value_after(batch.rollout)
        knobs = config.gamma, config.lam
        deltas = generalized_advantages(rewards, values, *knobs, mask, after)
        targets = torch.cat([deltas + values, values], dim=-1)
        deltas = whiten(deltas, mask) if config.whiten_deltas else deltas
        return replace(batch, deltas=deltas, targets=targets)

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
