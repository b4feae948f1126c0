"""One rollout as text: what was asked, answered, paid, and how it is pushed."""

from torch import Tensor

from grpo_course.algorithm.batch import Batch


def batch_table(batch: Batch, log_probs: Tensor | None = None) -> str:
    """Every response of a batch with its log-probs, reward and delta.

    `log_probs` [batch trial pos] are those of the policy now, the sampling policy's
    unless given. A batch with a seed axis must be cut to one seed first.
    """
    if batch.rewards.ndim != 2:
        raise ValueError(
            f"batch.rewards has shape {list(batch.rewards.shape)}; the table shows "
            "[batch trial]. Train one seed without a seed axis to print its steps."
        )
    log_probs = batch.old_log_probs if log_probs is None else log_probs.detach()
    lines = []
    for i, prompt in enumerate(batch.rollout.prompts.tolist()):
        lines.append(f"prompt {prompt}")
        for j, response in enumerate(batch.rollout.responses[i].tolist()):
            scores = " ".join(f"{x:6.2f}" for x in log_probs[i, j].tolist())
            reward, delta = batch.rewards[i, j], batch.deltas[i, j]
            lines.append(
                f"  {response}  log-probs {scores}  R {reward:5.2f}  delta {delta:+.2f}"
            )
    return "\n".join(lines)
