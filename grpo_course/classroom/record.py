"""What a learner has done, kept in a small file beside the notebook.

    {"exercises": {"3.1": "v"}, "guesses": {"which way?": {"guess": "up"}}}

Nothing is read or written where no learner sits: in plain Python, and in the kernels of
tests, `run` and `save`, which have set STORED.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from grpo_course.classroom.screen import in_kernel
from grpo_course.files import write_atomically

NAME = "my_progress.json"
FOLDER = "GRPO_COURSE_FOLDER"  # `lab` says where; otherwise beside the notebook
STORED = "GRPO_COURSE_STORED_OUTPUTS"  # set where outputs are stored or compared


def learner_is_here() -> bool:
    """Whether somebody works in this notebook, who may click and wants things kept."""
    return in_kernel() and not os.environ.get(STORED)


def kept(kind: str) -> dict[str, Any]:
    """What is kept of a kind ("exercises", "guesses") for the notebook that runs."""
    return read(folder()).get(kind, {}) if learner_is_here() else {}


def keep(kind: str, name: str, value: Any) -> None:
    """Keep one thing more; what other notebooks have kept in the meantime stays."""
    if not learner_is_here():
        return
    everything = read(folder())
    everything.setdefault(kind, {})[name] = value
    text = json.dumps(everything, indent=1, ensure_ascii=False) + "\n"
    with suppress(OSError):  # a folder that cannot be written to stops no lesson
        write_atomically(folder() / NAME, text)


def folder() -> Path:
    """Where it is kept, whatever folder a cell has changed to."""
    return Path(os.environ.get(FOLDER) or Path.cwd())


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """All that is kept in a folder of notebooks; nothing where no file can be read."""
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return {kind: each for kind, each in found.items() if isinstance(each, dict)}
    except (OSError, ValueError, AttributeError):  # AttributeError: no dict
        return {}
