"""How far the policy is from its reference: exact KL, its estimators, its uses."""

from collections.abc import Callable

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import aggregate, as_bool_mask, as_floats, hide
from grpo_course.algorithm.ratio import compute_ratio
from grpo_course.algorithm.validation import (
    CERTAIN,
    require_axes,
    require_known,
    require_log_probs,
    require_number,
    require_old_log_probs,
    require_one_each,
    require_ref_log_probs,
)

# how fast beta follows the KL's error, and how far that counts: arXiv 1909.08593, 2.2
GAIN, LARGEST_ERROR = 0.1, 0.2


def k1(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """log(pi / ref). Unbiased, noisy, often negative; as a loss it teaches nothing.

    [...] each -> the same, in nats.
    """
    return log_probs - ref_log_probs


def k2(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """Half of log(pi / ref) squared. Biased, but the gradient of KL(pi||ref).

    [...] each -> the same.
    """
    return (log_probs - ref_log_probs) ** 2 / 2


def k3(log_probs: Tensor, ref_log_probs: Tensor, **_) -> Tensor:
    """ref/pi - 1 - log(ref/pi). Unbiased, never negative; gradient of KL(ref||pi).

    [...] each -> the same. As expm1(d) - d: exp(d) - 1 - d would lose small d to
    rounding. Above d = 88 nats float32 overflows to inf, left to be seen.
    """
    difference = ref_log_probs - log_probs
    return torch.expm1(difference) - difference


def corrected_k3(
    log_probs: Tensor, ref_log_probs: Tensor, *, old_log_probs: Tensor | None = None
) -> Tensor:
    """(pi / pi_old) k3: for samples of pi_old, with the gradient of KL(pi||ref).

    [...] each -> the same. Unbiased for each token given those before it. It is not
    for whole responses: which tokens came before was still pi_old's choice. The ratio
    is that of the token, whatever the loss takes; it is 1 on the policy's own samples,
    but must carry its gradient. DeepSeek-V3.2: 2025, arXiv 2512.02556.
    """
    old = log_probs.detach() if old_log_probs is None else old_log_probs
    return compute_ratio(log_probs, old) * k3(log_probs, ref_log_probs)


KL_ESTIMATORS: dict[str, Callable[..., Tensor]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
    "corrected_k3": corrected_k3,
}


def kl_values(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    estimator: str = "k3",
    *,
    old_log_probs: Tensor | None = None,
) -> Tensor:
    """Estimate KL(pi||ref) in nats from the sampled tokens alone, one value each.

    Any shape, the same for all; `old_log_probs` is read by "corrected_k3" only and
    is the policy itself unless given. k1, k2, k3: Schulman 2020,
    joschu.net/blog/kl-approx.html. Their gradients: Tang and Munos 2025, arXiv
    2506.09477.

    Raises ValueError for an unknown estimator, for shapes that do not line up, for
    a reference or old log-probs that carry a gradient.
    """
    require_known("estimator", estimator, KL_ESTIMATORS)
    require_ref_log_probs(ref_log_probs, log_probs)
    require_log_probs(log_probs=log_probs, ref_log_probs=ref_log_probs)
    old = old_log_probs
    if old is not None:
        require_old_log_probs(old, log_probs, estimator)
        require_log_probs(old_log_probs=old)
    return KL_ESTIMATORS[estimator](log_probs, ref_log_probs, old_log_probs=old)


def compute_kl_penalty(
    log_probs: Tensor,
    ref_log_probs: Tensor,
    estimator: str = "k3",
    mask: Tensor | None = None,
    *,
    aggregation: str = "sequence_mean",
    max_length: int | None = None,
    old_log_probs: Tensor | None = None,
) -> Tensor:
    """The KL estimate of a rollout, to be added to the loss times beta: [...].

    log_probs, ref_log_probs and mask are [... batch trial pos]. It is a mean over
    positions: a sum over them would need a beta that is smaller by the length.
    Raises as `kl_values` and `aggregate`.
    """
    require_known("estimator", estimator, KL_ESTIMATORS)
    require_axes("log_probs", log_probs, "batch trial pos")
    require_ref_log_probs(ref_log_probs, log_probs)
    mask = None if mask is None else as_bool_mask(mask, log_probs)
    new, ref, old = hide(log_probs, mask), hide(ref_log_probs, mask), old_log_probs
    require_log_probs(log_probs=new, ref_log_probs=ref)
    if old is not None:
        require_old_log_probs(old, log_probs, estimator)
        old = hide(old, mask)
        require_log_probs(old_log_probs=old)
    values = KL_ESTIMATORS[estimator](new, ref, old_log_probs=old)
    return aggregate(values, mask, aggregation, max_length=max_length)


def exact_kl(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    """KL(pi||ref) in nats from whole distributions: [... vocab] to [...].

    An outcome that pi never takes adds zero, whatever the reference says; one that
    only the reference never takes makes it infinite. Raises ValueError if a row
    does not sum to one, as logits do not.
    """
    require_ref_log_probs(ref_log_probs, log_probs)
    for name, rows in (("log_probs", log_probs), ("ref_log_probs", ref_log_probs)):
        totals = rows.detach().logsumexp(-1)
        if not (totals.abs() < CERTAIN).all():
            raise ValueError(
                f"{name} are not log-probabilities: a row sums to "
                f"{totals.exp().max().item():.3g}, not 1. Apply log_softmax(-1)."
            )
    probs = log_probs.exp()
    # where, not 0 * inf: an impossible outcome has log-probability -inf
    gap = torch.where(probs > 0, log_probs - ref_log_probs, 0.0)
    return (probs * gap).sum(-1)


@torch.no_grad()
def kl_reward(
    rewards: Tensor,
    log_probs: Tensor,
    ref_log_probs: Tensor,
    coefficient: float | Tensor,
    mask: Tensor | None = None,
) -> Tensor:
    """KL in the reward: R - beta log(pi/ref) of the whole response, no gradient.

    rewards [... batch trial], log-probs and mask [... batch trial pos]; beta is a
    number, or [seed] where seeds train together. In the reward, k1 has the gradient
    of KL(pi||ref), through the score function. Ziegler et al. 2019, arXiv 1909.08593.
    """
    require_axes("log_probs", log_probs, "batch trial pos")
    require_one_each("rewards", rewards, log_probs)
    require_ref_log_probs(ref_log_probs, log_probs)
    mask = as_bool_mask(mask, log_probs)
    new, ref = hide(log_probs, mask), hide(ref_log_probs, mask)
    require_log_probs(log_probs=new, ref_log_probs=ref)
    beta = as_beta(coefficient, new)[..., None, None]
    return as_floats(rewards) - beta * (new - ref).sum(-1)


def as_beta(
    coefficient: float | Tensor, like: Tensor, argument: str = "coefficient"
) -> Tensor:
    """A KL coefficient in the precision of log-probabilities, [] or [seed].

    Raises TypeError if it is no number, ValueError if it is below 0 or not finite.
    """
    require_number(argument, coefficient)
    beta = torch.as_tensor(coefficient, dtype=like.dtype, device=like.device)
    if not ((beta >= 0) & beta.isfinite()).all():
        raise ValueError(
            f"{argument}={coefficient} is out of range: beta is 0 or more; a negative "
            "one would reward the policy for leaving its reference."
        )
    return beta
