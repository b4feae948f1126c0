"""The last two exercises of 10_bug_hunt: an estimate of the KL, and a mean."""

import torch
from torch import Tensor

from grpo_course.algorithm.kl import k1, k2, k3
from grpo_course.classroom.bugs import tokens
from grpo_course.classroom.bugs.losses import PROBS, REF_PROBS, upside_down_k3
from grpo_course.classroom.exercise import Case, Exercise, Mistake


def repaired_k3(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """any shape, the same for both -> one value each"""
    return k3(log_probs, ref_log_probs.detach())


REPAIRED_K3 = Exercise(
    key="10.5",
    name="repaired_k3",
    solution=repaired_k3,
    gradient_to=("log_probs",),
    cases=(
        Case(
            "a token twice as likely as under the reference",
            {
                "log_probs": torch.tensor([0.5]).log(),
                "ref_log_probs": torch.tensor([0.25]).log(),
            },
        ),
        Case(
            "five tokens",
            {
                "log_probs": torch.tensor(PROBS).log(),
                "ref_log_probs": torch.tensor(REF_PROBS).log(),
            },
        ),
    ),
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


def _mean_case(description: str, lengths: list[int], size: int, hint="") -> Case:
    mask = torch.arange(6) < torch.tensor(lengths)[:, None]
    values = torch.arange(1.0, mask.numel() + 1).mul(1.7).sin().view(mask.shape)
    return Case(description, {"per_token": values, "mask": mask, "size": size}, hint)


def _piecewise(per_token: Tensor, mask: Tensor, size: int, weigh) -> Tensor:
    """The mean of each micro-batch, times its weight, added up."""
    pairs = zip(per_token.split(size), mask.split(size), strict=True)
    return sum((part * kept).sum() / kept.sum() * weigh(kept) for part, kept in pairs)


REPAIRED_TOKEN_MEAN = Exercise(
    key="10.6",
    name="repaired_token_mean",
    solution=tokens.repaired_token_mean,
    axes={"per_token": "row pos", "mask": "row pos"},
    gradient_to=("per_token",),
    cases=(
        _mean_case("four responses of unequal length, two at a time", [1, 2, 6, 5], 2),
        _mean_case("three responses, two at a time", [4, 1, 6], 2),
        _mean_case("one micro-batch is empty", [0, 3, 5], 1),
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

EXERCISES = (REPAIRED_K3, REPAIRED_TOKEN_MEAN)
