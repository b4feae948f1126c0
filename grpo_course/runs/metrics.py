"""What a run measured: one line of JSON for each epoch."""

import os
from pathlib import Path

from grpo_course.algorithm.history import History, as_json, from_json
from grpo_course.files import append_json_line, read_json_lines

CURE = "Put the file back, or start again with another --out."


def epoch_line(history: History) -> dict[str, float]:
    """The latest epoch in plain numbers: its last step, and what only its first has."""
    epoch = history.records[-1]["epoch"]
    steps = [r for r in reversed(history.records) if r["epoch"] == epoch]
    return as_json(steps[-1] | steps[0])


class MetricsFile:
    """A file that grows by one line an epoch, and can be cut back to a checkpoint."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, line: dict[str, float]) -> None:
        """Write one line, to be seen by readers at once."""
        append_json_line(self.path, line)

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
                f"checkpoint was written. {CURE}"
            )
        if self.path.exists():
            os.truncate(self.path, size)

    def history(self) -> History:
        """The lines as the loop's records, one for each epoch."""
        if not self.path.exists():
            return History()
        lines = read_json_lines(self.path, as_record, CURE)
        return History(list(lines))


def as_record(line: dict[str, float]) -> dict:
    """The numbers of one line as the loop has them: one record an epoch."""
    return from_json(line) | {"epoch": int(line["epoch"]), "step": 0}
