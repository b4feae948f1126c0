"""The claims of 14_exact_answers on ratios: one stale policy, nothing is sampled.

A larger rate makes it more stale.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from claims.claim import BEST, Claim, Setting
from claims.short_world import World, gradient


def judged(setting: Setting, level: str, what: str, clip: float | None = None):
    """The relative error of a ratio's average gradient, or its noise. -> [seed]"""
    world = World(setting)
    old = world.random_logits(setting.seeds)
    new = old
    for _ in range(10):
        new = new + 2 * setting.rate * world.ascend(new).reshape(new.shape)
    new = new.detach().requires_grad_()
    log_probs = world.log_probs(old)
    ratio = world.log_probs(new) - log_probs
    whole = ratio.sum(-1, keepdim=True).expand_as(ratio)
    ratio = {"token": ratio, "whole": whole, "ignored": 0 * whole}[level]
    chance = log_probs.sum(-1).exp()
    deltas = world.reward - (chance @ world.reward)[:, None]
    weighed = ratio.detach().exp() * deltas[..., None]
    if clip:
        over = (ratio.exp() > 1 + clip) & (deltas[..., None] > 0)
        under = (ratio.exp() < 1 - clip) & (deltas[..., None] < 0)
        weighed = weighed.masked_fill(over | under, 0)
    true = world.ascend(new)
    mean = gradient(
        (chance[..., None] * weighed * world.log_probs(new)).sum((1, 2)), new
    )
    if what == "error":
        return (mean - true).norm(dim=1) / true.norm(dim=1)
    return noise(world, new, weighed, chance) / true.norm(dim=1)


def noise(world: World, new: Tensor, weighed: Tensor, chance: Tensor) -> Tensor:
    """The standard deviation of one response's gradient. -> [seed]"""
    states = one_hot(world.states).double() * world.mask[..., None]
    scores = one_hot(world.responses) - new.detach().softmax(-1)[:, world.states]
    each = torch.einsum("nap,aps,napt->nast", weighed, states, scores).flatten(2)
    mean = (chance[..., None] * each).sum(1)
    return ((chance * each.square().sum(-1)).sum(-1) - mean.square().sum(-1)).sqrt()


CLAIMS = (
    Claim(
        "14.ratio",
        "Only the ratio of the whole response makes no error.",
        partial(judged, level="whole", what="error"),
        lambda setting: 0.0,
        within=1e-6,
        leave_out={BEST: "the exact ratio is exact at any"},
    ),
    Claim(
        "14.noise",
        "It pays with noise, so the batch decides;",
        partial(judged, level="whole", what="noise"),
        partial(judged, level="token", what="noise"),
        leave_out={BEST: "noise is not to be had large"},
    ),
    Claim(
        "14.clipped",
        "under a clip it errs more than no ratio at all.",
        partial(judged, level="whole", what="error", clip=0.2),
        partial(judged, level="ignored", what="error", clip=0.2),
        leave_out={BEST: "an error is not to be had large"},
    ),
)
