"""One gradient from several smaller forward passes, and none for what teaches nothing.

The loss is a mean over responses or over tokens of the whole batch. A mean of the
parts' means is another number where the parts are unequal; so each part is weighed by
its share.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from grpo_course.algorithm.aggregation import as_bool_mask
from grpo_course.algorithm.buffer import choose
from grpo_course.algorithm.config import TrainConfig
from grpo_course.algorithm.gradient import require_finite_loss
from grpo_course.algorithm.loop import Trainer
from grpo_course.algorithm.rollout import Batch

# What a record holds as a mean over tokens; the rest is weighed as the loss is.
TOKEN_MEANS = (
    "ratio_mean",
    "clip_fraction_low",
    "clip_fraction_high",
    "gradient_fraction",
    "old_kl",
)


class MicroBatches(Trainer):
    """A gradient summed over smaller forward passes; tied rows may be left out."""

    def backward(self, batch: Batch, step: int) -> dict:
        """The gradient of the whole batch's loss, part by part."""
        parts, records = split(batch, self.config), []
        for part in parts:
            loss, record = self.loss(part.batch)
            require_finite_loss(loss, f"epoch {self.epoch}, step {step}")
            (part.weight * loss).sum().backward()
            records.append(record)
        return join(parts, records)


@dataclass(frozen=True)
class Part:
    """Some rows of a batch, and their shares."""

    batch: Batch
    weight: Tensor | float  # of the loss, [] or [seed]
    token_weight: Tensor | float  # of the tokens that are looked at, [] or [seed]


def split(batch: Batch, config: TrainConfig) -> list[Part]:
    """The parts whose weighed losses have the gradient of the whole batch's loss.

    At most `micro_batch_size` rows of the batch axis each: prompts with all their
    responses, or single responses in a minibatch. With `skip_tied_groups`
    rows without any delta are left out, unless a KL still pulls on them.
    Raises ValueError where a critic's loss would have to be split too.
    """
    if batch.targets is not None:
        raise ValueError(
            "micro_batch_size and skip_tied_groups split the policy's loss only. "
            "Leave both out where a critic has a loss of its own, as in PPO."
        )
    rows = rows_that_pull(batch) if config.skip_tied_groups else all_rows(batch)
    whole, kept = sizes(batch), sizes(choose(batch, rows))
    unit = "tokens" if config.aggregation == "token_mean" else "responses"
    parts = []
    for chosen in rows.split(config.micro_batch_size or len(rows)):
        part = choose(batch, chosen)
        size = sizes(part)
        share = size["tokens"] / kept["tokens"].clamp(min=1)
        parts.append(Part(part, size[unit] / whole[unit].clamp(min=1), share))
    return parts


def all_rows(batch: Batch) -> Tensor:
    """The index of every row of the batch axis. -> int [row]"""
    return torch.arange(batch.rewards.shape[-2], device=batch.rewards.device)


def rows_that_pull(batch: Batch) -> Tensor:
    """The rows that have a gradient, at least one of all. -> int [row]

    One is always kept: an optimizer with momentum moves on a zero gradient too.
    """
    if batch.ref_log_probs is not None:
        return all_rows(batch)
    trial_axis = batch.rewards.ndim - 1
    pulls = (batch.deltas != 0).movedim(trial_axis - 1, 0).flatten(1).any(dim=1)
    return pulls.nonzero().flatten() if pulls.any() else all_rows(batch)[:1]


def sizes(batch: Batch) -> dict[str, Tensor]:
    """How many responses and tokens, [] or [seed]."""
    mask = as_bool_mask(batch.rollout.mask, batch.rollout.responses)
    responses = torch.tensor(batch.rewards.shape[-2:].numel(), device=mask.device)
    return {"tokens": mask.sum((-3, -2, -1)), "responses": responses}


def join(parts: list[Part], records: list[dict]) -> dict:
    """One record from those of the parts. Skipped rows are in the loss, as zeros."""
    return {
        name: join_column(name, [r[name] for r in records], parts)
        for name in records[0]
    }


def join_column(name: str, values: list[Tensor], parts: list[Part]) -> Tensor:
    """One value from those of the parts."""
    stacked = torch.stack(values)
    if name == "ratio_min":
        return stacked.amin(dim=0)
    if name == "ratio_max":
        return stacked.amax(dim=0)
    if name == "beta":
        return stacked[0]
    field = "token_weight" if name in TOKEN_MEANS else "weight"
    shares = [getattr(part, field) for part in parts]
    return sum(share * value for share, value in zip(shares, values, strict=True))
