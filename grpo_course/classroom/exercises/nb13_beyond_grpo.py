"""The exercises of 13_beyond_grpo."""

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import (
    NEXT_TO_IMPOSSIBLE,
    TOKENS,
    case,
    mask_of,
    numbers,
)
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake
from grpo_course.formulas import aggregate, compute_loss, hide

# Each exercise has a case with two prompts: with one, a lost batch axis is no mistake.


def _dr_grpo(per_token: Tensor, mask: Tensor, max_length: int) -> Tensor:
    return aggregate(per_token, mask, "constant", max_length=max_length)


def _dapo(per_token: Tensor, mask: Tensor) -> Tensor:
    return aggregate(per_token, mask, "token_mean")


def _prompt_means(per_token: Tensor, mask: Tensor) -> Tensor:
    return (hide(per_token, mask).sum((1, 2)) / mask.sum((1, 2))).mean()


def _means_case(description: str, lengths: list, max_length: int) -> Case:
    mask = mask_of(lengths, 6)
    per_token = torch.where(mask, numbers(*mask.shape), 0.3)
    return case(description, per_token=per_token, mask=mask, max_length=max_length)


def two_means(per_token, mask, max_length):
    """[batch trial pos], bool [batch trial pos], int -> [2]"""
    total = (per_token * mask).sum()
    responses = mask.shape[0] * mask.shape[1]
    return torch.stack([total / mask.sum(), total / (responses * max_length)])


SAME_SHAPE = "only its shape or size along an axis is used here"

TWO_MEANS = Exercise(
    key="13.1",
    name="two_means",
    solution=two_means,
    axes={"per_token": TOKENS, "mask": TOKENS},
    gradient_to=("per_token",),
    cases=(
        _means_case("responses of 2 and 6 tokens, at most 6", [[2, 6]], 6),
        _means_case("two prompts, at most 10", [[2, 6, 3], [1, 4, 5]], 10),
        _means_case("three prompts, one response each", [[2], [6], [1]], 8),
    ),
    mistakes=(
        Mistake(
            lambda x, m, n: torch.stack([aggregate(x, m), _dr_grpo(x, m, n)]),
            "The first is the sequence mean of GRPO: each response averaged for "
            "itself. DAPO divides the sum of all tokens by the number of all tokens.",
        ),
        Mistake(
            lambda x, m, n: torch.stack([_dapo(x, m), aggregate(x, m, "constant")]),
            "The second divides by the width of the tensor. The width is that of the "
            "longest response, so it changes from batch to batch; max_length does "
            "not.",
        ),
        Mistake(
            lambda x, m, n: torch.stack([_dapo(x, m), hide(x, m).sum() / n]),
            "The second divides by max_length, but not by the number of responses: a "
            "larger batch would be a larger loss.",
        ),
        Mistake(
            lambda x, m, n: torch.stack([_dr_grpo(x, m, n), _dapo(x, m)]),
            "The right two numbers in the wrong order: DAPO first.",
        ),
        Mistake(
            lambda x, m, n: torch.stack(
                [x.sum() / m.sum(), x.sum() / (m[..., 0].numel() * n)]
            ),
            "Padding is counted: multiply by the mask first.",
        ),
        Mistake(
            lambda x, m, n: torch.stack([hide(x, m).mean(), _dr_grpo(x, m, n)]),
            "The first divides by every position, padding too. DAPO divides by the "
            "number of tokens that count, mask.sum().",
        ),
        Mistake(
            lambda x, m, n: torch.stack([_prompt_means(x, m), _dr_grpo(x, m, n)]),
            "The first averages each prompt for itself. DAPO divides once, for the "
            "whole batch: a token weighs the same wherever it stands.",
        ),
        Mistake(
            lambda x, m, n: torch.stack(
                [_dapo(x, m), hide(x, m).sum() / (m.shape[1] * n)]
            ),
            "The second counts the responses of one prompt only. The batch has "
            "mask.shape[0] * mask.shape[1] responses.",
        ),
    ),
    equivalent={
        "factor twice": "a mask is its own square",
        "per_token": SAME_SHAPE,
        "~mask": SAME_SHAPE,
        "mask[:1]": SAME_SHAPE,
    },
    insight="Neither looks at a response's own length. They differ by one number for "
    "the batch. Adam does not see a number that stays the same; this one moves with "
    "the mean length.",
)


OWN_LENGTH = "Each response has a length of its own, mask.sum(-1)."


def _ratio_case(description: str, lengths: list, apart: float) -> Case:
    mask = mask_of(lengths, 6)
    new = -numbers(*mask.shape).abs() - 0.1
    shift = torch.linspace(-apart, apart, mask.numel()).reshape(mask.shape) + 0.1
    return case(description, log_probs=new, old_log_probs=new - shift, mask=mask)


def sequence_ratio(log_probs, old_log_probs, mask):
    """three times [batch trial pos] -> [batch trial]"""
    log_ratio = ((log_probs - old_log_probs) * mask).sum(-1)
    return (log_ratio / mask.sum(-1)).exp()


SEQUENCE_RATIO = Exercise(
    key="13.2",
    name="sequence_ratio",
    solution=sequence_ratio,
    axes=dict.fromkeys(("log_probs", "old_log_probs", "mask"), TOKENS)
    | {"return": "batch trial"},
    gradient_to=("log_probs",),
    cases=(
        _ratio_case("responses of 2 and 6 tokens", [[2, 6]], 0.8),
        _ratio_case("two prompts, three responses", [[2, 6, 3], [1, 4, 5]], 0.5),
        _ratio_case("one response of one token", [[1]], 0.4),
    ),
    words={
        "not divided": "This is the ratio of the whole response, without the length: "
        "for a long one it is far from 1 in no time. GSPO takes the mean of the "
        "logarithms.",
        "difference turned": "Upside down: pi stands above, pi_old below.",
        "exp lost": "This is the logarithm of the ratio: the exp is missing.",
        "mask.sum()": "You divide by the tokens of the whole batch. " + OWN_LENGTH,
    },
    mistakes=(
        Mistake(
            lambda a, b, m: hide((a - b).exp(), m).sum(-1) / m.sum(-1),
            "This is the arithmetic mean of the token ratios. Take the mean of their "
            "logarithms, and exp last.",
        ),
        Mistake(
            lambda a, b, m: (a - b).mean(-1).exp(),
            "The mask is forgotten: padding takes part in the mean.",
        ),
        Mistake(
            lambda a, b, m: hide(a - b, m).mean(-1).exp(),
            "You divide by the width of the tensor: .mean(-1) takes padding for "
            "tokens. Divide by the response's own length, mask.sum(-1).",
        ),
    ),
    equivalent={
        "factor twice": "a mask is its own square",
    },
    insight="One ratio a response: it is clipped or kept as a whole, and its range "
    "is much narrower, because a mean of many tokens moves little.",
)

BOUND = 1.2


def _ratio(new: Tensor, old: Tensor) -> Tensor:
    return (new - old).exp()


def _weight(new: Tensor, old: Tensor) -> Tensor:
    return _ratio(new, old).clamp(max=BOUND).detach()


def _pulled(weight: Tensor, deltas: Tensor, log_probs: Tensor) -> Tensor:
    return -(weight * deltas[..., None] * log_probs).mean()


def _loss_case(description: str, ratios: list, deltas: list) -> Case:
    log_ratios = torch.tensor(ratios).log()
    old = -5.0 - numbers(*log_ratios.shape, scale=0.4).abs()
    new = old + log_ratios
    return case(description, log_probs=new, old_log_probs=old, deltas=deltas)


def weighted_loss(log_probs, old_log_probs, deltas):
    """[batch trial pos] twice, [batch trial] -> scalar"""
    ratio = (log_probs - old_log_probs).exp()
    weight = ratio.clamp(max=1.2).detach()
    return -(weight * deltas[..., None] * log_probs).mean()


WEIGHTED_LOSS = Exercise(
    key="13.3",
    name="weighted_loss",
    solution=weighted_loss,
    axes={"log_probs": TOKENS, "old_log_probs": TOKENS, "deltas": "batch trial"},
    gradient_to=("log_probs",),
    cases=(
        _loss_case(
            "two prompts, ratios 0.5 to 2.5",
            [
                [[0.5, 2.0], [1.1, 0.7], [1.5, 1.0]],
                [[0.9, 1.3], [2.5, 0.6], [1.4, 0.8]],
            ],
            [[1.0, -2.0, 0.5], [-1.0, 0.3, 2.0]],
        ),
        _loss_case(
            "all far above the bound", [[[1.6, 50.0], [2.2, 1.4]]], [[1.0, -1.0]]
        ),
        _loss_case("far below", [[[0.01, 0.3], [0.02, 0.1]]], [[1.0, -1.0]]),
        NEXT_TO_IMPOSSIBLE,
    ),
    words={
        "detach lost": "The weight is not frozen: a gradient flows through the ratio "
        "too. Detach the bounded ratio.",
        "weight * deltas[..., None]": "This is the bounded ratio times delta, without "
        "log pi: above the bound nothing pulls. CISPO weighs delta log pi, so every "
        "token pulls.",
        "clamp lost": "The ratio has no bound. Clamp it from above, at 1.2.",
        "clamp two-sided": "You bound the ratio from below too. Only the upper bound "
        "is used here.",
        "clamp turned": "min=1.2 bounds from below: no weight is under 1.2 then. The "
        "bound is from above, max=1.2.",
        "difference turned": "The ratio is upside down: pi stands above, pi_old below.",
        "sign lost": "The minus sign is missing: an optimizer minimizes.",
        "sum for mean": "This is the sum over all tokens. Take their mean, or a "
        "larger batch is a larger loss.",
        "(weight * deltas[..., None] * log_probs).sum(dim=0).mean()": "You divide by "
        "the tokens of one prompt. Divide by those of all prompts.",
    },
    mistakes=(
        Mistake(
            lambda a, b, d: compute_loss(a, d, "clipped", b),
            "This is PPO's clipped loss: it takes the gradient of the tokens that it "
            "clips. CISPO weighs delta log pi, so every token pulls.",
        ),
        Mistake(
            lambda a, b, d: _pulled(_weight(a, b) * (_ratio(a, b) <= BOUND), d, a),
            "Tokens above the bound are dropped. CISPO keeps them, with weight 1.2.",
        ),
        Mistake(
            lambda a, b, d: _pulled(_ratio(a, b).clamp(max=BOUND), d, a.detach()),
            "log pi is detached. It is the weight that is frozen; log pi is where the "
            "gradient comes from.",
        ),
        Mistake(
            lambda a, b, d: -(_weight(a, b) * d.T * a).mean(),
            "deltas.T has the axes [trial batch], and fits by accident. Deltas need "
            "one more axis at the end: deltas[..., None].",
        ),
    ),
    equivalent={
        "gradient in part": "the weight is detached as a whole",
        "log_probs.detach()": "the weight is detached as a whole",
    },
    insight="The clip of PPO takes a token's gradient; the bound of CISPO only limits "
    "its weight.",
)


def _weights_case(description: str, lengths: list, width: int, shift: float) -> Case:
    mask = mask_of(lengths, width)
    ratio = numbers(*mask.shape, scale=0.8, shift=shift).exp()
    return case(description, ratio=ratio, mask=mask)


def _product(ratio: Tensor, mask: Tensor) -> Tensor:
    """The ratio of each response. -> [seed batch trial 1]"""
    return hide(ratio.log(), mask).sum(-1, keepdim=True).exp()


def response_weights(ratio, mask):
    """[seed batch trial pos], bool of the same shape -> the same shape"""
    return torch.where(mask, ratio, 1.0).prod(-1, keepdim=True) * mask


MULTIPLIED_IN = (
    "The mask is not used before the product, so the ratios of the padding are "
    "multiplied in. Put a 1 in their places first."
)

RESPONSE_WEIGHTS = Exercise(
    key="13.4",
    name="response_weights",
    solution=response_weights,
    axes=dict.fromkeys(("ratio", "mask", "return"), "seed " + TOKENS),
    cases=(
        case(
            "responses of 1 and 3 tokens",
            ratio=[[[[2.0, 7.0, 9.0], [0.5, 2.0, 3.0]]]],
            mask=[[[[True, False, False], [True, True, True]]]],
        ),
        _weights_case(
            "two seeds, two prompts, three responses",
            [[[2, 4, 3], [1, 4, 2]], [[4, 1, 3], [2, 3, 4]]],
            4,
            0.0,
        ),
        _weights_case("three seeds, one response each", [[[3]], [[2]], [[5]]], 6, 1.0),
        _weights_case("no padding", [[[3, 3], [3, 3]]], 3, 2.0),
    ),
    words={
        "mask inverted": "The mask is the wrong way round: you multiply the padding, "
        "and put a 1 where a token stands.",
    },
    mistakes=(
        Mistake(lambda r, m: r.prod(-1, keepdim=True) * m, MULTIPLIED_IN),
        Mistake(lambda r, m: r.prod(-1, keepdim=True).expand_as(r), MULTIPLIED_IN),
        Mistake(
            lambda r, m: (r * m).prod(-1, keepdim=True) * m,
            "You multiply by the mask before the product: one padding token is a 0 "
            "among the factors, and all is 0. A place that does not count is a 1.",
        ),
        Mistake(
            lambda r, m: torch.where(m, r, 1.0).cumprod(-1) * m,
            "This is the prefix product: it counts only the tokens so far. Here a "
            "token weighs by all tokens of its response, those behind it too.",
        ),
        Mistake(
            lambda r, m: _product(r, m) ** (1 / m.sum(-1, keepdim=True)) * m,
            "This is the geometric mean, GSPO's ratio, which stays nearer to 1. The "
            "product has no root.",
        ),
        Mistake(
            lambda r, m: hide(r, m).sum(-1, keepdim=True) / m.sum(-1, keepdim=True) * m,
            "This is the mean of the ratios. That two tokens come one after the other "
            "has the product of their probabilities: multiply.",
        ),
        Mistake(
            lambda r, m: hide(r, m).sum(-1, keepdim=True) * m,
            "This is the sum of the ratios. That two tokens come one after the other "
            "has the product of their probabilities: multiply.",
        ),
        Mistake(
            lambda r, m: _product(r, m).squeeze(-1),
            "This is one number for each response. Every token needs it: keep the pos "
            "axis (keepdim=True), and spread it over the tokens.",
        ),
        Mistake(
            lambda r, m: _product(r, m),
            "The pos axis has size 1: this is one weight for each response. Spread it "
            "over the tokens, with 0 at the padding.",
        ),
        Mistake(
            lambda r, m: _product(r, m).expand_as(r),
            "The product is right, but it stands at the padding too. There the weight "
            "is 0.",
        ),
        Mistake(
            lambda r, m: torch.where(m, _product(r, m), 1.0),
            "The product is right, but the padding has weight 1. It is no token, so "
            "its weight is 0.",
        ),
        Mistake(
            lambda r, m: hide(r, m),
            "These are the tokens' own ratios, the second of the four ways. The "
            "product over the response is missing.",
        ),
    ),
    equivalent={"factor twice": "a mask is its own square"},
    insight="Every factor counts, so the weights of long responses spread widely. "
    "GSPO's geometric mean keeps them near 1.",
)
