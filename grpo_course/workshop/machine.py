"""What Python is called on this system, the room on its disk, and Ctrl-C.

Standard library only.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
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
NO_TORCH = """\
PyTorch has no build for {}, for which this Python is made.
On {}, install a Python made for {} processors; else use another computer."""


def python(version: str = "") -> str:
    """What starts Python in a terminal: any Python 3, or one of a version like 3.14."""
    if IS_WINDOWS:
        # The launcher `py` knows an activated .venv, and no environment of conda.
        first = "python" if "CONDA_PREFIX" in os.environ else "py"
        return f"py -{version}" if version else first
    return f"python{version or 3}"


def another_python(oldest: tuple[int, int], newest: tuple[int, int]) -> str:
    """How to start with a tested Python: one that is installed, or a new one."""
    for minor in range(newest[1], oldest[1] - 1, -1):
        name = f"python{newest[0]}.{minor}"
        if shutil.which(name) and not IS_WINDOWS:
            return f"You have {name}; run: {name} -m grpo_course lab"
    listed = "`py --list` says which you have; with none of these:\n"
    return (
        f"{listed if IS_WINDOWS else ''}{PYTHON_IS} "
        f"and use it, for example: {python(COMMON)} -m grpo_course lab\n"
        "Or use conda: README, Other ways to install."
    )


def system_problem() -> str:
    """That PyTorch has no build for this Python, and the cure, or nothing."""
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        return NO_TORCH.format("Intel Macs", "a newer Mac", "Apple's")
    if sysconfig.get_platform() == "win-arm64":
        return NO_TORCH.format("Windows on ARM", "such a computer", "64-bit Intel")
    return ""


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


def free(folder: Path) -> int:
    """How many bytes the disk of `folder` has left."""
    return shutil.disk_usage(folder).free


def in_gigabytes(size: int) -> str:
    """A number of bytes in words."""
    return f"{size / GIGABYTE:.1f} GB"


def disk_problem(folder: Path) -> str:
    """What is wrong with the room on the disk of `folder`, and the cure, or nothing."""
    left = free(folder)
    if left >= NEEDED:
        return ""
    return (
        f"Only {in_gigabytes(left)} are free on the disk of {folder}; the packages "
        f"take {NEEDED // GIGABYTE} GB, {AND_CUDA}.\n"
        "Free up some space, or move the course to another disk, and run the same "
        "command again."
    )
