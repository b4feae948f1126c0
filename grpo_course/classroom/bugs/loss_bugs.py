"""Bugs in the ratio, the clip and the KL, and the probes that find them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from grpo_course.algorithm.kl import exact_kl, k1, k2, k3
from grpo_course.algorithm.losses import clipped_loss, unclipped_loss
from grpo_course.algorithm.ratio import compute_ratio
from grpo_course.classroom.bugs.bug import Bug


def quotient_loss(
    log_probs: Tensor, deltas: Tensor, *, old_log_probs: Tensor, **_
) -> Tensor:
    """[batch trial pos] each -> the loss of each token."""
    ratio = log_probs / old_log_probs
    return -ratio * deltas


def pull(loss: Callable, ratio: float, delta: float) -> float:
    """How hard a loss pulls the log-probability of one token up; below 0: down."""
    old = torch.full((1, 1, 1), -3.0)
    leaf = (old + math.log(ratio)).requires_grad_()
    deltas, clip = torch.full_like(old, delta), {"epsilon": 0.2, "epsilon_high": 0.2}
    value = loss(leaf, deltas, old_log_probs=old, **clip)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    return 0.0 - gradient.item()


QUOTIENT = Bug(
    name="quotient ratio",
    symptom="the reward falls from the first step on",
    probe="pull on a good token at ratio 1: is it above 0?",
    cause="log-probabilities divided; they are negative, so the sign flips",
    repaired_line="-compute_ratio(log_probs, old_log_probs) * deltas",
    broken=quotient_loss,
    repaired=unclipped_loss,
    healthy=lambda loss: pull(loss, 1.0, 1.0) > 0 > pull(loss, 1.0, -1.0),
)


def wrong_side_loss(
    log_probs: Tensor,
    deltas: Tensor,
    *,
    old_log_probs: Tensor,
    epsilon: float,
    epsilon_high: float,
    **_,
) -> Tensor:
    """[batch trial pos] each -> the loss of each token."""
    ratio = compute_ratio(log_probs, old_log_probs)
    free, clipped = ratio * deltas, ratio.clamp(1 - epsilon, 1 + epsilon_high) * deltas
    smaller, larger = torch.minimum(free, clipped), torch.maximum(free, clipped)
    return -torch.where(deltas >= 0, smaller, larger)


def lets_bad_tokens_come_back(loss: Callable) -> bool:
    """A bad token that became likelier is pulled down, a rare one is let go."""
    return pull(loss, 2.0, -1.0) < 0 == pull(loss, 0.5, -1.0)


WRONG_SIDE = Bug(
    name="clip on the wrong side",
    symptom="learns, and stays behind a run without the bug",
    probe="pull on a bad token at ratio 2 and 0.5: below 0, and 0?",
    cause="max in place of min where delta is negative",
    repaired_line="-torch.minimum(ratio * deltas, clipped_ratio * deltas)",
    broken=wrong_side_loss,
    repaired=clipped_loss,
    healthy=lets_bad_tokens_come_back,
)


def upside_down_k3(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """Any shape, the same for both -> one value each, in nats."""
    difference = log_probs - ref_log_probs
    return torch.expm1(difference) - difference


PROBS, REF_PROBS = [0.6, 0.2, 0.1, 0.05, 0.05], [0.2, 0.3, 0.2, 0.2, 0.1]


def mean_estimate(estimator: Callable) -> tuple[float, float]:
    """The exact average of an estimator over samples of pi, and the exact KL."""
    log_probs, ref = torch.tensor(PROBS).log(), torch.tensor(REF_PROBS).log()
    mean = (log_probs.exp() * estimator(log_probs, ref)).sum()
    return mean.item(), exact_kl(log_probs, ref).item()


UPSIDE_DOWN_K3 = Bug(
    name="k3 upside down",
    symptom="the KL in the log is wrong once the policy has moved",
    probe="average it exactly over a small pi: is it the exact KL?",
    cause="pi/ref in place of ref/pi",
    repaired_line="difference = ref_log_probs - log_probs",
    broken=upside_down_k3,
    repaired=k3,
    healthy=lambda estimator: math.isclose(*mean_estimate(estimator), abs_tol=1e-5),
)


def mean_gradient(estimator: Callable) -> tuple[Tensor, Tensor]:
    """Gradient by the logits of pi: of an estimator used as a loss, averaged exactly
    over samples of pi, and of the exact KL. [vocab] each"""
    logits = torch.tensor(PROBS).log().requires_grad_()
    log_probs, ref = logits.log_softmax(-1), torch.tensor(REF_PROBS).log()
    sampled = (log_probs.detach().exp() * estimator(log_probs, ref)).sum()
    (of_sampled,) = torch.autograd.grad(sampled, logits, retain_graph=True)
    (of_kl,) = torch.autograd.grad(exact_kl(log_probs, ref), logits)
    return of_sampled, of_kl


K1_AS_LOSS = Bug(
    name="k1 as a loss",
    symptom="beta has no effect: the policy leaves its reference",
    probe="average its gradient exactly: is it the gradient of the KL?",
    cause="the gradient of log pi is zero on average; k1 belongs in the reward",
    repaired_line="return (log_probs - ref_log_probs) ** 2 / 2",
    broken=k1,
    repaired=k2,
    healthy=lambda estimator: torch.allclose(*mean_gradient(estimator), atol=1e-6),
)


def make_dropout_model() -> nn.Module:
    """A small model with dropout: 8 tokens in, logits [... pos vocab] out."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Embedding(8, 64), nn.Dropout(0.1), nn.Linear(64, 8))


def dropout_in_between(model: nn.Module, tokens: Tensor) -> Tensor:
    """int [batch pos] -> old and new log-probabilities, float [2 batch pos]"""
    index = tokens[..., None]
    model.eval()
    with torch.no_grad():
        old = model(tokens).log_softmax(-1).gather(-1, index).squeeze(-1)
    model.train()
    new = model(tokens).log_softmax(-1).gather(-1, index).squeeze(-1)
    return torch.stack([old, new])


def without_dropout(model: nn.Module, tokens: Tensor) -> Tensor:
    """int [batch pos] -> old and new log-probabilities, float [2 batch pos]"""
    index = tokens[..., None]
    model.eval()  # and it stays so: RL explores by sampling, not by dropout
    with torch.no_grad():
        old = model(tokens).log_softmax(-1).gather(-1, index).squeeze(-1)
    new = model(tokens).log_softmax(-1).gather(-1, index).squeeze(-1)
    return torch.stack([old, new])


def ratio_range(score: Callable, seed: int = 1) -> tuple[float, float]:
    """Smallest and largest ratio before the first update, on 200 tokens."""
    tokens = torch.arange(200).reshape(10, 20) % 8
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        old, new = score(make_dropout_model(), tokens)
    ratio = compute_ratio(new, old)
    return ratio.min().item(), ratio.max().item()


DROPOUT = Bug(
    name="dropout between old and new",
    symptom="tokens are clipped at the first inner step; noise in the ratio",
    probe="ratio before the first update: 1 for all tokens?",
    cause="pi_old scored in eval mode, pi in train mode",
    repaired_line="model.eval()  # and it stays so",
    broken=dropout_in_between,
    repaired=without_dropout,
    healthy=lambda score: max(abs(r - 1) for r in ratio_range(score)) < 1e-5,
)
