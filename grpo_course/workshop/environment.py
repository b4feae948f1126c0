"""The environment the course runs in: `.venv` in the checkout, made when needed.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from grpo_course.lock import one_at_a_time
from grpo_course.workshop import installed, pip_options, pip_run

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 14)  # for which every pinned package has a build
STAMP = "grpo_course_stamp.json"  # written last: its presence means a whole install
LOG = "install.log"  # of the last install, in `.venv`
UNFINISHED = "grpo_course_unfinished"  # there while an install is under way
RESTARTED = "GRPO_COURSE_RESTARTED"


class NotReady(Exception):
    """The environment cannot be made; the message says why, and the cure."""


def ensure(root: Path, extras: tuple[str, ...]) -> Path:
    """The Python that has the course and `extras` installed; installs if needed."""
    check_python(sys.version_info[:2])
    if not (root / "pyproject.toml").exists():
        raise NotReady(
            f"{root} is not a checkout of the course: it has no pyproject.toml.\n"
            "Clone the repository and run the command in its folder."
        )
    venv = root / ".venv"
    if not is_running(venv_python(venv)) and installed.from_checkout(root):
        missing = installed.missing_packages(extras)
        if not missing:
            return Path(sys.executable)
        print(
            f"This environment has no {', '.join(missing)}: using .venv instead.",
            flush=True,
        )
    if not is_stamped(venv, root, extras):
        build_once(venv, root, extras)
    return venv_python(venv)


def check_python(version: tuple[int, int]) -> None:
    """Refuse a Python that is too old for the course."""
    if version < OLDEST_PYTHON:
        raise NotReady(
            f"The course needs Python 3.11 or newer; this is {version[0]}.{version[1]} "
            f"({sys.executable}).\nInstall one from https://www.python.org/downloads/ "
            "and name it, for example: python3.11 -m grpo_course lab"
        )


def tested_pythons() -> str:
    """The versions of Python that the pinned packages run on, in words."""
    versions = (OLDEST_PYTHON, NEWEST_PYTHON)
    return " to ".join(f"{major}.{minor}" for major, minor in versions)


def venv_python(venv: Path) -> Path:
    """The path of a virtual environment's Python."""
    windows = os.name == "nt"
    return venv / ("Scripts/python.exe" if windows else "bin/python")


def is_running(python: Path) -> bool:
    """Whether this process runs in the environment of `python`."""
    # By folder, not by file: bin/python is a link to the system's Python.
    same_folder = python.parent.parent.resolve() == Path(sys.prefix).resolve()
    return same_folder or python == Path(sys.executable)


def fingerprint(venv: Path, root: Path) -> str:
    """A hash of all that an install depends on; the extras are kept beside it."""
    files = [root / "pyproject.toml", root / "constraints.txt", venv / "pyvenv.cfg"]
    parts = [path.read_bytes() if path.exists() else b"" for path in files]
    return hashlib.sha256(b"\0".join([str(root).encode(), *parts])).hexdigest()


def read_stamp(venv: Path) -> dict:
    """The stamp of the last whole install, or an empty one."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def is_stamped(venv: Path, root: Path, extras: tuple[str, ...]) -> bool:
    """Whether `.venv` is whole and up to date, `extras` included."""
    stamp = read_stamp(venv)
    return (
        venv_python(venv).exists()
        and not (venv / UNFINISHED).exists()
        and stamp.get("fingerprint") == fingerprint(venv, root)
        and set(extras) <= set(stamp.get("extras", []))
    )


def build_once(venv: Path, root: Path, extras: tuple[str, ...]) -> None:
    """Build, but not while another command does, nor again after it."""
    waiting = f"Another command is making {venv}: waiting until it is done"
    with one_at_a_time(venv.with_name(f"{venv.name}.lock"), waiting):
        if not is_stamped(venv, root, extras):
            build(venv, root, extras)


def build(venv: Path, root: Path, extras: tuple[str, ...]) -> None:
    """Make `.venv` if it is missing or half made, install, and stamp it."""
    wanted = sorted({*extras, *read_stamp(venv).get("extras", [])})
    if (venv / UNFINISHED).exists() or not has_pip(venv):
        make_venv(venv)
    (venv / UNFINISHED).touch()
    install(venv, root, wanted)
    stamp = {"fingerprint": fingerprint(venv, root), "extras": wanted}
    (venv / STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    (venv / UNFINISHED).unlink()


def has_pip(venv: Path) -> bool:
    """Whether the environment exists and its Python and pip start."""
    python = venv_python(venv)
    return python.exists() and run([python, "-m", "pip", "--version"], quiet=True) == 0


def make_venv(venv: Path) -> None:
    """Create the virtual environment, replacing a half-made one."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            raise NotReady(
                f"This Python has no {module} module, so it cannot make .venv.\n"
                "On Debian and Ubuntu: sudo apt install python3-venv\n"
                "Then run the same command again."
            )
    print(f"Making {venv}", flush=True)
    # Not the environment's own Python: it would be deleted while it runs.
    python = getattr(sys, "_base_executable", None) or sys.executable
    if run([python, "-m", "venv", "--clear", venv]) != 0:
        raise NotReady(
            f"{venv} could not be made (the reason is above).\n"
            "Look whether the folder can be written to and the disk has 2 GB left; "
            "delete .venv if it is there, and run the same command again."
        )


def install(venv: Path, root: Path, extras: list[str]) -> None:
    """Install the course from this checkout, with the tested versions."""
    target = f"-e{root}[{','.join(extras)}]" if extras else f"-e{root}"
    options = [] if pip_options.has_torch(venv, root) else pip_options.torch_options()
    print("Installing the packages (a few minutes the first time)", flush=True)
    pip = [str(venv_python(venv)), "-m", "pip", "install", "--progress-bar", "off"]
    command = [*pip, *options, "-c", str(root / "constraints.txt"), target]
    if pip_run.run(command, venv / LOG) != 0:
        said = (venv / LOG).read_text(encoding="utf-8")
        raise NotReady(pip_run.explain(said, venv / LOG, tested_pythons()))


def run(command: list[str | Path], quiet: bool = False) -> int:
    """The exit status of a command."""
    sink = subprocess.DEVNULL if quiet else None
    return subprocess.call([str(part) for part in command], stdout=sink, stderr=sink)


def restart(python: Path, arguments: list[str]) -> int:
    """Run the same command again, in the environment's Python."""
    if os.environ.get(RESTARTED) == str(python):
        raise NotReady(
            f"{python} does not start in its own environment (was Python updated?).\n"
            "Delete the folder .venv and run the same command again."
        )
    os.environ[RESTARTED] = str(python)
    command = [str(python), "-m", "grpo_course", *arguments]
    if os.name == "nt":  # there, execv would return to the prompt at once
        return subprocess.call(command)
    sys.stdout.flush()  # execv drops what is still buffered
    os.execv(command[0], command)
    return 1  # never reached
