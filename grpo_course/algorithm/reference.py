"""The reference policy: a frozen copy, now and then moved towards the policy."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from grpo_course.algorithm.rollout import Policy


@torch.no_grad()
def sync_reference(
    ref_policy: Policy | None, policy: Policy, mixture: float = 1.0
) -> Policy:
    """The next reference: mixture * pi + (1 - mixture) * pi_ref, weight by weight.

    Without a reference yet, or with mixture 1, a copy of the policy. Soft and hard
    updates: Gorbatovski et al. 2024, arXiv 2404.09656 (TR-DPO).
    """
    if ref_policy is None or mixture == 1:
        return copy.deepcopy(policy)
    for old, new in zip(weights(ref_policy), weights(policy), strict=True):
        if old.is_floating_point():
            old.lerp_(new.to(old), mixture)
    return ref_policy


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
