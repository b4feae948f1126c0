"""A rollout that has been rewarded and compared, and how to cut rows out of it."""

from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from grpo_course.algorithm.aggregation import aggregate, as_bool_mask
from grpo_course.algorithm.rollout import Rollout, tied_groups

COLUMNS = ("rewards", "deltas", "old_log_probs", "ref_log_probs", "targets")


@dataclass(frozen=True)
class Batch:
    """What the inner steps need to know about one rollout; nothing here has a graph."""

    rollout: Rollout
    rewards: Tensor  # [batch trial]
    deltas: Tensor  # [batch trial] or [batch trial pos]
    old_log_probs: Tensor | None = None  # [batch trial pos]; None: those of step one
    ref_log_probs: Tensor | None = None  # [batch trial pos]
    targets: Tensor | None = None  # [batch trial ...], of a critic


def rollout_report(batch: Batch) -> dict[str, Tensor]:
    """What can be read off a rollout before any step; each value is [] or [seed].

    `tied_groups` is the share of groups that teach nothing. `sampled_entropy` is
    minus the mean log-probability of the sampled tokens, if pi_old or the sampler noted
    it: in nats a token, right on average, and all that can be had where responses
    cannot be enumerated.
    """
    rollout, rewards = batch.rollout, batch.rewards
    mask = as_bool_mask(rollout.mask, rollout.responses)
    report = {
        "mean_reward": rewards.mean(dim=(-2, -1)),
        "tied_groups": tied_groups(rewards).float().mean(dim=-1),
        "mean_length": mask.float().sum(dim=-1).mean(dim=(-2, -1)),
    }
    old = batch.old_log_probs
    noted = rollout.sampled_log_probs if old is None else old
    if noted is None:
        return report
    entropy = -aggregate(noted, rollout.mask, "token_mean")
    return report | {"sampled_entropy": entropy}


def choose(batch: Batch, chosen: Tensor) -> Batch:
    """Some rows of a batch that has one response a row. int [chosen]"""
    columns = tensors(batch)
    return as_batch(
        {
            name: column.index_select(row_axis(name, columns), chosen)
            for name, column in columns.items()
        }
    )


def tensors(batch: Batch) -> dict[str, Tensor]:
    """The tensors of a batch by name; those that are None are left out."""
    of_rollout = {f.name: getattr(batch.rollout, f.name) for f in fields(Rollout)}
    of_batch = {name: getattr(batch, name) for name in COLUMNS}
    return {k: v for k, v in (of_rollout | of_batch).items() if v is not None}


def as_batch(columns: dict[str, Tensor]) -> Batch:
    """The other way round."""
    rollout: dict[str, Any] = {f.name: columns.get(f.name) for f in fields(Rollout)}
    others: dict[str, Any] = {name: columns.get(name) for name in COLUMNS}
    return Batch(Rollout(**rollout), **others)


def row_axis(name: str, columns: dict[str, Tensor]) -> int:
    """Where the responses are: prompts have them first, the others after the seeds."""
    return 0 if name == "prompts" else columns["rewards"].ndim - 2
