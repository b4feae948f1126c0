"""The gradient on its way into the weights: its length, its limit, the step."""

import math

import torch
from torch import Tensor

LEARNING_RATE = {"at least": 0, "below": math.inf}  # its range


def take_step(
    optimizer: torch.optim.Optimizer, seed_axes: int = 0, max_norm: float | None = None
) -> Tensor:
    """One step along the gradients there are; returns their norm before clipping.

    The norm is [], or [seed] where the weights have one leading seed axis.
    """
    norm = gradient_norm(optimizer, seed_axes)
    if max_norm is not None:
        clip_gradient(optimizer, norm, max_norm)
    optimizer.step()
    return norm


def require_finite_loss(loss: Tensor, place: str) -> None:
    """Check a loss [] or [seed] before anything is learned from it.

    Raises ValueError for one that is not finite, and for one that reaches no weight.
    """
    if not loss.isfinite().all():
        culprit = loss[~loss.isfinite()].flatten()[0].item()
        raise ValueError(
            f"the loss is {culprit} in {place}. This step was not taken. "
            "Try a smaller learning rate."
        )
    if not loss.requires_grad:
        raise ValueError(
            f"the loss has no gradient in {place}: the model is frozen, or its "
            "log-probs were detached. Let its weights require a gradient, and compute "
            "log-probs outside of torch.no_grad()."
        )


def clip_gradient(
    optimizer: torch.optim.Optimizer, norm: Tensor, max_norm: float
) -> None:
    """Scale each seed's gradient down to max_norm where its norm [] or [seed] is above.

    The direction stays. Pascanu et al. 2013, arXiv 1211.5063.
    """
    scale = max_norm / norm.clamp(min=max_norm)
    for weight in (w for group in optimizer.param_groups for w in group["params"]):
        if weight.grad is not None:
            weight.grad *= scale.reshape(
                *scale.shape, *[1] * (weight.ndim - scale.ndim)
            )


def gradient_norm(optimizer: torch.optim.Optimizer, seed_axes: int) -> Tensor:
    """Length of the gradient over all weights, for each seed where there are seeds.

    Raises ValueError where no weight has a gradient.
    """
    weights = [w for group in optimizer.param_groups for w in group["params"]]
    moved = [w.grad for w in weights if w.grad is not None]
    if not moved:
        raise ValueError(
            f"the loss reaches none of the optimizer's {len(weights)} weights: the "
            "model is frozen, or the optimizer belongs to another model. Make it from "
            "policy.model.parameters(), and let them require a gradient."
        )
    squares = [grad.square().flatten(seed_axes).sum(-1) for grad in moved]
    return torch.stack(squares).sum(0).sqrt()
