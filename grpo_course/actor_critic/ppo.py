"""PPO as a judge for the one loop: deltas from a critic, and what the critic learns."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from grpo_course.actor_critic.critic import value_loss
from grpo_course.actor_critic.gae import (
    generalized_advantages,
    kl_per_token,
    require_gamma,
    require_lam,
    reward_per_token,
    whiten,
)
from grpo_course.algorithm.batch import Batch
from grpo_course.algorithm.rollout import Rollout
from grpo_course.algorithm.validation import (
    POSITIVE,
    require_at_least,
    require_inside,
)


@dataclass
class PPO:
    """A critic in the place of the group: a `Judge` for `algorithm.loop.train`.

    The optimizer must hold the critic's weights beside the policy's. The clipped
    loss is the loop's own. PPO: Schulman et al. 2017, arXiv 1707.06347.

    Raises ValueError for a knob out of range, and for an entropy bonus without a
    way to compute the entropy.
    """

    critic: Callable[[Rollout], Tensor]  # rollout -> values [... batch trial pos]
    gamma: float = 1.0  # discount per token
    lam: float = 0.95  # how far GAE trusts the rewards more than the critic
    whiten_deltas: bool = True
    value_weight: float = 0.5  # c_V
    value_clip: float | None = None  # in units of the reward; None: no clipping
    entropy_bonus: float = 0.0  # c_H
    entropy: Callable[[Rollout], Tensor] | None = None  # rollout -> nats [... batch]

    def __post_init__(self) -> None:
        require_gamma(self.gamma)
        require_lam(self.lam)
        if self.value_clip is not None:
            require_inside("value_clip", self.value_clip, POSITIVE, ", or None")
        require_at_least("value_weight", self.value_weight, 0)
        require_at_least("entropy_bonus", self.entropy_bonus, 0)
        if self.entropy_bonus and self.entropy is None:
            raise ValueError(
                f"entropy_bonus={self.entropy_bonus} needs entropy, a function from a "
                "rollout to the exact entropy of its policy. Minus the sampled "
                "log-probabilities will not do: their gradient is zero on average."
            )

    @torch.no_grad()
    def compare(
        self,
        rollout: Rollout,
        rewards: Tensor,
        old: Tensor,
        ref: Tensor | None,
        beta: float | Tensor = 0.0,
    ) -> tuple[Tensor, Tensor]:
        """Deltas [... batch trial pos], and what the critic learns from.

        That is [... batch trial 2*pos]: the returns, then the critic's values now,
        on one axis so that a minibatch can be cut out of both like of the rest.
        """
        values, mask = self.critic(rollout), rollout.mask
        token_rewards = reward_per_token(rewards, old, mask)
        if ref is not None:
            token_rewards = kl_per_token(token_rewards, old, ref, beta, mask)
        deltas = generalized_advantages(
            token_rewards, values, self.gamma, self.lam, mask
        )
        targets = torch.cat([deltas + values, values], dim=-1)
        return whiten(deltas, mask) if self.whiten_deltas else deltas, targets

    def extra_loss(self, batch: Batch, log_probs: Tensor) -> tuple[Tensor, dict]:
        """c_V times the value loss, minus c_H times the entropy; both in the record."""
        returns, old_values = batch.targets.chunk(2, dim=-1)
        mask, values = batch.rollout.mask, self.critic(batch.rollout)
        critic_loss = value_loss(values, returns, old_values, self.value_clip, mask)
        loss = self.value_weight * critic_loss
        record = {"value_loss": critic_loss.detach()}
        if self.entropy_bonus:
            entropy = self.entropy(batch.rollout).mean(-1)
            loss = loss - self.entropy_bonus * entropy
            record["entropy_now"] = entropy.detach()
        return loss, record
