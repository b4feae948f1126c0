"""What a training run leaves behind: one flat record for each optimizer step."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from grpo_course.algorithm.validation import require_known, unknown_name

if TYPE_CHECKING:
    from pandas import DataFrame  # slow to load, and only tables need it

PLACE = ("epoch", "step")  # counts: everything else in a record is a tensor


@dataclass
class History:
    """The records of a run; a value is a tensor, [seed] where seeds train together."""

    records: list[dict[str, Any]] = field(default_factory=list)

    def add(self, epoch: int, step: int, record: dict) -> None:
        """One more optimizer step."""
        self.records.append({"epoch": epoch, "step": step} | record)

    def curve(self, name: str) -> Tensor:
        """All values of one column in order, on the CPU. -> [step] or [step seed]"""
        values = [record[name] for record in self.records if name in record]
        if not values:
            known = sorted({key for record in self.records for key in record})
            raise unknown_name("name", name, known)
        return torch.stack([torch.as_tensor(value).cpu() for value in values])

    def epochs(self, name: str) -> Tensor:
        """One column at the first step of each epoch, and of the last look after
        training, if there is one. -> [epoch] or [epoch + 1], then [seed] if any
        """
        return History([r for r in self.records if r.get("step", 0) == 0]).curve(name)

    def final(self, name: str) -> Tensor:
        """The last value of one column. -> [] or [seed]"""
        return self.curve(name)[-1]

    def frame(self, names: Sequence[str] = ()) -> "DataFrame":
        """The records as a pandas table, a row a step; the mean where there are seeds.

        Columns are epoch, step and `names`, or all that are one number a seed.
        Raises ValueError for a name that no record has.
        """
        from pandas import DataFrame

        rows = [one_number_each(record) for record in self.records if "step" in record]
        in_order = dict.fromkeys(name for row in rows for name in row)
        known = [name for name in in_order if name not in PLACE]
        for name in names:
            require_known("name", name, known)
        frame = DataFrame(rows, columns=[*PLACE, *(names or known)])
        return frame.set_index(list(PLACE))


def one_number_each(record: dict) -> dict[str, float]:
    """A record without its larger tensors; the mean over the seeds where there are."""
    numbers = {name: torch.as_tensor(value) for name, value in record.items()}
    row = {k: v.double().mean().item() for k, v in numbers.items() if v.ndim < 2}
    return row | {name: record[name] for name in PLACE}


def as_json(record: dict) -> dict[str, Any]:
    """A record as JSON has it: numbers and lists."""
    return {name: torch.as_tensor(value).tolist() for name, value in record.items()}


def from_json(line: dict[str, Any]) -> dict[str, Any]:
    """The record that `as_json` was given: counts, and tensors of float32."""
    counts = {name: int(line[name]) for name in PLACE if name in line}
    return {name: torch.tensor(value) for name, value in line.items()} | counts
