"""The exact claims of 14_exact_answers. A seed is a random policy; nothing is sampled.

A longer variation has longer responses, other prompts have another right answer.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from grpo_course.algorithm.deltas import compute_deltas
from grpo_course.algorithm.kl import kl_values
from grpo_course.claims.claim import BEST, RATES_OF_NOTHING, Claim, Setting
from grpo_course.sequences.enumerated import ShortAnswers
from grpo_course.sorting.exact import (
    all_responses,
    exact_gradient_variance,
    response_probs,
)

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

    def chances(self, logits: Tensor) -> Tensor:
        """Of every response. [seed state token] -> [seed all]"""
        return self.log_probs(logits).sum(-1).exp()

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


# Which mean is the policy gradient?


def cosine(setting: Setting, mean: str) -> Tensor:
    """Of the average update with the true gradient. -> [seed]"""
    world = World(setting)
    policies = world.random_logits(setting.seeds)
    update = world.update(policies, mean)
    return torch.cosine_similarity(update, world.ascend(policies), dim=1)


def early_length(setting: Setting, mean: str) -> Tensor:
    """The expected length after eight steps of equal size. -> [seed]"""
    world = World(setting)
    logits = world.random_logits(setting.seeds)
    for _ in range(8):
        step = world.update(logits, mean)
        step = 0.3 * setting.rate * step / step.norm(dim=1, keepdim=True)
        logits = logits + step.reshape(logits.shape)
    return world.chances(logits) @ world.lengths


# How much does a difficult prompt count?


def weight(setting: Setting, kind: str) -> Tensor:
    """Of a prompt whose right answer is the least likely one, by its centered weight.

    Groups of 2, 4 or 8: every outcome, its deltas from the package. -> [seed]
    """
    world, size = World(Setting()), round(4 * setting.length)
    logits = world.random_logits(setting.seeds)
    rate = world.chances(logits).min(-1).values.requires_grad_()  # its solve rate
    outcomes = torch.cartesian_prod(*[torch.tensor([0.0, 1.0]).double()] * size)
    log_probs = torch.where(outcomes > 0, rate.log()[:, None, None], 0)
    log_probs = log_probs + torch.where(outcomes > 0, 0, (-rate).log1p()[:, None, None])
    chance = log_probs.detach().sum(-1).exp()
    mode = "normalized_rewards" if kind == "normalized" else "centered_rewards"
    pull = (chance * (compute_deltas(outcomes, mode) * log_probs).mean(-1)).sum(-1)
    push = torch.autograd.grad(pull.sum(), rate)[0] / (1 - 1 / size)
    mixed = 1 - rate**size - (1 - rate) ** size
    return (push / mixed if kind == "redrawn" else push).detach()


def root_of_size(setting: Setting) -> float:
    return round(4 * setting.length) ** 0.5


# Five ratios, one stale policy.


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
    if level == "whole":
        ratio = ratio.sum(-1, keepdim=True).expand_as(ratio)
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


# Which KL term lands where it should?


def kl_cosine(setting: Setting, whole: bool) -> Tensor:
    """Of k2's average gradient with that of the KL of whole responses. -> [seed]"""
    world = World(setting)
    logits = world.random_logits(setting.seeds).requires_grad_()
    others = range(1000 + setting.seeds[0], 1000 + setting.seeds[-1] + 1)
    new, ref = world.log_probs(logits), world.log_probs(world.random_logits(others))
    chance = new.sum(-1).exp()
    true = (chance * (new - ref).sum(-1)).sum(-1)
    if whole:
        new, ref = new.sum(-1, keepdim=True), ref.sum(-1, keepdim=True)
    values = kl_values(new, ref, "k2").sum(-1)
    term = (chance.detach() * values).sum(-1)
    exact = torch.autograd.grad(true.sum(), logits, retain_graph=True)[0].flatten(1)
    return torch.cosine_similarity(gradient(term, logits), exact, dim=1)


# When the policy is nearly sure.


def baseline_noise(setting: Setting, with_mean: bool) -> Tensor:
    """The noise of a policy that is right nearly always. -> [seed]"""
    places = round(2 + setting.length)
    target = torch.tensor([0, 1, 2, 3]) if setting.prompts else torch.tensor([0, 1, 2])
    target = target.repeat(2)[:places]
    paid = (all_responses(5, places) == target).all(-1).double()
    found = []
    for seed in setting.seeds:
        draw = torch.Generator().manual_seed(seed)
        logits = torch.randn(places, 5, generator=draw).double() / 2
        logits = logits + 6 * one_hot(target, 5)
        right = (response_probs(logits) * paid).sum().item() if with_mean else 0.0
        found.append(exact_gradient_variance(logits, paid, right).sqrt())
    return torch.stack(found)


MEANS = "the token mean nearly, the mean per response does not"
LONGER = {BEST: "a longer response is not better"}
CLAIMS = (
    Claim(
        "14.constant",
        "A constant divisor gives the direction of the policy gradient exactly,",
        partial(cosine, mean="constant"),
        lambda setting: 1.0,
        within=1e-6,
        leave_out=RATES_OF_NOTHING,
    ),
    Claim(
        "14.token",
        MEANS,
        partial(cosine, mean="token"),
        partial(cosine, mean="per response"),
        leave_out=RATES_OF_NOTHING,
    ),
    Claim(
        "14.drift",
        "early on it wrote longer answers, where most were wrong.",
        partial(early_length, mean="per response"),
        partial(early_length, mean="constant"),
        leave_out=LONGER,
    ),
    Claim(
        "14.difficulty",
        "Dividing by the spread gives a prompt that is hardly ever solved $\\sqrt G$ "
        "times its centered weight;",
        partial(weight, kind="normalized"),
        root_of_size,
        within=0.02,
        leave_out=RATES_OF_NOTHING | {"other prompts": "the least likely is rare"},
    ),
    Claim(
        "14.redrawn",
        "redrawing tied groups favours it more.",
        partial(weight, kind="redrawn"),
        partial(weight, kind="normalized"),
        leave_out=RATES_OF_NOTHING | {"other prompts": "the least likely is rare"},
    ),
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
        "under a clip it is no longer an advantage.",
        partial(judged, level="whole", what="error", clip=0.2),
        partial(judged, level="token", what="error", clip=0.2),
        leave_out={BEST: "an error is not to be had large"},
    ),
    Claim(
        "14.whole",
        "only k2 of the whole response has the exact gradient",
        partial(kl_cosine, whole=True),
        partial(kl_cosine, whole=False),
        leave_out=RATES_OF_NOTHING,
    ),
    Claim(
        "14.sure",
        "When a policy is nearly sure, the expected reward is no good baseline.",
        partial(baseline_noise, with_mean=True),
        partial(baseline_noise, with_mean=False),
        leave_out=RATES_OF_NOTHING,
    ),
)
