"""Keep what was collected, and hand it out in small parts."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import torch
from einops import rearrange, repeat
from torch import Generator, Tensor

from grpo_course.algorithm.rollout import Batch, Rollout
from grpo_course.algorithm.validation import require_at_least, require_tensor

COLUMNS = ("rewards", "deltas", "old_log_probs", "ref_log_probs", "targets")


class ExperienceBuffer:
    """Batches of responses, as one batch in which every response stands alone.

    Deltas compare a response with its group, so they are made before a response
    comes here, from the whole group. Inside, [... batch trial pos] becomes
    [... (batch trial) 1 pos]: a minibatch may cut through a group.
    """

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def __len__(self) -> int:
        """How many responses it holds."""
        return sum(batch.rewards.shape[-2] for batch in self.batches)

    def add(self, batch: Batch) -> None:
        """Take in a batch [... batch trial pos].

        Raises ValueError for columns that do not line up, and for other lengths than
        those of what is there already.
        """
        if not isinstance(batch, Batch):
            raise TypeError(
                f"batch is a {type(batch).__name__}. Add what trainer.collect returned."
            )
        require_one_each(batch)
        batch = one_response_a_row(batch)
        if self.batches:
            require_same_lengths(batch, self.batches[0])
        self.batches.append(batch)

    def get(self) -> Batch:
        """All of it, in the order of coming. Raises ValueError if there is nothing."""
        if not self.batches:
            raise ValueError(
                "the buffer is empty: there is nothing to train on. Call "
                "buffer.add(batch) with what trainer.collect returned, before get."
            )
        columns = [tensors(batch) for batch in self.batches]
        joined = {
            name: torch.cat([c[name] for c in columns], dim=row_axis(name, columns[0]))
            for name in columns[0]
        }
        return as_batch(joined)

    def clear(self) -> None:
        """Forget everything: the next rollout comes from a newer policy."""
        self.batches = []

    def minibatches(
        self, size: int, generator: Generator | None = None
    ) -> Iterator[Batch]:
        """Shuffle once; each response comes exactly once, `size` of them at a time.

        The last minibatch is smaller if `size` does not divide the number. Equal
        generators give equal minibatches. Raises ValueError for an empty buffer,
        and for a size below 1 or above the number of responses.
        """
        everything = self.get()
        require_at_least("size", size, 1)
        if size > len(self):
            raise ValueError(
                f"size={size}, but the buffer holds {len(self)} responses. "
                "Choose a smaller minibatch, or add more responses first."
            )
        order = torch.randperm(len(self), generator=generator)
        return (choose(everything, chosen) for chosen in order.split(size))


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


def one_response_a_row(batch: Batch) -> Batch:
    """[... batch trial pos] -> [... (batch trial) 1 pos], each with its own prompt."""
    trial = batch.rewards.shape[-1]
    columns = tensors(batch)
    flat = {
        name: rearrange(column, "... batch trial pos -> ... (batch trial) 1 pos")
        if column.ndim == batch.rollout.responses.ndim
        else rearrange(column, "... batch trial -> ... (batch trial) 1")
        for name, column in columns.items()
        if name != "prompts"
    }
    prompts = columns["prompts"]
    pattern = "batch ... -> (batch trial) ..."
    return as_batch({"prompts": repeat(prompts, pattern, trial=trial)} | flat)


def require_one_each(batch: Batch) -> None:
    """Check that every column has one entry for each response, or for each prompt."""
    columns = tensors(batch)
    rows = columns["responses"].shape[:-1]  # [... batch trial]
    for name, column in columns.items():
        axes, each = (1, "prompt") if name == "prompts" else (len(rows), "response")
        expected = rows[-2:-1] if name == "prompts" else rows
        require_tensor(name, column, "batch trial")
        if column.shape[:axes] != expected:
            raise ValueError(
                f"{name} has shape {list(column.shape)}, but responses has shape "
                f"{list(columns['responses'].shape)}: pass one for each {each}, "
                f"{list(expected)}."
            )


def require_same_lengths(batch: Batch, first: Batch) -> None:
    """Check that a batch lines up with what the buffer holds."""
    new, old = tensors(batch), tensors(first)
    if new.keys() != old.keys():
        differing = ", ".join(sorted(new.keys() ^ old.keys()))
        raise ValueError(
            f"one batch has {differing} and the other has not. Collect both with the "
            "same reference and the same masks."
        )
    for name in new:
        shapes = [
            list(x.movedim(row_axis(name, new), 0).shape[1:])
            for x in (new[name], old[name])
        ]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"{name} is {shapes[0]} for each response, but the buffer holds "
                f"{shapes[1]}. Pad both to one length before adding them."
            )
