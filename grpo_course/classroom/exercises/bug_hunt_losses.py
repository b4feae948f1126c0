"""The exercises of 10_bug_hunt on losses: ratio, clip, KL, token mean."""

import torch
from torch import Tensor

from grpo_course.algorithm.kl import k1, k2, k3
from grpo_course.algorithm.losses import clipped_loss, unclipped_loss
from grpo_course.classroom.bugs import tokens
from grpo_course.classroom.bugs.losses import (
    PROBS,
    REF_PROBS,
    quotient_loss,
    upside_down_k3,
    wrong_side_loss,
)
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake, numbers

TOKENS = "batch trial pos"
LOSS_AXES = dict.fromkeys(("log_probs", "deltas", "old_log_probs", "return"), TOKENS)


def repaired_ratio_loss(
    log_probs: Tensor, deltas: Tensor, old_log_probs: Tensor, **_
) -> Tensor:
    """[batch trial pos] each -> the loss of each token"""
    return unclipped_loss(log_probs, deltas, old_log_probs=old_log_probs.detach())


def repaired_clip_loss(
    log_probs: Tensor,
    deltas: Tensor,
    old_log_probs: Tensor,
    epsilon: float,
    epsilon_high: float,
    **_,
) -> Tensor:
    """[batch trial pos] each -> the loss of each token"""
    clip = {"epsilon": epsilon, "epsilon_high": epsilon_high}
    return clipped_loss(log_probs, deltas, old_log_probs=old_log_probs, **clip)


def _loss_case(description: str, ratio: list, deltas: list, **clip) -> Case:
    """One token in each response, with probability 0.2 under the old policy."""
    old = torch.full((1, len(ratio), 1), 0.2).log()
    new = old + torch.tensor(ratio)[:, None].log()
    args = {"log_probs": new, "deltas": torch.tensor([deltas])[..., None]}
    return Case(description, args | {"old_log_probs": old} | clip)


def _many_tokens(**clip) -> Case:
    old = -numbers(2, 2, 3).abs() - 1.2
    args = {"log_probs": old + numbers(2, 2, 2, 3, scale=0.6)[1]}
    args |= {"deltas": numbers(3, 2, 2, 3, scale=2.0)[2], "old_log_probs": old}
    return Case("two prompts, two responses, three tokens", args | clip)


REPAIRED_RATIO_LOSS = Exercise(
    key="10.1",
    name="repaired_ratio_loss",
    solution=repaired_ratio_loss,
    axes=LOSS_AXES,
    gradient_to=("log_probs",),
    cases=(
        _loss_case("a good token, twice as likely as it was", [2.0], [1.0]),
        _loss_case("a bad token, half as likely as it was", [0.5], [-1.0]),
        _many_tokens(),
    ),
    mistakes=(
        Mistake(
            lambda new, d, old: quotient_loss(new, d, old_log_probs=old),
            "Still a quotient of log-probabilities. They are negative: a token "
            "that becomes likelier makes this quotient smaller.",
        ),
        Mistake(
            lambda new, d, old: -(old - new).exp() * d,
            "Upside down: the ratio is new over old, so subtract old from new.",
        ),
        Mistake(
            lambda new, d, old: -(new - old) * d,
            "This difference is the logarithm of the ratio: exp is missing.",
        ),
        Mistake(
            lambda new, d, old: (new - old).exp() * d,
            "The minus sign is missing: an optimizer makes a loss smaller.",
        ),
        Mistake(
            lambda new, d, old: -new * d,
            "This is the naive loss: it forgets who sampled. Weigh by the ratio.",
        ),
    ),
    insight="A quotient of probabilities is exp of a difference of logarithms.",
)


def _products(new: Tensor, d: Tensor, old: Tensor, low: float, high: float) -> tuple:
    ratio = (new - old).exp()
    return ratio * d, ratio.clamp(1 - low, 1 + high) * d


CORNERS = (
    ("bad, but likelier", 1.5, -1.0),
    ("bad and rarer", 0.5, -1.0),
    ("good and likelier", 1.5, 1.0),
    ("good, but rarer", 0.5, 1.0),
)

REPAIRED_CLIP_LOSS = Exercise(
    key="10.2",
    name="repaired_clip_loss",
    solution=repaired_clip_loss,
    axes=LOSS_AXES,
    gradient_to=("log_probs",),
    cases=(
        *(
            _loss_case(f"a {name} token", [ratio], [d], epsilon=0.2, epsilon_high=0.3)
            for name, ratio, d in CORNERS
        ),
        _many_tokens(epsilon=0.2, epsilon_high=0.3),
    ),
    mistakes=(
        Mistake(
            lambda new, d, old, low, high: wrong_side_loss(
                new, d, old_log_probs=old, epsilon=low, epsilon_high=high
            ),
            "Still on the wrong side: where delta is negative you keep the larger "
            "product. The sign of delta turns the order round by itself.",
        ),
        Mistake(
            lambda *args: -torch.maximum(*_products(*args)),
            "max for both signs: now good tokens run away, too. Take the smaller.",
        ),
        Mistake(
            lambda *args: -_products(*args)[1],
            "Only the clipped product is left: a bad token that became likelier "
            "can never come back. Compare it with the free product.",
        ),
        Mistake(
            lambda *args: -_products(*args)[0],
            "Nothing is clipped: this is the unclipped loss.",
        ),
        Mistake(
            lambda *args: torch.minimum(*_products(*args)),
            "The minus sign is missing: an optimizer makes a loss smaller.",
        ),
        Mistake(
            lambda new, d, old, low, high: (
                -torch.minimum(*_products(new, d, old, low, low))
            ),
            "The upper end is 1 + epsilon_high: the range need not be symmetric.",
        ),
    ),
    insight="One minimum for either sign: it lets go only where moving on looks good.",
)


def _kl_case(description: str, probs: list, ref: list) -> Case:
    log_probs, ref_log_probs = torch.tensor(probs).log(), torch.tensor(ref).log()
    return Case(description, {"log_probs": log_probs, "ref_log_probs": ref_log_probs})


KL_CASES = (
    _kl_case("a token twice as likely as under the reference", [0.5], [0.25]),
    _kl_case("five tokens", PROBS, REF_PROBS),
    _kl_case("two responses of two tokens", [PROBS[:2]] * 2, [REF_PROBS[:2]] * 2),
)


def repaired_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """any shape, the same for both -> one value each"""
    return k3(log_probs, ref_log_probs.detach())


REPAIRED_K3 = Exercise(
    key="10.10",
    name="repaired_k3",
    solution=repaired_k3,
    gradient_to=("log_probs",),
    cases=KL_CASES,
    mistakes=(
        Mistake(
            upside_down_k3,
            "Still upside down: the quotient in k3 is ref/pi, because the samples "
            "come from pi.",
        ),
        Mistake(
            lambda new, ref: (ref - new).exp() - (ref - new),
            "The -1 is missing: where both agree, k3 is 0.",
        ),
        Mistake(
            lambda new, ref: (ref - new).exp() - 1 - (new - ref),
            "Only the exp is turned: exp(d) - 1 - d has the same d twice.",
        ),
        Mistake(k1, "This is k1: right on average, often negative. k3 never is."),
        Mistake(k2, "This is k2: close to k3 near zero, but biased as a value."),
    ),
    insight="ref/pi has mean 1 under pi, so ref/pi - 1 takes noise away and no KL.",
)


def repaired_penalty(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """any shape, the same for both -> one value each"""
    return k2(log_probs, ref_log_probs.detach())


REPAIRED_PENALTY = Exercise(
    key="10.11",
    name="repaired_penalty",
    solution=repaired_penalty,
    gradient_to=("log_probs",),
    cases=KL_CASES,
    mistakes=(
        Mistake(k1, "Still k1: its slope is 1 at every token, and pulls nowhere."),
        Mistake(
            lambda new, ref: (new - ref) ** 2,
            "Twice too large: a plain square pulls twice as hard, as if beta were "
            "doubled. (If you detached a factor, its slope may be right; the plain "
            "function is asked.)",
        ),
        Mistake(
            lambda new, ref: (new - ref).abs(),
            "The slope of this is a sign, 1 or -1. The pull must grow with the "
            "distance: what has the distance as its slope?",
        ),
        Mistake(
            k3,
            "This is the value of k3, and its mean gradient is that of KL(ref||pi). "
            "(If you weigh it by a ratio, the slope may be right; a plain function of "
            "the difference is asked.)",
        ),
        Mistake(
            lambda new, ref: (new - ref).detach() * new,
            "The gradient is right, the value is not: where both agree, 0 is "
            "expected. It would confuse whoever reads the log.",
        ),
    ),
    insight="Slope log(pi/ref): no pull at the reference, more the further away.",
)


def _mean_case(description: str, lengths: list[int], size: int, hint="") -> Case:
    mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    values = torch.arange(1.0, mask.numel() + 1).mul(1.7).sin().view(mask.shape)
    return Case(description, {"per_token": values, "mask": mask, "size": size}, hint)


def _piecewise(per_token: Tensor, mask: Tensor, size: int, weigh) -> Tensor:
    """The mean of each micro-batch, times its weight, added up."""
    pairs = zip(per_token.split(size), mask.split(size), strict=True)
    return sum((part * kept).sum() / kept.sum() * weigh(kept) for part, kept in pairs)


REPAIRED_TOKEN_MEAN = Exercise(
    key="10.12",
    name="repaired_token_mean",
    solution=tokens.repaired_token_mean,
    axes={"per_token": "row pos", "mask": "row pos"},
    gradient_to=("per_token",),
    cases=(
        _mean_case("four responses of unequal length, two at a time", [1, 2, 6, 5], 2),
        _mean_case("three responses, two at a time", [4, 1, 6], 2),
        _mean_case(
            "one micro-batch is empty",
            [0, 3, 5],
            1,
            "0/0: this piece has no token, so it has no mean. Add sums, divide once.",
        ),
    ),
    mistakes=(
        Mistake(
            tokens.mean_of_means,
            "Still a mean of means: a token in a short micro-batch weighs more. "
            "Divide every sum by the number of tokens of the whole batch.",
        ),
        Mistake(
            lambda x, m, size: _piecewise(x, m, size, lambda k: len(k) / len(m)),
            "You weigh by responses. This is a mean over tokens: weigh each "
            "micro-batch by its tokens.",
        ),
        Mistake(
            lambda x, m, size: _piecewise(x, m, size, lambda k: 1.0),
            "The means are added: more micro-batches give a larger loss.",
        ),
        Mistake(
            lambda x, m, size: (x * m).sum() / m.numel(),
            "Padding is counted in the denominator. Count the mask's tokens.",
        ),
        Mistake(
            lambda x, m, size: ((x * m).sum(-1) / m.sum(-1).clamp(min=1)).mean(),
            "This is the sequence mean: each response weighs the same.",
        ),
    ),
    insight="Count the tokens of the whole batch first, then go through the pieces.",
)
