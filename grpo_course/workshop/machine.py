"""What Python is called on this system, the room on its disk, and Ctrl-C.

Standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

IS_WINDOWS = os.name == "nt"
GIGABYTE = 10**9
NEEDED = 2 * GIGABYTE  # by the packages, without CUDA
AND_CUDA = "and several more with PyTorch's CUDA build"
THIS = "python{}.{}".format(*sys.version_info)  # as its package is called
# A version of Python that the system offers: Debian 12 has this one alone.
COMMON = "3.11" if sys.platform.startswith("linux") else "3.14"
PYTHON_IS = (  # python.org has sources alone for Linux
    "Install one from your distribution, with its venv package,"
    if sys.platform.startswith("linux")
    else f"Install Python {COMMON} from https://www.python.org/downloads/ "
    "(not a newer one)"
)


def python(version: str = "") -> str:
    """What starts Python in a terminal: any Python 3, or one of a version like 3.14."""
    if IS_WINDOWS:
        # The launcher `py` knows an activated .venv, and no environment of conda.
        first = "python" if "CONDA_PREFIX" in os.environ else "py"
        return f"py -{version}" if version else first
    return f"python{version or 3}"


def call(command: str) -> str:
    """What to type for a command of the course."""
    return f"{python()} -m grpo_course {command}"


def wait_for(process: subprocess.Popen) -> int:
    """The exit status of a process that Ctrl-C reaches too, and that ends by itself."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


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
