"""What a loss is given, checked and brought into line."""

from torch import Tensor

from grpo_course.algorithm.validation import require_axes, require_same_shape


def deltas_per_token(deltas: Tensor, log_probs: Tensor) -> Tensor:
    """Deltas [... batch trial] as [... batch trial 1]; per-token ones as they are."""
    require_axes("deltas", deltas, "batch trial")
    if deltas.ndim == log_probs.ndim - 1:
        deltas = deltas.unsqueeze(-1)
    if deltas.shape not in (log_probs.shape, (*log_probs.shape[:-1], 1)):
        raise ValueError(
            f"deltas have shape {list(deltas.shape)}, but log_probs have shape "
            f"{list(log_probs.shape)}. Pass one delta per response "
            f"{list(log_probs.shape[:-1])} or one per token."
        )
    # A delta weighs the gradient of log pi; it sends none of its own back to
    # whatever made it (a reward model, a critic).
    return deltas.detach()


def check_old_log_probs(old: Tensor | None, log_probs: Tensor, mode: str) -> None:
    """Check that the old log-probs are there, frozen, and line up."""
    if old is None:
        raise ValueError(
            f"mode={mode!r} needs old_log_probs: the log-probabilities of the same "
            "tokens under the policy that sampled them. Compute them once, before "
            "the first inner step, under torch.no_grad()."
        )
    require_axes("old_log_probs", old, "pos")
    require_same_shape("old_log_probs", old, "log_probs", log_probs)
    if old.requires_grad:
        raise ValueError(
            "old_log_probs carries a gradient. Compute it under torch.no_grad(): "
            "otherwise the gradients of numerator and denominator of the ratio "
            "cancel, and nothing is learned."
        )


def clip_range(epsilon: float, epsilon_high: float | None) -> dict[str, float]:
    """Both sides of the clip range, checked."""
    high = epsilon if epsilon_high is None else epsilon_high
    if not 0 < epsilon <= 1:
        raise ValueError(
            f"epsilon={epsilon} is out of range: 0 < epsilon <= 1, since a ratio is "
            "never below 0. PPO and GRPO use 0.2."
        )
    if not high > 0:
        raise ValueError(f"epsilon_high={high} is out of range: it must be above 0.")
    return {"epsilon": epsilon, "epsilon_high": high}


def require_dual_clip(dual_clip: float, epsilon_high: float) -> None:
    """Check that the second upper bound of a ratio lies above the first."""
    if not dual_clip > 1 + epsilon_high:
        raise ValueError(
            f"dual_clip={dual_clip} is inside the clip range: it must be above "
            f"1 + epsilon_high = {1 + epsilon_high:g}. Usual are 3 to 10."
        )


def check_ref_log_probs(ref: Tensor, log_probs: Tensor) -> None:
    """Check that the reference's log-probs line up and are frozen."""
    require_axes("ref_log_probs", ref, "pos")
    require_same_shape("ref_log_probs", ref, "log_probs", log_probs)
    if ref.requires_grad:
        raise ValueError(
            "ref_log_probs carries a gradient. Compute it under torch.no_grad(): "
            "otherwise the reference is pulled towards the policy as well."
        )
