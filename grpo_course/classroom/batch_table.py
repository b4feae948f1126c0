"""One rollout as text: what was asked, answered, paid, and how it is pushed."""

from torch import Tensor

from grpo_course.checks import require_same_shape
from grpo_course.loop import Batch


def batch_table(batch: Batch, log_probs: Tensor | None = None) -> str:
    """Every response of a batch with its log-probs, reward and delta.

    `log_probs` [batch trial pos] are those of the policy now, the sampling policy's
    unless given. Where each token has a delta, they stand in a row. A batch with a seed
    axis must be cut to one seed first. Raises ValueError if it is not, and if there are
    no log-probs.
    """
    if batch.rewards.ndim != 2:
        raise ValueError(
            f"batch.rewards has shape {list(batch.rewards.shape)}; the table shows "
            "[batch trial]. Train one seed without a seed axis to print its steps."
        )
    log_probs = batch.old_log_probs if log_probs is None else log_probs
    if log_probs is None:
        raise ValueError(
            "log_probs=None, and batch.old_log_probs is None too: the first step notes "
            "them. Pass log_probs=policy.log_probs(batch.rollout)."
        )
    require_same_shape("log_probs", log_probs, "responses", batch.rollout.responses)
    lines = []
    for i, prompt in enumerate(batch.rollout.prompts.tolist()):
        lines.append(f"prompt {prompt}")
        for j, response in enumerate(batch.rollout.responses[i].tolist()):
            scores = numbers(log_probs[i, j], "6.2f")
            reward, delta = batch.rewards[i, j], numbers(batch.deltas[i, j], "+.2f")
            lines.append(
                f"  {response}  log-probs {scores}  R {reward:5.2f}  delta {delta}"
            )
    return "\n".join(lines)


def numbers(values: Tensor, form: str) -> str:
    """One number, or several in a row. [] or [pos]"""
    return " ".join(f"{value:{form}}" for value in values.flatten().tolist())
