"""What a run writes down while it goes on, in lines of JSON.

    metrics.jsonl   a line an epoch: rewards, KL, gradient, held-out accuracy
    samples.jsonl   a line a response: what was asked, written and earned
    times.jsonl     a line an epoch: the seconds that each part of it took

A checkpoint notes how long each file was. What came later is forgotten when the run is
resumed, so that no line stands there twice. `pandas.read_json(path, lines=True)` reads
each of them.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from grpo_course.files import json_lines, read_json_lines
from grpo_course.loop import History, as_json, from_json

METRICS, SAMPLES, TIMES = "metrics.jsonl", "samples.jsonl", "times.jsonl"
CURE = "Put the file back, or start again with another --out."

Mark = tuple[int, str]  # how many bytes a file had, and their SHA-256


def epoch_line(history: History) -> dict[str, float]:
    """The latest epoch in plain numbers: its last step, and what only its first has."""
    epoch = history.records[-1]["epoch"]
    steps = [r for r in reversed(history.records) if r["epoch"] == epoch]
    return as_json(steps[-1] | steps[0])


class LinesFile:
    """A file that grows by lines, and can be cut back to what a checkpoint noted."""

    def __init__(self, path: Path, counted: str = "epoch"):
        self.path = path
        self.counted = counted  # the column that each line has

    def append(self, lines: Sequence[Mapping]) -> None:
        """Write further lines, to be seen by readers at once. Raises OSError."""
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json_lines(lines))
        except OSError as problem:
            raise OSError(
                f"{self.path} could not be written ({problem}). If the disk is full, "
                "make room; then go on with --resume."
            ) from problem

    def mark(self) -> Mark:
        """What is on the disk for sure."""
        if not self.path.exists():
            return 0, sha256(b"")
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())
            data = file.read()
        return len(data), sha256(data)

    def check(self, mark: Mark) -> None:
        """Raise ValueError if the file does not begin with what a checkpoint noted."""
        size, digest = mark
        data = self.path.read_bytes() if self.path.exists() else b""
        if len(data) < size:
            raise ValueError(
                f"{self.path} has {len(data)} bytes, but had {size} when the "
                f"checkpoint was written. {CURE}"
            )
        if sha256(data[:size]) != digest:
            place = damaged_line(data[:size], self.counted)
            raise ValueError(
                f"{self.path}{place} is not what was written when the checkpoint was. "
                f"{CURE}"
            )

    def cut(self, mark: Mark) -> None:
        """Forget what was written later."""
        if self.path.exists():
            os.truncate(self.path, mark[0])

    def require_empty(self) -> None:
        """Check that nothing is there that a new run would write over."""
        if self.path.exists() and self.path.stat().st_size:
            raise FileExistsError(
                f"{self.path} is of a run that has no checkpoint any more. Put its "
                "checkpoints back, or choose another folder: --out DIR. If nothing "
                f"in {self.path.parent} is worth keeping, delete it."
            )


class Journal:
    """The files of one run."""

    def __init__(self, out: Path):
        self.files = {n: LinesFile(out / n) for n in (METRICS, SAMPLES, TIMES)}

    def add(
        self,
        metrics: Mapping,
        samples: Sequence[Mapping] = (),
        seconds: Mapping | None = None,
    ) -> None:
        """Write down one epoch."""
        place = {"epoch": metrics["epoch"]}
        if samples:
            self.files[SAMPLES].append([place | dict(row) for row in samples])
        if seconds:
            self.files[TIMES].append([place | dict(seconds)])
        self.files[METRICS].append([metrics])

    def marks(self) -> dict[str, Mark]:
        """What a checkpoint notes of each file."""
        return {name: file.mark() for name, file in self.files.items()}

    def cut_back(self, marks: Mapping[str, Mark]) -> None:
        """Go back to what a checkpoint noted: check all files, then cut them.

        Raises ValueError, with all files as they were, for one that was changed. One
        that was removed is begun anew, unless it holds the metrics.
        """
        there = [n for n in marks if n == METRICS or self.files[n].path.exists()]
        for name in there:
            self.files[name].check(marks[name])
        for name in there:
            self.files[name].cut(marks[name])

    def require_empty(self) -> None:
        """Check that nothing is there that a new run would write over."""
        for file in self.files.values():
            file.require_empty()

    def history(self) -> History:
        """The metrics as the loop's records, one for each epoch."""
        path = self.files[METRICS].path
        if not path.exists():
            return History()
        return History(list(read_json_lines(path, as_record, CURE)))


def sha256(data: bytes) -> str:
    """The digest of some bytes."""
    return hashlib.sha256(data).hexdigest()


def damaged_line(data: bytes, counted: str) -> str:
    """Which line is none of a journal's, in words; empty if none is."""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            json.loads(line)[counted]
        except (ValueError, TypeError, KeyError, IndexError, RecursionError):
            return f", line {number}"
    return ""


def as_record(line: dict[str, float]) -> dict:
    """The numbers of one line as the loop has them: one record an epoch."""
    return from_json(line) | {"epoch": int(line["epoch"]), "step": 0}
