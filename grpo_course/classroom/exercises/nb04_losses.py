"""The exercises of 04_losses."""

import torch
from torch import Tensor

from grpo_course.classroom.exercises.shared import (
    ANYTHING,
    NEXT_TO_IMPOSSIBLE,
    NOT_CLIPPED,
    TOKENS,
    TOO_EARLY,
    case,
    mask_of,
    numbers,
    products,
)
from grpo_course.classroom.old_check.exercise import Case, Exercise, Mistake
from grpo_course.formulas import hide, loss_report


def _log_probs(*shape: int, apart: float) -> dict:
    """Two policies' log-probabilities, up to `apart` nats from each other."""
    old = -numbers(*shape).abs() - 1.2
    # Further along the same sine, so that new and old move on their own.
    new = old + numbers(2, *shape, scale=apart)[1]
    return {"log_probs": new, "old_log_probs": old}


def compute_ratio_from_logs(log_probs, old_log_probs):
    """float [batch trial pos] twice -> float [batch trial pos]"""
    return torch.exp(log_probs - old_log_probs.detach())


COMPUTE_RATIO_FROM_LOGS = Exercise(
    key="4.1",
    name="compute_ratio_from_logs",
    solution=compute_ratio_from_logs,
    axes={"log_probs": TOKENS, "old_log_probs": TOKENS, "return": TOKENS},
    gradient_to=("log_probs", "old_log_probs"),
    cases=(
        case(
            "p goes from .5 to .6, and from .5 to .25",
            log_probs=torch.tensor([[[0.6, 0.25]]]).log(),
            old_log_probs=torch.tensor([[[0.5, 0.5]]]).log(),
        ),
        case("two prompts, two responses", **_log_probs(2, 2, 3, apart=0.9)),
        case(
            "tokens that are next to impossible",
            TOO_EARLY,
            log_probs=[[[-200.0, -150.0]]],
            old_log_probs=[[[-199.5, -150.0]]],
        ),
        case(
            "ratios far from 1",
            "Nothing bounds a ratio here: take exp of the difference as it is, however "
            "large it is. The loss clips later.",
            log_probs=[[[-1.0, -5.0]], [[-3.0, -0.5]]],
            old_log_probs=[[[-5.0, -1.0]], [[-0.5, -4.5]]],
        ),
    ),
    words={
        "log_probs / old_log_probs.detach()": "You divide log-probabilities. The "
        "ratio is a quotient of probabilities: exp of the difference of their "
        "logarithms.",
        "exp lost": "This is the logarithm of the ratio: the exp is missing. Where "
        "both policies agree, the ratio is 1, not 0.",
        "difference turned": "Upside down: this is pi_old / pi. A token that became "
        "likelier has a ratio above 1.",
        "detach lost": "The values are right, but pi_old is not frozen: a gradient "
        "flows into old_log_probs. Detach it.",
    },
    mistakes=(
        Mistake(
            lambda new, old: (new - old.detach()).exp().clamp(0.8, 1.2),
            "You clip the ratio. It is asked for as it is: clipping is the next "
            "exercise.",
        ),
    ),
    insight="Subtract logarithms, then exp. pi_old is data here: no gradient enters.",
)


def _turned(ratio: Tensor, deltas: Tensor) -> Tensor:
    """The smaller ratio, and only then the product."""
    return torch.minimum(ratio, ratio.clamp(0.8, 1.2)) * deltas[..., None]


def _clipped(ratio: Tensor, deltas: Tensor) -> Tensor:
    """[batch trial pos], [batch trial] -> scalar"""
    return -torch.minimum(*products(ratio, deltas[..., None])).mean()


def _one_token(ratio: float, delta: float) -> Case:
    side = "above" if ratio > 1 else "below"
    sign = "positive" if delta > 0 else "negative"
    return case(
        f"one token: ratio {side} the range, {sign} delta",
        log_probs=torch.tensor([[[0.02 * ratio]]]).log(),
        old_log_probs=torch.tensor([[[0.02]]]).log(),
        deltas=[[delta]],
    )


def _surrogate_case(description: str, *shape: int) -> Case:
    deltas = numbers(3, *shape[:-1], scale=2.0)[2]
    return case(description, **_log_probs(*shape, apart=0.6), deltas=deltas)


def clipped_surrogate_loss(log_probs, old_log_probs, deltas):
    """float [batch trial pos] twice, float [batch trial] -> scalar"""
    ratio = torch.exp(log_probs - old_log_probs)
    clipped = ratio.clamp(0.8, 1.2)
    deltas = deltas[..., None]
    return -torch.minimum(ratio * deltas, clipped * deltas).mean()


CLIPPED_SURROGATE_LOSS = Exercise(
    key="4.2",
    name="clipped_surrogate_loss",
    solution=clipped_surrogate_loss,
    axes={"log_probs": TOKENS, "old_log_probs": TOKENS, "deltas": "batch trial"},
    gradient_to=("log_probs",),
    cases=(
        _one_token(1.5, 1.0),
        _one_token(1.5, -1.0),
        _one_token(0.5, 1.0),
        _one_token(0.5, -1.0),
        _surrogate_case("two prompts, two responses", 2, 2, 3),
        _surrogate_case("all axes of the same size", 3, 3, 3),
        case(
            "ratios of 50 and 0.01, and a delta of zero",
            "No ratio has another bound than 0.8 and 1.2, and every token counts in "
            "the mean, also one whose loss is zero.",
            log_probs=torch.tensor([[[0.5, 0.001]] * 3]).log(),
            old_log_probs=torch.tensor([[[0.01, 0.1]] * 3]).log(),
            deltas=[[1.0, -1.0, 0.0]],
        ),
        NEXT_TO_IMPOSSIBLE,
    ),
    words={
        "min for max": "max for min: PPO takes the pessimist's side, the smaller "
        "product.",
        "clipped * deltas": "Only the clipped product is left. Without the min, a "
        "token that was pushed the wrong way out of the range can never come back.",
        "clamp lost": NOT_CLIPPED,
        "sign lost": "The minus sign is missing: an optimizer would minimize the "
        "objective.",
        "log_probs / old_log_probs": "You divide log-probabilities. The ratio is exp "
        "of their difference.",
        "added up early": "You average over pos before exp: one ratio for each "
        "response. Here every token has a ratio of its own.",
    },
    mistakes=(
        Mistake(
            lambda new, old, d: -_turned((new - old).exp(), d).mean(),
            "For negative delta you clip the wrong side (as min over ratios does: the "
            "order is reversed). Multiply by delta first, then min.",
        ),
        Mistake(
            lambda new, old, d: _clipped((new - old).sum(-1, True).exp(), d),
            "You add up over pos before exp: one ratio for the whole response. Here "
            "every token has a ratio of its own, and the mean comes last.",
        ),
    ),
    insight="The min lets go of a token only where moving on would look like a gain.",
)


def _fraction(ratio: Tensor, deltas: Tensor, epsilon: float) -> Tensor:
    """[batch trial pos], [batch trial] -> scalar"""
    old = torch.full_like(ratio, -9.0, dtype=torch.float64)
    report = loss_report(old + ratio.double().log(), deltas, old, epsilon=epsilon)
    return report["clip_fraction_low"] + report["clip_fraction_high"]


def _share(low: Tensor, high: Tensor) -> Tensor:
    return (low | high).float().mean()


def _fraction_case(
    description: str, ratio: list, deltas: list, epsilon: float = 0.2, hint: str = ""
) -> Case:
    return case(description, hint, ratio=[ratio], deltas=[deltas], epsilon=epsilon)


TWO_PROMPTS = case(
    "two prompts, two responses",
    ratio=[[[0.9, 0.5], [1.1, 3.0]], [[50.0, 1.0], [0.01, 0.9]]],
    deltas=[[-1.0, 2.0], [0.5, -0.5]],
    epsilon=0.2,
)


def clip_fraction(ratio, deltas, epsilon):
    """float [batch trial pos], float [batch trial], number -> scalar"""
    deltas = deltas[..., None]
    high = (ratio > 1 + epsilon) & (deltas > 0)
    low = (ratio < 1 - epsilon) & (deltas < 0)
    return (low | high).float().mean()


CLIP_FRACTION = Exercise(
    key="4.3",
    name="clip_fraction",
    solution=clip_fraction,
    axes={"ratio": TOKENS, "deltas": "batch trial"},
    cases=(
        _fraction_case(
            "one better, one worse response",
            [[0.5, 1.5, 1.0, 2.0], [0.5, 1.5, 1.0, 2.0]],
            [1.0, -1.0],
        ),
        _fraction_case("only one, better", [[0.5, 1.3, 1.1, 1.0, 0.7]], [0.5]),
        _fraction_case(
            "a response whose delta is zero", [[0.5, 1.5], [3.0, 0.1]], [0.0, 1.0]
        ),
        _fraction_case(
            "as many responses as positions",
            [[0.5, 1.5, 1.0], [0.7, 0.6, 1.9], [2.0, 2.0, 0.9]],
            [1.0, -2.0, 0.5],
        ),
        _fraction_case(
            "a wider range",
            [[0.7, 1.3, 1.6]],
            [1.0],
            0.5,
            "Your range is always the same. Its width is the argument epsilon.",
        ),
        TWO_PROMPTS,
        case(
            "another prompt, where more is let go",
            ratio=[[[0.5, 1.5], [2.0, 1.0]], [[0.5, 1.0], [0.6, 0.7]]],
            deltas=[[1.0, -1.0], [-1.0, -2.0]],
            epsilon=0.2,
        ),
    ),
    words={
        "difference turned": "You count only good tokens above the range. Bad ones "
        "below it are let go too.",
    },
    mistakes=(
        Mistake(
            lambda r, d, e: _share(r < 1 - e, r > 1 + e),
            "You count every token outside the range. One that must come back keeps "
            "its gradient: delta's sign decides.",
        ),
        Mistake(
            lambda r, d, e: _fraction(r, -d, e),
            "The sides are swapped: these are the tokens that must come back. A good "
            "token is let go above the range, a bad one below.",
        ),
        Mistake(
            lambda r, d, e: _share(
                (r < 1 - e) & (d <= 0)[..., None], (r > 1 + e) & (d >= 0)[..., None]
            ),
            "You count tokens whose delta is zero. They had no gradient that clipping "
            "could have taken.",
        ),
    ),
    equivalent={
        "ratio >= 1 + epsilon": "no ratio lies exactly on the bound",
        "ratio <= 1 - epsilon": "no ratio lies exactly on the bound",
    },
    insight="Outside the range does not mean clipped: some tokens are on their way "
    "back.",
)

EMPTY = (
    "A response without tokens makes 0/0. Divide by mask.sum(-1).clamp(min=1): "
    "then it adds zero, and still counts as a response."
)


def _masked_case(description: str, lengths: list, hint: str = "", pad=0.5) -> Case:
    mask = mask_of(lengths, 6)
    per_token = torch.where(mask, numbers(*mask.shape), pad)
    return case(description, hint, per_token=per_token, mask=mask)


def masked_sequence_mean(per_token, mask):
    """float [batch trial pos], bool [batch trial pos] -> scalar"""
    kept = torch.where(mask, per_token, 0.0)
    lengths = mask.sum(dim=-1).clamp(min=1)
    return (kept.sum(dim=-1) / lengths).mean()


MASKED_SEQUENCE_MEAN = Exercise(
    key="4.4",
    name="masked_sequence_mean",
    solution=masked_sequence_mean,
    axes={"per_token": TOKENS, "mask": TOKENS},
    gradient_to=("per_token",),
    cases=(
        _masked_case("two responses, of 2 and 6 tokens", [[2, 6]]),
        _masked_case("two prompts, three responses", [[1, 4, 3], [6, 2, 5]]),
        _masked_case("one response is empty", [[3, 0, 5]], EMPTY),
        _masked_case("infinity in the padding", [[2, 4]], ANYTHING, pad=float("inf")),
        _masked_case("NaN in the padding", [[3], [5]], ANYTHING, pad=float("nan")),
        case(
            "NaN in a token that counts",
            "This NaN is no padding, and it must come out: nan_to_num would turn a "
            "broken loss into a harmless number. Avoid 0/0 by clamp(min=1) instead.",
            per_token=[[[0.5, float("nan"), 0.0], [1.0, 2.0, 3.0]]],
            mask=mask_of([[2, 3]]),
        ),
    ),
    words={
        "mask lost": "The mask is forgotten in the numerator: padding is summed too.",
        "floor lost": EMPTY,
    },
    mistakes=(
        Mistake(
            lambda x, m: hide(x, m).sum() / m.sum(),
            "This is the token mean: every token weighs the same. Here every response "
            "does: average each one first, then the averages.",
        ),
        Mistake(
            lambda x, m: hide(x, m).mean(),
            "You divide by the width of the tensor: the mask is forgotten in the "
            "denominator. Divide by each response's own length.",
        ),
    ),
    insight="Every response weighs the same, so a token of a long one weighs less.",
)
