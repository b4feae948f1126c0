"""Does the scorer agree with the sampler? A probe, before a run takes hours.

A sampler reads token by token, a scorer all tokens at once, so they round differently.
"""

import torch
from torch import Generator, Tensor

from grpo_course.language_model.policy import CausalPolicy

# The mean over tokens that rounding explains, in nats. Measured on CPUs with models of
# up to 24 layers: at most 5e-6 in float32, and 0.032 in bfloat16, which has 8 bits.
# There, single tokens differed by up to 0.19.
EXPECTED = {None: 1e-4, torch.bfloat16: 0.05}


@torch.no_grad()
def sampler_gap(
    policy: CausalPolicy, prompts: Tensor, num_responses: int = 2
) -> Tensor:
    """How far the score of each sampled token is from what the sampler noted. [token]

    int [batch pos] in. In nats. Random numbers are the probe's own.
    """
    generator = Generator(policy.model.device).manual_seed(0)
    writer = CausalPolicy(policy.model, policy.sampler, generator, policy.autocast)
    rollout = writer.sample(prompts, num_responses)
    assert rollout.sampled_log_probs is not None
    gaps = (writer.log_probs(rollout) - rollout.sampled_log_probs).abs()
    return gaps.flatten() if rollout.mask is None else gaps[rollout.mask]


def probe_line(policy: CausalPolicy, prompts: Tensor) -> str:
    """The gap beside what rounding explains, in words."""
    gaps, expected = sampler_gap(policy, prompts), EXPECTED[policy.autocast]
    dtype = "float32" if policy.autocast is None else "bfloat16"
    told = (
        f"Scores differ from what the sampler noted by {gaps.mean():.2g} nats a token, "
        f"{gaps.max():.2g} at most; rounding in {dtype} explains {expected:g}."
    )
    if gaps.mean() <= expected:
        return told
    cure = "" if policy.autocast is None else " Try --dtype float32."
    return f"{told} This is more: the gradient would be of another policy.{cure}"
