"""The environment the course runs in: `.venv` in the checkout, made when needed.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grpo_course.workshop import installed, machine, pip_options, pip_run
from grpo_course.workshop.stamp import (
    UNFINISHED,
    is_begun,
    is_stamped,
    is_whole,
    read_stamp,
    venv_python,
    write_stamp,
)

OLDEST_PYTHON = (3, 11)
NEWEST_PYTHON = (3, 14)  # for which every pinned package has a build
LOG = "install.log"  # of the last install, in `.venv`
RESTARTED = "GRPO_COURSE_RESTARTED"
STOPPED = """\
The installation was stopped. Run the same command to resume; finished downloads are
kept."""


class NotReady(Exception):
    """The environment cannot be made; the message says why, and the cure."""


def ensure(root: Path, extras: tuple[str, ...], then: str = "") -> Path:
    """The Python that has the course and `extras`; installs if needed.

    `then` says what comes after an install, in words.
    """
    if not (root / "pyproject.toml").exists():
        raise NotReady(
            f"{root} is not a checkout of the course: it has no pyproject.toml.\n"
            "Clone the repository and run the command in its folder."
        )
    missing = missing_here(root, extras)
    if missing == []:
        return Path(sys.executable)
    venv = root / ".venv"
    if missing and not is_running(venv_python(venv)):
        print(f"{', '.join(missing)} missing here; using .venv instead.", flush=True)
    if not is_stamped(venv, root, extras):
        if problem := machine.system_problem():
            raise NotReady(problem)
        check_python(sys.version_info[:2])
        build_once(venv, root, extras)
        print(f"Installed in .venv; going on to {then}", flush=True)
    return venv_python(venv)


def missing_here(root: Path, extras: tuple[str, ...]) -> list[str] | None:
    """What the running environment lacks; None if it has no course or we made it."""
    venv = root / ".venv"
    made_here = is_running(venv_python(venv)) and is_begun(venv)
    if made_here or not installed.from_checkout(root):
        return None
    return installed.missing_packages(extras)


def find(root: Path, extras: tuple[str, ...]) -> Path | None:
    """A Python with the course and `extras`, up to date or not; installs nothing."""
    if missing_here(root, extras) == []:
        return Path(sys.executable)
    venv = root / ".venv"
    return venv_python(venv) if is_whole(venv, extras) else None


def check_python(version: tuple[int, int]) -> None:
    """Refuse a Python for which the tested packages have no build."""
    if not OLDEST_PYTHON <= version <= NEWEST_PYTHON:
        raise NotReady(
            f"The course needs Python {tested_pythons()}; this is "
            f"{version[0]}.{version[1]} ({sys.executable}).\n"
            f"{machine.another_python(OLDEST_PYTHON, NEWEST_PYTHON)}"
        )


def tested_pythons() -> str:
    """The versions of Python that the pinned packages run on, in words."""
    versions = (OLDEST_PYTHON, NEWEST_PYTHON)
    return " to ".join(f"{major}.{minor}" for major, minor in versions)


def is_running(python: Path) -> bool:
    """Whether this process runs in the environment of `python`."""
    # By folder, not by file: bin/python is a link to the system's Python.
    same_folder = python.parent.parent.resolve() == Path(sys.prefix).resolve()
    return same_folder or python == Path(sys.executable)


def build_once(venv: Path, root: Path, extras: tuple[str, ...]) -> None:
    """Build, but not while another command does, nor again after it."""
    waiting = f"Another command is making {venv}: waiting until it is done"
    with one_at_a_time(venv.with_name(f"{venv.name}.lock"), waiting):
        if not is_stamped(venv, root, extras):
            try:
                build(venv, root, extras)
            except KeyboardInterrupt:
                raise NotReady(STOPPED) from None


@contextmanager
def one_at_a_time(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock of a file while inside; print `waiting` if another holds it.

    The system frees it when its holder ends or dies. Where the file cannot be made or
    the file system has no locks, go on without.
    """
    try:
        file = path.open("a")
    except OSError:
        yield
        return
    with file:
        if not try_lock(file):
            print(waiting, flush=True)
            while not try_lock(file):
                time.sleep(0.5)
        yield


def try_lock(file: IO) -> bool:
    """Whether the lock is held now. It goes when the file is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:  # the two words of the systems for a lock that is held
        return problem.errno not in (errno.EAGAIN, errno.EACCES)
    return True


def build(venv: Path, root: Path, extras: tuple[str, ...]) -> None:
    """Make `.venv` if it is missing or half made, install, and stamp it."""
    wanted = sorted({*extras, *read_stamp(venv).get("extras", [])})
    problem = machine.disk_problem(root)
    if problem and not pip_options.has_torch(venv, root):
        raise NotReady(problem)
    if (venv / UNFINISHED).exists() or not has_pip(venv):
        make_venv(venv)
    (venv / UNFINISHED).touch()
    install(venv, root, wanted)
    write_stamp(venv, root, wanted)


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
                f"On Debian and Ubuntu: sudo apt install {machine.THIS}-venv\n"
                "Then run the same command again. Without sudo: conda, see README,\n"
                "Other ways to install."
            )
    print(f"Making {venv}", flush=True)
    # Not the environment's own Python: it would be deleted while it runs.
    python = getattr(sys, "_base_executable", None) or sys.executable
    if run([python, "-m", "venv", "--clear", venv]) != 0:
        raise NotReady(
            f"{venv} could not be made (the reason is above).\n"
            "Check that the folder can be written to and the disk has 2 GB free; "
            "delete .venv if it is there, and run the same command again."
        )
    if pip_options.progress_bar(venv) == "off":  # the pip of Python 3.11 is too old
        run([venv_python(venv), *pip_options.RENEW], quiet=True)


def install(venv: Path, root: Path, extras: list[str]) -> None:
    """Install the course from this checkout, with the tested versions."""
    target = f"-e{root}[{','.join(extras)}]" if extras else f"-e{root}"
    options = prepare(venv, root)
    pip = [str(venv_python(venv)), "-m", "pip", "install"]
    progress = ["--progress-bar", pip_options.progress_bar(venv)]
    command = [*pip, *progress, *options, "-c", str(root / "constraints.txt"), target]
    if pip_run.run(command, venv / LOG) != 0:
        said = (venv / LOG).read_text(encoding="utf-8")
        raise NotReady(pip_run.explain(said, venv / LOG, tested_pythons()))


def prepare(venv: Path, root: Path) -> list[str]:
    """Tell what will be installed, and give pip's options for it."""
    if pip_options.has_torch(venv, root):
        print(f"Adding what is missing in {venv}, from the network", flush=True)
        return []
    options, takes = pip_options.torch_options(venv_python(venv))
    room = machine.in_gigabytes(machine.free(root))
    print(f"Installing into {venv}: {takes} ({room} are free)", flush=True)
    return options


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
    if machine.IS_WINDOWS:  # there, execv would return to the prompt at once
        return machine.wait_for(subprocess.Popen(command))
    sys.stdout.flush()  # execv drops what is still buffered
    os.execv(command[0], command)
    return 1  # never reached
