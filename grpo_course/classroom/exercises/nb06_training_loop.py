"""The exercises of 06_training_loop."""

import torch
from torch import Tensor

from grpo_course.algorithm.kl import compute_kl_penalty
from grpo_course.algorithm.losses import compute_loss
from grpo_course.classroom.check.exercise import Case, Exercise, Mistake


def refresh_epochs(num_epochs: int, period: int) -> list[int]:
    """The epochs that begin with a new copy of the reference."""
    return list(range(0, num_epochs, period))


def _period_case(description: str, num_epochs: int, period: int) -> Case:
    return Case(description, {"num_epochs": num_epochs, "period": period})


REFRESH_EPOCHS = Exercise(
    key="6.2",
    name="refresh_epochs",
    solution=refresh_epochs,
    cases=(
        _period_case("10 epochs, a copy every 3", 10, 3),
        _period_case("9 epochs, a copy every 3", 9, 3),
        _period_case("a copy in every epoch", 4, 1),
        _period_case("a period longer than the run", 5, 10),
        _period_case("no epochs at all", 0, 3),
    ),
    mistakes=(
        Mistake(
            lambda n, p: list(range(p, n, p)),
            "Epoch 0 is missing: without a copy there, the first epochs have no "
            "reference to compare with.",
        ),
        Mistake(
            lambda n, p: list(range(0, n + 1, p)),
            "Your list goes up to num_epochs. Epochs count from 0, so the last one "
            "is num_epochs - 1.",
        ),
        Mistake(
            lambda n, p: [e for e in range(n) if (e + 1) % p == 0],
            "Off by one: you copy in the last epoch of each period. The copy comes "
            "first: epoch % period == 0.",
        ),
        Mistake(
            lambda n, p: list(range(n)),
            "A copy in every epoch: the period is not used, and the KL would start "
            "every epoch at zero.",
        ),
        Mistake(
            lambda n, p: [e % p == 0 for e in range(n)],
            "These are flags, one an epoch. List the epochs themselves.",
        ),
        Mistake(
            lambda n, p: list(range(0, n * p, p)),
            "You make num_epochs copies. There are num_epochs epochs, and only "
            "every period-th has a copy.",
        ),
    ),
    insight="pi_ref changes at epochs 0, K, 2K, ... and stays frozen in between.",
)


def inner_step_loss(
    log_probs: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Tensor,
    deltas: Tensor,
    beta: float,
) -> Tensor:
    """Three times [batch trial pos], [batch trial], a number -> scalar"""
    policy_loss = compute_loss(log_probs, deltas, "clipped", old_log_probs)
    return policy_loss + beta * compute_kl_penalty(log_probs, ref_log_probs)


def _sine(shape: tuple, start: float, scale: float) -> Tensor:
    """Different numbers without a random generator."""
    count = torch.Size(shape).numel()
    return scale * (start + torch.arange(count) * 1.7).sin().reshape(shape)


def _step_case(description: str, *shape: int, beta: float, apart: float = 0.5) -> Case:
    """Three policies that are up to `apart` nats from each other."""
    old = -1.5 - _sine(shape, 0.3, 0.5)
    args = {
        "log_probs": old + _sine(shape, 1.1, apart),
        "old_log_probs": old,
        "ref_log_probs": old + _sine(shape, 2.6, apart),
        "deltas": _sine(shape[:-1], 0.8, 1.5),
        "beta": beta,
    }
    return Case(description, args)


def _clipped(new: Tensor, old: Tensor, deltas: Tensor) -> Tensor:
    ratio, each = (new - old).exp(), deltas[..., None]
    return -torch.minimum(ratio * each, ratio.clamp(0.8, 1.2) * each).mean()


def _k3(new: Tensor, other: Tensor) -> Tensor:
    return torch.expm1(other - new) - (other - new)


def _step(new: Tensor, old: Tensor, deltas: Tensor, kl: Tensor, beta: float) -> Tensor:
    return _clipped(new, old, deltas) + beta * kl.mean()


INNER_STEP_LOSS = Exercise(
    key="6.1",
    name="inner_step_loss",
    solution=inner_step_loss,
    axes={
        "log_probs": "batch trial pos",
        "old_log_probs": "batch trial pos",
        "ref_log_probs": "batch trial pos",
        "deltas": "batch trial",
        "return": "",
    },
    gradient_to=("log_probs",),
    cases=(
        _step_case("one response, no clipping", 1, 1, 2, beta=1.0, apart=0.1),
        _step_case("two prompts, three responses", 2, 3, 4, beta=0.5),
        _step_case("as many prompts as responses", 3, 3, 3, beta=0.1),
        _step_case("beta is 0", 2, 3, 4, beta=0.0),
    ),
    mistakes=(
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) - b * _k3(new, ref).mean()
            ),
            "You subtract the KL. The loss is minimised, so a penalty is added: "
            "minus would reward leaving the reference.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) + b * _k3(new, ref).sum(-1).mean()
            ),
            "You sum the KL over pos. The policy loss is a mean over positions, so "
            "the KL must be too, or beta grows with the length.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) + b * _k3(new, old).mean()
            ),
            "Your KL compares with pi_old. It is pi_ref that the policy shall stay "
            "close to.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, ref, d) + b * _k3(new, ref).mean()
            ),
            "Your ratio divides by pi_ref. The responses came from pi_old, so the "
            "ratio is pi / pi_old.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, ref, d) + b * _k3(new, old).mean()
            ),
            "pi_old and pi_ref are swapped: pi_old belongs into the ratio, pi_ref "
            "into the KL.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, new.detach(), d) + b * _k3(new, ref).mean()
            ),
            "You use pi itself as pi_old: the ratio is 1 in every step, and nothing "
            "is ever clipped. Use the noted old_log_probs.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                -((new - old).exp() * d[..., None]).mean() + b * _k3(new, ref).mean()
            ),
            "Nothing is clipped: this is the unclipped loss plus the KL.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) + b * _k3(ref, new).mean()
            ),
            "k3 upside down: its exponent is ref minus policy, log(pi_ref / pi).",
        ),
        Mistake(
            lambda new, old, ref, d, b: _clipped(new, old, d) + b * (new - ref).mean(),
            "This KL is k1, the plain difference: as a loss it teaches nothing. "
            "Use k3.",
        ),
        Mistake(
            lambda new, old, ref, d, b: _clipped(new, old, d) + _k3(new, ref).mean(),
            "beta is not used: the KL is added at full weight.",
        ),
        Mistake(
            lambda new, old, ref, d, b: _clipped(new, old, d),
            "The KL is missing. Add beta times its mean.",
        ),
        Mistake(
            lambda new, old, ref, d, b: (
                _clipped(new, old, d) + b * _k3(new, ref).mean().detach()
            ),
            "The value is right, but the KL is cut off: it sends no gradient, so it "
            "changes nothing. Only pi_old and pi_ref are frozen.",
        ),
    ),
    insight="pi_old stands in the ratio, pi_ref in the KL, and only pi has a gradient.",
)


def bytes_kept(num_parameters: int, with_reference: bool, with_critic: bool) -> int:
    """Bytes of what stays in memory from step to step; pi_old is no model."""
    trained = num_parameters * (2 + 2 + 4 + 4)  # weights, gradient, two moments
    reference = num_parameters * 2 if with_reference else 0
    critic = trained if with_critic else 0
    return trained + reference + critic


def _bytes_case(num_parameters: int, with_reference: bool, with_critic: bool) -> Case:
    parts = [
        "the policy",
        *["a reference"] * with_reference,
        *["a critic"] * with_critic,
    ]
    args = {
        "num_parameters": num_parameters,
        "with_reference": with_reference,
        "with_critic": with_critic,
    }
    return Case(f"{num_parameters} parameters: {', '.join(parts)}", args)


def _kept(policy: int, reference: int, critic: int, always: int = 0):
    """A wrong count: bytes a parameter of each part."""
    return lambda n, r, c: n * (policy + always + r * reference + c * critic)


BYTES_KEPT = Exercise(
    key="6.3",
    name="bytes_kept",
    solution=bytes_kept,
    cases=(
        _bytes_case(1000, False, False),
        _bytes_case(1000, True, False),
        _bytes_case(1000, False, True),
        _bytes_case(500_000_000, True, True),
    ),
    mistakes=(
        Mistake(
            _kept(10, 2, 10),
            "The gradient is missing: one number of 2 bytes for each trained weight.",
        ),
        Mistake(
            _kept(8, 2, 8),
            "Adam keeps two moments, each in 4 bytes: 8 bytes a weight on top of "
            "weight and gradient.",
        ),
        Mistake(
            _kept(4, 2, 4),
            "Adam is missing: its two moments take 8 bytes a weight, more than "
            "weight and gradient together.",
        ),
        Mistake(
            _kept(12, 12, 12),
            "You count gradient and optimizer for the reference. It is never "
            "trained: weights only.",
        ),
        Mistake(
            _kept(12, 4, 12),
            "You count a gradient for the reference. It is never trained: weights "
            "only.",
        ),
        Mistake(
            _kept(12, 2, 12, always=2),
            "You count a full copy for pi_old. Its log-probabilities are noted, "
            "and no model is kept.",
        ),
        Mistake(
            _kept(12, 2, 2),
            "You count only weights for the critic. It is trained too: gradient "
            "and Adam as well.",
        ),
        Mistake(
            _kept(12, 2, 0),
            "The critic is missing.",
        ),
        Mistake(
            _kept(12, 0, 12),
            "The reference is missing: it is a copy of the weights.",
        ),
        Mistake(
            lambda n, r, c: n * (12 + 2 + 12),
            "You count reference and critic always. Count them where the arguments "
            "say so.",
        ),
    ),
    insight="A trained model costs six times its weights here, a frozen one once. "
    "That is what GRPO saves by having no critic.",
)

EXERCISES = (INNER_STEP_LOSS, REFRESH_EPOCHS, BYTES_KEPT)
