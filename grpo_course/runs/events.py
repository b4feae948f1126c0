"""A run as TensorBoard's event files: what is there, and what comes while it goes on.

They lie in the run's folder: `tensorboard --logdir runs` shows all runs side by side.
"""

import json
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from grpo_course.extras import require_extra
from grpo_course.files import write_atomically
from grpo_course.runs.folder import is_taken
from grpo_course.runs.journal import METRICS, TIMES
from grpo_course.runs.record import lines

FOLDER, WRITTEN = "tensorboard", "written.json"
GROUPS = {METRICS: "metrics", TIMES: "seconds"}  # file of the run -> part of the page
PAUSE = 5.0  # seconds between two looks at a run that goes on


def require_tensorboard() -> None:
    """Raise MissingExtra with the cure where TensorBoard is not installed."""
    what = "--tensorboard needs the package tensorboard"
    require_extra("tensorboard", "tensorboard", what)


class Events:
    """The event files of one run.

    A file holds what came since the one before. TensorBoard, which may be reading them,
    wants none changed or removed; so a note beside them says what they hold.
    """

    def __init__(self, out: Path):
        self.out, self.note = out, out / FOLDER / WRITTEN
        there = json.loads(self.note.read_text()) if self.note.is_file() else {}
        self.written = dict.fromkeys(GROUPS, 0) | there  # lines
        made = import_module("torch.utils.tensorboard").SummaryWriter
        self.writer: Any = made(str(out / FOLDER))

    def catch_up(self) -> None:
        """Write the lines that came since the last time."""
        for name, group in GROUPS.items():
            rows = lines(self.out / name)
            for row in rows[self.written[name] :]:
                for measure, value in row.items():
                    if measure != "epoch":
                        tag = f"{group}/{measure}"
                        self.writer.add_scalar(tag, value, row["epoch"])
            self.written[name] = len(rows)
        self.writer.flush()
        write_atomically(self.note, json.dumps(self.written))


def follow(runs: Sequence[Path]) -> None:
    """Write the events of some runs until none of them goes on."""
    events = [Events(out) for out in runs]
    while True:
        going = [is_taken(out) for out in runs]  # first, or the last lines are missed
        for each in events:
            each.catch_up()
        if not any(going):
            return
        time.sleep(PAUSE)
