"""The exercises of 04_losses."""

import torch
from torch import Tensor

from grpo_course.algorithm.losses import compute_loss, loss_report
from grpo_course.algorithm.ratio import compute_ratio
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake, numbers


def _log_probs(*shape: int, apart: float) -> dict[str, Tensor]:
    """Two policies' log-probabilities, up to `apart` nats from each other."""
    old = -numbers(*shape).abs() - 1.2
    # Further along the same sine, so that new and old move on their own.
    new = old + numbers(2, *shape, scale=apart)[1]
    return {"log_probs": new, "old_log_probs": old}


TOKENS = "batch trial pos"
UNDERFLOW = (
    "exp(-200) rounds to zero, and 0/0 is not a number. Subtract first, while both "
    "are logarithms; exp comes last."
)


def compute_ratio_from_logs(log_probs: Tensor, old_log_probs: Tensor) -> Tensor:
    """[batch trial pos], [batch trial pos] -> [batch trial pos]"""
    return compute_ratio(log_probs, old_log_probs.detach())


COMPUTE_RATIO_FROM_LOGS = Exercise(
    key="4.1",
    name="compute_ratio_from_logs",
    solution=compute_ratio_from_logs,
    axes={"log_probs": TOKENS, "old_log_probs": TOKENS, "return": TOKENS},
    gradient_to=("log_probs", "old_log_probs"),
    cases=(
        Case(
            "p goes from .5 to .6, and from .5 to .25",
            {
                "log_probs": torch.tensor([[[0.6, 0.25]]]).log(),
                "old_log_probs": torch.tensor([[[0.5, 0.5]]]).log(),
            },
        ),
        Case("two prompts, two responses", _log_probs(2, 2, 3, apart=0.9)),
        Case(
            "tokens that are next to impossible",
            {
                "log_probs": torch.tensor([[[-200.0, -150.0]]]),
                "old_log_probs": torch.tensor([[[-199.5, -150.0]]]),
            },
            UNDERFLOW,
        ),
    ),
    mistakes=(
        Mistake(
            lambda new, old: new / old.detach(),
            "You divide log-probabilities. The ratio is a quotient of "
            "probabilities: exp of the difference of their logarithms.",
        ),
        Mistake(
            lambda new, old: new - old.detach(),
            "This is the logarithm of the ratio: the exp is missing. Where both "
            "policies agree, the ratio is 1, not 0.",
        ),
        Mistake(
            lambda new, old: (old.detach() - new).exp(),
            "Upside down: this is pi_old / pi. A token that became likelier has a "
            "ratio above 1.",
        ),
        Mistake(lambda new, old: new.exp() / old.detach().exp(), UNDERFLOW),
        Mistake(
            lambda new, old: (new - old).exp(),
            "The values are right, but pi_old is not frozen: a gradient flows into "
            "old_log_probs. Detach it.",
        ),
    ),
    insight="Subtract logarithms, then exp. pi_old is data here: no gradient enters.",
)


def clipped_surrogate_loss(
    log_probs: Tensor, old_log_probs: Tensor, deltas: Tensor
) -> Tensor:
    """[batch trial pos], [batch trial pos], [batch trial] -> scalar"""
    return compute_loss(log_probs, deltas, "clipped", old_log_probs, epsilon=0.2)


def _products(ratio: Tensor, deltas: Tensor) -> tuple[Tensor, Tensor]:
    """Every token's product, and its product with the clipped ratio."""
    return ratio * deltas[..., None], ratio.clamp(0.8, 1.2) * deltas[..., None]


def _smaller(ratio: Tensor, deltas: Tensor) -> Tensor:
    return torch.minimum(*_products(ratio, deltas))


def _turned(ratio: Tensor, deltas: Tensor) -> Tensor:
    """The smaller ratio, and only then the product."""
    return torch.minimum(ratio, ratio.clamp(0.8, 1.2)) * deltas[..., None]


def _one_token(ratio: float, delta: float) -> Case:
    side = "above" if ratio > 1 else "below"
    sign = "positive" if delta > 0 else "negative"
    args = {
        "log_probs": torch.tensor([[[0.02 * ratio]]]).log(),
        "old_log_probs": torch.tensor([[[0.02]]]).log(),
        "deltas": torch.tensor([[delta]]),
    }
    return Case(f"one token: ratio {side} the range, {sign} delta", args)


def _surrogate_case(description: str, *shape: int) -> Case:
    deltas = numbers(3, *shape[:-1], scale=2.0)[2]
    return Case(description, _log_probs(*shape, apart=0.6) | {"deltas": deltas})


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
    ),
    mistakes=(
        Mistake(
            lambda new, old, d: -torch.maximum(*_products((new - old).exp(), d)).mean(),
            "max for min: PPO takes the pessimist's side, the smaller product.",
        ),
        Mistake(
            lambda new, old, d: -_turned((new - old).exp(), d).mean(),
            "For negative delta you clip the wrong side (as min over ratios does: "
            "the order turns round). Multiply by delta first, then min.",
        ),
        Mistake(
            lambda new, old, d: -_products((new - old).exp(), d)[1].mean(),
            "Only the clipped product is left. Without the min, a token that was "
            "pushed the wrong way out of the range can never come back.",
        ),
        Mistake(
            lambda new, old, d: -_products((new - old).exp(), d)[0].mean(),
            "Nothing is clipped: this is the unclipped loss.",
        ),
        Mistake(
            lambda new, old, d: _smaller((new - old).exp(), d).mean(),
            "The minus sign is missing: an optimizer would minimise the objective.",
        ),
        Mistake(
            lambda new, old, d: -_smaller(new / old, d).mean(),
            "You divide log-probabilities. The ratio is exp of their difference.",
        ),
        Mistake(
            lambda new, old, d: -_smaller((new - old).mean(-1, True).exp(), d).mean(),
            "You average over pos before exp: one ratio for each response. Here "
            "every token has a ratio of its own.",
        ),
    ),
    insight="The min lets go of a token only where moving on would look like a gain.",
)


def _fraction(ratio: Tensor, deltas: Tensor, epsilon: float) -> Tensor:
    """[batch trial pos], [batch trial] -> scalar"""
    report = loss_report(ratio.log(), deltas, torch.zeros_like(ratio), epsilon=epsilon)
    return report["clip_fraction_low"] + report["clip_fraction_high"]


def _share(low: Tensor, high: Tensor) -> Tensor:
    return (low | high).float().mean()


def _fraction_case(
    description: str, ratio: list, deltas: list, epsilon: float = 0.2, hint: str = ""
) -> Case:
    args = {"ratio": torch.tensor([ratio]), "deltas": torch.tensor([deltas])}
    return Case(description, args | {"epsilon": epsilon}, hint)


CLIP_FRACTION = Exercise(
    key="4.3",
    name="clip_fraction",
    solution=_fraction,
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
    ),
    mistakes=(
        Mistake(
            lambda r, d, e: _share(r < 1 - e, r > 1 + e),
            "You count every token outside the range. One that must come back "
            "keeps its gradient: delta's sign decides.",
        ),
        Mistake(
            lambda r, d, e: _fraction(r, -d, e),
            "The sides are swapped: these are the tokens that must come back. A "
            "good token is let go above the range, a bad one below.",
        ),
        Mistake(
            lambda r, d, e: _fraction(r, d.clamp(min=0), e),
            "You count only good tokens above the range. Bad ones below it are "
            "let go too.",
        ),
        Mistake(
            lambda r, d, e: _share(
                (r < 1 - e) & (d <= 0)[..., None], (r > 1 + e) & (d >= 0)[..., None]
            ),
            "You count tokens whose delta is zero. They had no gradient that "
            "clipping could have taken.",
        ),
    ),
    insight="Outside the range is not clipped: some of it is on its way back.",
)

EXERCISES = (COMPUTE_RATIO_FROM_LOGS, CLIPPED_SURROGATE_LOSS, CLIP_FRACTION)
