"""A reference that moves towards the policy instead of jumping onto it."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Policy


class SoftReference(Trainer):
    """The next reference is `ref_mixture` * pi + (1 - `ref_mixture`) * pi_ref.

    Gorbatovski et al. 2024, arXiv 2404.09656 (TR-DPO).
    """

    def renew_reference(self) -> None:
        """The first one is a copy; later ones are mixed, weight by weight."""
        last = self.ref_policy
        super().renew_reference()
        if last is None or self.ref_policy is last:
            return
        with torch.no_grad():
            for old, new in zip(weights(last), weights(self.policy), strict=True):
                if old.is_floating_point():
                    old.lerp_(new.to(old), self.config.ref_mixture)
        self.ref_policy = last


def weights(policy: Policy) -> Iterator[Tensor]:
    """All weights and buffers of a policy, or of the modules among its attributes.

    A wrapper, as StaleSampler, scores with its `policy`: the weights are that one's.
    """
    while hasattr(policy, "policy") and not isinstance(policy, nn.Module):
        policy = policy.policy
    parts = [policy] if isinstance(policy, nn.Module) else vars(policy).values()
    modules = [part for part in parts if isinstance(part, nn.Module)]
    if not modules:
        raise TypeError(
            f"a {type(policy).__name__} holds no torch module, so its weights cannot "
            "be mixed. Keep the model as an attribute, or use ref_mixture=1."
        )
    for module in modules:
        yield from module.state_dict(keep_vars=True).values()
