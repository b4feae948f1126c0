"""What Python is called on this system, and the room on its disk.

Standard library only.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

IS_WINDOWS = os.name == "nt"
PYTHON_IS = (  # python.org has sources alone for Linux
    "Install one from your distribution, with its venv package,"
    if sys.platform.startswith("linux")
    else "Install one from https://www.python.org/downloads/"
)
GIGABYTE = 10**9
NEEDED = 2 * GIGABYTE  # by the packages, without CUDA
AND_CUDA = "and several more with PyTorch's CUDA build"
THIS = "python{}.{}".format(*sys.version_info)  # as its package is called
COMMON = "3.12"  # a version of Python that most systems offer


def python(version: str = "") -> str:
    """What starts Python in a terminal: any Python 3, or one of a version like 3.14."""
    if IS_WINDOWS:
        return f"py -{version}" if version else "py"
    return f"python{version or 3}"


def call(command: str) -> str:
    """What to type for a command of the course."""
    return f"{python()} -m grpo_course {command}"


def disk_problem(folder: Path) -> str:
    """What is wrong with the room on the disk of `folder`, and the cure, or nothing."""
    free = shutil.disk_usage(folder).free
    if free >= NEEDED:
        return ""
    return (
        f"The disk of {folder} has {free / GIGABYTE:.1f} GB left; the packages take "
        f"{NEEDED // GIGABYTE} GB, {AND_CUDA}.\n"
        "Free some room, or move the course to another disk, and run the same "
        "command again."
    )
