"""Short responses of which one is right: the world of the exact claims of 14.

A longer variation has longer responses, other prompts have another right answer.
"""

import torch
from torch import Tensor

from claims.claim import Setting
from grpo_course.formulas import compute_deltas
from grpo_course.sequences import ShortAnswers

RIGHT = ([0, 1], [1])  # and then the end


class World(ShortAnswers):
    """The 31 responses of up to four tokens, one of them right; or 15, or 127."""

    def __init__(self, setting: Setting):
        super().__init__(num_words=2, longest=round(2 + 2 * setting.length))
        words = RIGHT[setting.prompts]
        right = torch.tensor([*words, self.end])
        start = self.responses[:, : len(right)]
        self.reward = (start == right).all(-1).double()
        every = torch.arange(len(self.responses))
        self.pairs = torch.cartesian_prod(every, every)

    def ascend(self, logits: Tensor) -> Tensor:
        """The true gradient of the expected reward. -> [seed weight]"""
        logits = logits.detach().requires_grad_()
        return gradient(self.chances(logits) @ self.reward, logits)

    def update(self, logits: Tensor, mean: str) -> Tensor:
        """That of groups of two under one of the means. -> [seed weight]"""
        logits = logits.detach().requires_grad_()
        log_probs = self.log_probs(logits).sum(-1)[:, self.pairs]
        length = self.lengths[self.pairs]
        weight = {
            "per response": 1 / length / 2,
            "token": 1 / length.sum(-1, keepdim=True),
            "constant": torch.full_like(length, 1 / 8),
        }[mean]
        deltas = compute_deltas(self.reward[self.pairs], "centered_rewards")
        chance = log_probs.detach().sum(-1).exp()
        return gradient((chance * (deltas * weight * log_probs).sum(-1)), logits)


def gradient(values: Tensor, logits: Tensor) -> Tensor:
    """Of each seed's value by its own logits. -> [seed weight]"""
    return torch.autograd.grad(values.sum(), logits)[0].flatten(1)
