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
    "Take one from your distribution, with its package for venv,"
    if sys.platform.startswith("linux")
    else "Install one from https://www.python.org/downloads/"
)
GIGABYTE = 10**9
NEEDED = 2 * GIGABYTE  # by the packages, without CUDA


def python(version: str = "") -> str:
    """What starts Python in a terminal: any Python 3, or one of a version like 3.14."""
    if IS_WINDOWS:
        return f"py -{version}" if version else "py"
    return f"python{version or 3}"


def disk_problem(folder: Path) -> str:
    """What is wrong with the room on the disk of `folder`, and the cure, or nothing."""
    free = shutil.disk_usage(folder).free
    if free >= NEEDED:
        return ""
    return (
        f"The disk of {folder} has {free / GIGABYTE:.1f} GB left; the packages take "
        f"{NEEDED // GIGABYTE} GB.\nFree some room, or move the course to another "
        "disk, and run the same command again."
    )
