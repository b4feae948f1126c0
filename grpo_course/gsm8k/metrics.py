"""What a run measured: one line of JSON for each epoch."""

import json
import os
from pathlib import Path

import torch

from grpo_course.algorithm.history import History


def epoch_line(history: History) -> dict[str, float]:
    """The latest epoch in plain numbers: its last step, and what only its first has."""
    epoch = history.records[-1]["epoch"]
    steps = [r for r in reversed(history.records) if r["epoch"] == epoch]
    merged = steps[-1] | steps[0]
    plain = {name: torch.as_tensor(value).item() for name, value in merged.items()}
    return plain


class MetricsFile:
    """A file that grows by one line an epoch, and can be cut back to a checkpoint."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, line: dict[str, float]) -> None:
        """Write one line, to be seen by readers at once."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def size(self) -> int:
        """Bytes of it that are on the disk for sure."""
        if not self.path.exists():
            return 0
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())
            return file.seek(0, os.SEEK_END)

    def cut(self, size: int) -> None:
        """Forget what was written after a checkpoint that noted this size."""
        if self.size() < size:
            raise ValueError(
                f"{self.path} has {self.size()} bytes, but had {size} when the "
                "checkpoint was written. Put the file back, or start again with "
                "another --out."
            )
        if self.path.exists():
            os.truncate(self.path, size)

    def history(self) -> History:
        """The lines as the loop's records, one for each epoch."""
        if not self.path.exists():
            return History()
        lines = enumerate(self.path.read_bytes().splitlines(), start=1)
        return History([self.read(line, number) for number, line in lines])

    def read(self, line: bytes, number: int) -> dict:
        """One line as a record. Raises ValueError for one that was damaged."""
        try:
            return as_record(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self.path}, line {number} is not what was written "
                f"({type(error).__name__}: {error}). Put the file back, or start again "
                "with another --out."
            ) from None


def as_record(line: dict[str, float]) -> dict:
    """The numbers of one line as the loop has them."""
    values = {k: torch.tensor(v, dtype=torch.float32) for k, v in line.items()}
    return values | {"epoch": int(line["epoch"]), "step": 0}
