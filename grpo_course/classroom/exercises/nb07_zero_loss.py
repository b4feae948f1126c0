"""The exercises of 07_zero_loss on gradients and ties."""

import torch
from torch import Tensor

from grpo_course.algorithm.losses import compute_loss
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake


def gradient_by_log_probs(deltas: Tensor, mask: Tensor) -> Tensor:
    """[batch trial], bool [batch trial pos] -> [batch trial pos], by autograd"""
    log_probs = torch.zeros(mask.shape, requires_grad=True)
    old = log_probs.detach().clone()
    loss = compute_loss(log_probs, deltas, "clipped", old, mask=mask)
    return torch.autograd.grad(loss, log_probs)[0]


def _mask_case(description: str, deltas: list, lengths: list, hint="") -> Case:
    lengths = torch.tensor(lengths)
    mask = torch.arange(int(lengths.max())) < lengths[..., None]
    return Case(description, {"deltas": torch.tensor(deltas), "mask": mask}, hint)


EMPTY = (
    "A response without tokens makes 0/0. Give its length a floor: "
    "mask.sum(-1).clamp(min=1)."
)


def _share(deltas: Tensor, mask: Tensor) -> Tensor:
    """Minus delta over the length of the response, as [batch trial 1]."""
    return (-deltas / mask.sum(-1).clamp(min=1))[..., None]


GRADIENT_BY_LOG_PROBS = Exercise(
    key="7.1",
    name="gradient_by_log_probs",
    solution=gradient_by_log_probs,
    axes={"deltas": "batch trial", "mask": "batch trial pos"}
    | {"return": "batch trial pos"},
    cases=(
        _mask_case("two responses, of 1 and 3 tokens", [[1.0, -1.0]], [[1, 3]]),
        _mask_case(
            "two groups of three",
            [[2.0, -0.5, -1.5], [0.5, 0.5, -1.0]],
            [[4, 2, 1], [3, 3, 2]],
        ),
        _mask_case(
            "all axes of the same size",
            [[1.0, -3.0, 2.0], [0.0, 4.0, -4.0], [-1.0, -1.0, 2.0]],
            [[3, 1, 2], [2, 2, 3], [1, 3, 1]],
        ),
        _mask_case("a response without tokens", [[1.5, -1.5]], [[2, 0]], EMPTY),
    ),
    mistakes=(
        Mistake(
            lambda d, m: torch.zeros(m.shape),
            "You return zero everywhere: that is the value of the loss. Its "
            "gradient does not vanish where delta is not zero.",
        ),
        Mistake(
            lambda d, m: -_share(d, m) * m / d.numel(),
            "The sign is reversed. A loss must fall when a better response gets "
            "likelier: the gradient is negative where delta is positive.",
        ),
        Mistake(
            lambda d, m: -d[..., None] * m / d.numel(),
            "The length is missing: a response's tokens share its weight, so each "
            "gets 1 / length of it.",
        ),
        Mistake(
            lambda d, m: _share(d, m) * m,
            "The mean over responses is missing: divide by their number, "
            "deltas.numel().",
        ),
        Mistake(
            lambda d, m: _share(d, m) * m / d.shape[-1],
            "You divide by G alone. The mean runs over all responses of the batch: "
            "divide by deltas.numel().",
        ),
        Mistake(
            lambda d, m: _share(d, m).expand(m.shape) / d.numel(),
            "Padding gets a gradient: multiply by the mask.",
        ),
        Mistake(
            lambda d, m: -d[..., None] * m / m.sum(),
            "This belongs to the token mean, which divides by all tokens. The "
            "sequence mean divides by each response's own length, then by N.",
        ),
        Mistake(
            lambda d, m: -d[..., None] * m / m.numel(),
            "You divide by the width of the tensor, padding included. The length "
            "of a response is what its mask sums to.",
        ),
        Mistake(lambda d, m: (-d / m.sum(-1) / d.numel())[..., None] * m, EMPTY),
    ),
    insight="The value of the loss is the sum of the deltas, which cancel; the "
    "gradient gives every token its own, and nothing cancels.",
)


def find_tied_groups(rewards: Tensor) -> Tensor:
    """[batch trial] -> bool [batch]"""
    return rewards.amax(-1) == rewards.amin(-1)


def _rewards_case(description: str, rewards: list, hint: str = "") -> Case:
    return Case(description, {"rewards": torch.tensor(rewards)}, hint)


ROUNDING = (
    "Eight rewards of 0.1 tie, but their computed mean is not quite 0.1. Compare "
    "rewards with each other: largest against smallest."
)

FIND_TIED_GROUPS = Exercise(
    key="7.2",
    name="find_tied_groups",
    solution=find_tied_groups,
    axes={"rewards": "batch trial", "return": "batch"},
    cases=(
        _rewards_case(
            "all right, all wrong, mixed, mixed",
            [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0], [2.0, 0.0, 4.0]],
        ),
        _rewards_case("first and last agree", [[3.0, 1.0, 3.0], [5.0, 5.0, 5.0]]),
        _rewards_case("sums to zero", [[-1.0, 1.0], [-1.0, -1.0]]),
        _rewards_case("eight rewards that tie at 0.1", [[0.1] * 8], ROUNDING),
        _rewards_case(
            "a small difference",
            [[1.0, 1.001, 1.0], [0.3, 0.3, 0.3]],
            "A small difference is a difference: normalizing makes it as large as "
            "any. Ask whether the rewards are equal, not whether they are close.",
        ),
    ),
    mistakes=(
        Mistake(
            lambda r: (r == 0).all(-1),
            "You find groups where all are wrong. A group where all are right "
            "teaches nothing either.",
        ),
        Mistake(
            lambda r: (r == 1).all(-1),
            "You find groups where all are right. A group where all are wrong "
            "teaches nothing either.",
        ),
        Mistake(
            lambda r: r.amax(-1) != r.amin(-1),
            "The other way round: these are the groups that teach something.",
        ),
        Mistake(
            lambda r: r.amax(0) == r.amin(0),
            "You compare across prompts. A group is a row: its responses lie along "
            "trial, the last axis.",
        ),
        Mistake(
            lambda r: (r.amax(-1) == r.amin(-1)).all(),
            "One answer for the whole batch. Each group needs its own: keep the "
            "batch axis.",
        ),
        Mistake(
            lambda r: r[..., 0] == r[..., -1],
            "You look at the first and the last response only. All of the group "
            "must agree.",
        ),
        Mistake(lambda r: r.std(-1) == 0, ROUNDING),
        Mistake(lambda r: (r == r.mean(-1, keepdim=True)).all(-1), ROUNDING),
        Mistake(
            lambda r: r.amax(-1) - r.amin(-1) < 0.01,
            "A small difference is a difference: normalizing makes it as large as "
            "any. Ask whether the rewards are equal, not whether they are close.",
        ),
    ),
    insight="Loss zero and gradient zero: this share near 1 with a low reward is "
    "the run that is really stuck.",
)


EXERCISES = (GRADIENT_BY_LOG_PROBS, FIND_TIED_GROUPS)
