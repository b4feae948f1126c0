"""The exact claims of 14_exact_answers: a seed is a policy, nothing is sampled."""

from functools import partial

import torch
from torch import Tensor

from claims.claim import BEST, RATES_OF_NOTHING, Claim, Setting
from claims.short_world import World, gradient
from grpo_course.formulas import compute_deltas, kl_values

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
        "in small groups, redrawing tied groups favours it more.",
        partial(weight, kind="redrawn"),
        partial(weight, kind="normalized"),
        leave_out=RATES_OF_NOTHING | {"other prompts": "the least likely is rare"},
    ),
    Claim(
        "14.whole",
        "only k2 of the whole response has the exact gradient",
        partial(kl_cosine, whole=True),
        partial(kl_cosine, whole=False),
        leave_out=RATES_OF_NOTHING | {"other prompts": "the KL knows no reward"},
    ),
)
