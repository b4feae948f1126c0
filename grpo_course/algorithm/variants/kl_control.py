"""Other ways to keep a policy close: beta that adapts, KL in the reward, a brake."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from grpo_course.algorithm.kl import GAIN, LARGEST_ERROR, as_beta, kl_reward
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Batch, Rollout
from grpo_course.algorithm.validation import (
    require_finite,
    require_inside,
    require_number,
)


def adapted_beta(
    beta: float | Tensor,
    kl: float | Tensor,
    target: float,
    gain: float = GAIN,
    largest_error: float = LARGEST_ERROR,
) -> float | Tensor:
    """beta (1 + gain clip(kl / target - 1, -largest_error, largest_error)).

    kl and target in nats; with a kl for each seed, [seed], beta becomes [seed] too. The
    defaults move beta by at most 2 %: Ziegler et al. 2019, arXiv 1909.08593, 2.2. Where
    a program has a horizon, as verl's controller, gain is the samples of a step over
    that horizon. Raises ValueError for a kl that is not finite, a gain or a largest
    error outside (0, 1].
    """
    require_number("kl", kl)
    kl = kl if isinstance(kl, Tensor) else torch.tensor(kl, dtype=torch.float64)
    require_finite("kl", kl)
    as_beta(beta, kl, "beta")  # refuses one below 0
    require_inside("target", target, {"above": 0, "below": math.inf})
    for name, value in (("gain", gain), ("largest_error", largest_error)):
        require_inside(name, value, {"above": 0, "at most": 1}, ", or beta would jump")
    factor = 1 + gain * (kl / target - 1).clamp(-largest_error, largest_error)
    return beta * (factor if factor.ndim else factor.item())


class AdaptiveKL(Trainer):
    """After each epoch beta moves, until the KL of its last step is `kl_target`."""

    def end_epoch(self) -> None:
        """Before anybody looks, so that a checkpoint has the beta of the next epoch."""
        kl, target = self.history.records[-1]["kl"], self.config.kl_target
        if target is not None:
            self.beta = adapted_beta(self.beta, kl, target, self.config.kl_gain)
        super().end_epoch()


class KLInReward(Trainer):
    """Each response pays beta times its k1; the loss has no penalty."""

    def compare(
        self, rollout: Rollout, rewards: Tensor, old: Tensor | None, ref: Tensor | None
    ) -> Tensor:
        """Deltas of what is left after paying."""
        if old is not None and ref is not None:
            rewards = kl_reward(rewards, old, ref, self.beta, rollout.mask)
        return super().compare(rollout, rewards, old, ref)

    def add_kl(
        self, loss: Tensor, log_probs: Tensor, old: Tensor, batch: Batch
    ) -> tuple[Tensor, dict]:
        """The KL is measured all the same."""
        _, kl = super().add_kl(loss, log_probs, old, batch)
        return loss, kl


class EarlyStop(Trainer):
    """PPO's brake: an epoch ends after a step that sees KL(pi_old||pi) too large.

    The KL is measured before a step, so the step that is seen above `stop_kl` was
    taken too.
    """

    def inner_batches(self, batch: Batch) -> Iterator[Batch]:
        """No further one once the limit is passed. Raises ValueError for many seeds."""
        limit = self.config.stop_kl
        for part in super().inner_batches(batch):
            yield part
            kl = self.history.records[-1]["old_kl"]
            if kl.numel() > 1:  # an optimizer with momentum moves a stopped seed too
                raise ValueError(
                    f"stop_kl={limit}, but {kl.numel()} seeds train together, and each "
                    "would stop at another step. Train them one by one, or use "
                    "stop_kl=None."
                )
            if kl.item() > limit:
                return
