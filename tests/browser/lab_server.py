"""The course in JupyterLab, started by its commands: on a temporary checkout, without
the settings of the user.

It lets in who knows its token, which it makes itself: on a machine with several users,
a server without one is a terminal for all of them. The token is in a file that only
its user may read, and in no list of processes.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_course.classroom import record
from tools import run as tools_run

Address = Callable[[str], str]  # of a path on the server, with the token

ROOT = Path(__file__).resolve().parents[2]
STARTUP_SECONDS = 120
LOG = "server.log"
PRIVATE = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "IPYTHONDIR",
)
SETTINGS = {
    # Every cell is in the page, so that one look sees all of them.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "docmanager-extension/plugin": {"autosave": False},
}
OPTIONS = [
    "--no-browser",
    "--ServerApp.port=0",
    "--ServerApp.open_browser=False",
    "--LabApp.expose_app_in_browser=True",  # window.jupyterapp, which the tests read
]


def copy_course(folder: Path) -> None:
    """Copy the course, as a person clones it and has it installed.

    Beside it lies what `pip install --editable` notes of a checkout, so that a command
    starts at once.
    """
    for name in ("notebooks", "images", "grpo_course", "teaching", "tools"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    note = {"url": folder.as_uri(), "dir_info": {"editable": True}}
    installed = folder / "grpo_course.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: grpo-course\nVersion: 0\n")
    (installed / "direct_url.json").write_text(json.dumps(note))


def command(*arguments: str) -> list[str]:
    """A command of the course, as a person types it in its folder."""
    return [sys.executable, "-m", "grpo_course", *arguments]


def run(folder: Path, *arguments: str) -> None:
    """Run a command of the course in a folder, to its end."""
    subprocess.run(command(*arguments), cwd=folder, check=True, capture_output=True)


@contextmanager
def serve(name: str, root: Path, private: Path) -> Iterator[Address]:
    """Start a command in a checkout; the address of "lab", "api/status" and so on.

    What it prints is in `private`, as `server.log`.
    """
    environment = {**os.environ, **tools_run.VARIABLES}
    environment.pop(record.STORED)  # the tests click as a learner does
    environment.pop("JUPYTER_TOKEN", None)
    environment |= {name: str(private / name.lower()) for name in PRIVATE}
    write_settings(Path(environment["JUPYTERLAB_SETTINGS_DIR"]))
    with (private / LOG).open("w") as log:
        server = subprocess.Popen(
            command(name, *OPTIONS),
            cwd=root,
            env=environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
        told = wait_for(Path(environment["JUPYTER_RUNTIME_DIR"]), server)
        try:
            yield address_of(told)
        finally:
            os.kill(told["pid"], signal.SIGTERM)  # JupyterLab; then the command ends
            server.wait(30)


def printed_address(private: Path) -> str:
    """The address that the command has printed for who has no browser there."""
    said = (private / LOG).read_text(encoding="utf-8")
    return re.search(r"http://127\.0\.0\.1:\S+", said).group()


def write_settings(folder: Path) -> None:
    """Store what a user would set in the settings editor."""
    for name, values in SETTINGS.items():
        path = folder / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


def wait_for(runtime: Path, server: subprocess.Popen) -> dict:
    """What a server says of itself, once it answers at its address."""
    end = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < end and server.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                told = json.loads(path.read_text(encoding="utf-8"))
                urllib.request.urlopen(
                    address_of(told)("api/status"), timeout=5
                ).close()
                return told
            except (OSError, ValueError):
                pass  # not yet
        time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start; see {runtime.parent / LOG}")


def address_of(told: dict) -> Address:
    """What a server says of itself, as the address of its paths."""
    return lambda path: f"{told['url']}{path}?token={told['token']}"
