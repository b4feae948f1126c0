"""The exercises of 07_zero_loss on lengths: what a token mean prints."""

import torch
from torch import Tensor

from grpo_course.algorithm.losses import compute_loss
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake

LENGTH_AXES = {"deltas": "batch trial", "lengths": "batch trial", "return": ""}


def token_mean_loss_at_ratio_one(deltas: Tensor, lengths: Tensor) -> Tensor:
    """[batch trial], int [batch trial] -> scalar, by the package's loss"""
    mask = torch.arange(int(lengths.max())) < lengths[..., None]
    old = torch.zeros(mask.shape)
    return compute_loss(
        old, deltas, "clipped", old, mask=mask, aggregation="token_mean"
    )


def _length_case(description: str, deltas: list, lengths: list) -> Case:
    args = {"deltas": torch.tensor(deltas), "lengths": torch.tensor(lengths)}
    return Case(description, args)


LONG_IS_GOOD = _length_case("longer is better", [[1.0, -1.0]], [[6, 2]])
TWO_GROUPS = _length_case(
    "two groups of three",
    [[2.0, -0.5, -1.5], [0.5, 0.5, -1.0]],
    [[4, 2, 1], [3, 9, 2]],
)
SQUARE = _length_case(
    "as many groups as responses",
    [[1.0, -3.0, 2.0], [0.0, 4.0, -4.0], [-1.0, -1.0, 2.0]],
    [[3, 1, 2], [2, 8, 3], [1, 3, 10]],
)

TOKEN_MEAN_LOSS_AT_RATIO_ONE = Exercise(
    key="7.3",
    name="token_mean_loss_at_ratio_one",
    solution=token_mean_loss_at_ratio_one,
    axes=LENGTH_AXES,
    cases=(LONG_IS_GOOD, TWO_GROUPS, SQUARE),
    mistakes=(
        Mistake(
            lambda d, n: (n * d).sum() / n.sum(),
            "The minus sign is missing: a loss falls where good responses gain.",
        ),
        Mistake(
            lambda d, n: -d.mean(),
            "This is the sequence mean, and zero. In a token mean a response "
            "counts once for each of its tokens.",
        ),
        Mistake(
            lambda d, n: -(n * d).mean(),
            "You divide by the number of responses. A token mean divides by the "
            "number of tokens: lengths.sum().",
        ),
        Mistake(
            lambda d, n: -(n * d).sum(),
            "You sum. A token mean divides by the number of tokens.",
        ),
        Mistake(
            lambda d, n: -(n * d).sum() / (d.numel() * n.max()),
            "You divide by the padded size. Padding is no token: lengths.sum().",
        ),
        Mistake(
            lambda d, n: -((n * d).sum(-1) / n.sum(-1)).mean(),
            "You take a token mean in each group and average them. The token mean "
            "runs over all tokens of the batch at once.",
        ),
        Mistake(
            lambda d, n: (-(n * d).sum(0) / n.sum(0)).mean(),
            "Your sums run over the batch axis only. Sum over both axes.",
        ),
        Mistake(
            lambda d, n: -(d / n).sum() / (1 / n).sum(),
            "You divide by the length. In a token mean a longer response weighs "
            "more, not less.",
        ),
    ),
    insight="No log-probability is in it: at ratio 1 the printed loss knows nothing "
    "about the policy.",
)


def length_covariance(deltas: Tensor, lengths: Tensor) -> Tensor:
    """[batch trial], int [batch trial] -> scalar, over N"""
    both = torch.stack([deltas.flatten(), lengths.flatten().to(deltas)])
    return torch.cov(both, correction=0)[0, 1]


def _spread(values: Tensor) -> Tensor:
    return values.float().std(correction=0)


def _by_group(deltas: Tensor, lengths: Tensor) -> Tensor:
    """The covariance inside each group, averaged."""
    pairs = zip(deltas, lengths, strict=True)
    return torch.stack([length_covariance(d, n) for d, n in pairs]).mean()


LENGTH_COVARIANCE = Exercise(
    key="7.4",
    name="length_covariance",
    solution=length_covariance,
    axes=LENGTH_AXES,
    cases=(
        LONG_IS_GOOD,
        TWO_GROUPS,
        _length_case(
            "deltas that are not centered",
            [[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]],
            [[2, 7, 4], [9, 1, 8]],
        ),
    ),
    mistakes=(
        Mistake(
            lambda d, n: length_covariance(d, n) * d.numel() / (d.numel() - 1),
            "You divide by N - 1: the sample covariance. The identity needs the "
            "plain mean, over N.",
        ),
        Mistake(
            lambda d, n: length_covariance(d, n) / (_spread(d) * _spread(n)),
            "This is the correlation. The covariance is not divided by the spreads.",
        ),
        Mistake(
            lambda d, n: -length_covariance(d, n),
            "The sign is reversed: the minus belongs to the loss. If longer is "
            "better, the covariance is positive.",
        ),
        Mistake(
            lambda d, n: length_covariance(d, n) * d.numel(),
            "You sum the products. The covariance is their mean.",
        ),
        Mistake(
            _by_group,
            "You centre lengths within each group. Here both means run over the "
            "whole batch.",
        ),
        Mistake(
            lambda d, n: (d * n).mean(),
            "Only right while the deltas average zero. Take the mean away from one "
            "of the two before you multiply.",
        ),
    ),
    insight="Its sign says whether the longer responses of this batch were better. "
    "That is all a token-mean loss shows on the first step.",
)

EXERCISES = (TOKEN_MEAN_LOSS_AT_RATIO_ONE, LENGTH_COVARIANCE)
