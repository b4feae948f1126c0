"""The last exercise of 04_losses: a mean over responses of unequal length."""

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import aggregate, hide
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake, numbers

TOKENS = "batch trial pos"
ANYTHING = (
    "Padding may hold anything, and 0 * inf is not a number. Choose instead of "
    "multiplying: torch.where(mask, per_token, 0.0)."
)


def masked_sequence_mean(per_token: Tensor, mask: Tensor) -> Tensor:
    """[batch trial pos], bool [batch trial pos] -> scalar"""
    return aggregate(per_token, mask, "sequence_mean")


def _masked_case(description: str, lengths: list, hint: str = "", pad=0.5) -> Case:
    mask = torch.arange(max(*lengths, 4)) < torch.tensor([lengths])[..., None]
    per_token = torch.where(mask, numbers(*mask.shape), pad)
    return Case(description, {"per_token": per_token, "mask": mask}, hint)


EMPTY = (
    "A response without tokens makes 0/0. Divide by mask.sum(-1).clamp(min=1): "
    "then it adds zero, and still counts as a response."
)


MASKED_SEQUENCE_MEAN = Exercise(
    key="4.4",
    name="masked_sequence_mean",
    solution=masked_sequence_mean,
    axes={"per_token": TOKENS, "mask": TOKENS},
    gradient_to=("per_token",),
    cases=(
        _masked_case("two responses, of 2 and 6 tokens", [2, 6]),
        _masked_case("three responses", [1, 4, 3]),
        _masked_case("one response is empty", [3, 0, 5], EMPTY),
        _masked_case("infinity in the padding", [2, 4], ANYTHING, pad=float("inf")),
    ),
    mistakes=(
        Mistake(
            lambda x, m: hide(x, m).sum() / m.sum(),
            "This is the token mean: every token weighs the same. Here every "
            "response does: average each one first, then the averages.",
        ),
        Mistake(
            lambda x, m: hide(x, m).mean(),
            "You divide by the width of the tensor: the mask is forgotten in the "
            "denominator. Divide by each response's own length.",
        ),
        Mistake(
            lambda x, m: (x.sum(-1) / m.sum(-1).clamp(min=1)).mean(),
            "The mask is forgotten in the numerator: padding is summed too.",
        ),
        Mistake(lambda x, m: (hide(x, m).sum(-1) / m.sum(-1)).mean(), EMPTY),
        Mistake(lambda x, m: ((x * m).sum(-1) / m.sum(-1).clamp(1)).mean(), ANYTHING),
    ),
    insight="Every response weighs the same, so a token of a long one weighs less.",
)

EXERCISES = (MASKED_SEQUENCE_MEAN,)
