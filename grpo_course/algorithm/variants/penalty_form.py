"""PPO's other form: a price on the distance from pi_old, in place of the clip."""

import math

import torch
from torch import Tensor

from grpo_course.algorithm.history import History
from grpo_course.algorithm.kl import k3
from grpo_course.algorithm.ratio import compute_ratio
from grpo_course.algorithm.validation import require_inside


class PenaltyForm:
    """-r delta + c KL(pi_old||pi), with a price c that follows a target for the KL.

    To train with it: LOSS_MODES["penalty"] = form.loss, and watch=form.adapt. The
    target is in nats a token. The paper calls c beta, which here is the weight of
    pi_ref. Schulman et al. 2017, arXiv 1707.06347, section 4.
    """

    def __init__(self, target: float):
        require_inside("target", target, {"above": 0, "below": math.inf})
        self.target, self.price = target, torch.tensor(1.0)

    def loss(
        self, log_probs: Tensor, deltas: Tensor, *, old_log_probs: Tensor, **_
    ) -> Tensor:
        """[... batch trial pos] each -> the same; the price is [] or [seed]."""
        distance = k3(old_log_probs, log_probs)  # of samples of pi_old: KL(pi_old||pi)
        price = self.price[..., None, None, None]
        return price * distance - compute_ratio(log_probs, old_log_probs) * deltas

    def adapt(self, history: History) -> None:
        """After an epoch, double a price that was too low, halve one too high."""
        kl = history.records[-1]["old_kl"]  # as its last step found it
        rise = torch.where(kl > 1.5 * self.target, 2.0, 1.0)
        self.price = self.price * torch.where(kl < self.target / 1.5, 0.5, rise)
