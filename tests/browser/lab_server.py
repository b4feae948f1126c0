"""A JupyterLab server of its own: temporary notebooks, no settings of the user.

It lets in who knows its token, which it makes itself: on a machine with several users,
a server without one is a terminal for all of them. The token is in a file that only
its user may read, and in no list of processes.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_course.classroom import record
from grpo_course.workshop import kernels

Address = Callable[[str], str]  # of a path on the server, with the token

STARTUP_SECONDS = 120
PRIVATE = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "IPYTHONDIR",
)
SETTINGS = {
    # No question about news over the notebook.
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
    # Every cell is in the page, so that one look sees all of them.
    "notebook-extension/tracker": {"windowingMode": "none"},
    "docmanager-extension/plugin": {"autosave": False},
}
OPTIONS = [
    "--no-browser",
    "--ServerApp.port=0",
    "--ServerApp.open_browser=False",
    "--ServerApp.log_level=ERROR",
    "--LabApp.expose_app_in_browser=True",  # window.jupyterapp, which the tests read
    "--allow-root",
]


@contextmanager
def serve(folder: Path, private: Path) -> Iterator[Address]:
    """Serve `folder` in JupyterLab; the address of "lab", "api/status" and so on."""
    environment = {**os.environ, **kernels.VARIABLES}
    environment.pop(record.STORED)  # the tests click as a learner does
    environment.pop("JUPYTER_TOKEN", None)
    environment |= {name: str(private / name.lower()) for name in PRIVATE}
    write_settings(Path(environment["JUPYTERLAB_SETTINGS_DIR"]))
    command = [sys.executable, "-m", "jupyterlab", *OPTIONS]
    log = (private / "server.log").open("w")
    server = subprocess.Popen(
        [*command, f"--ServerApp.root_dir={folder}"],
        env=environment,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield wait_for(Path(environment["JUPYTER_RUNTIME_DIR"]), server)
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def write_settings(folder: Path) -> None:
    """Store what a user would set in the settings editor."""
    for name, values in SETTINGS.items():
        path = folder / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")


def wait_for(runtime: Path, server: subprocess.Popen) -> Address:
    """The address, once the server answers there."""
    end = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < end and server.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                address = address_of(json.loads(path.read_text(encoding="utf-8")))
                urllib.request.urlopen(address("api/status"), timeout=5).close()
                return address
            except (OSError, ValueError):
                pass  # not yet
        time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start; see {runtime.parent}/server.log")


def address_of(told: dict) -> Address:
    """What a server says of itself, as the address of its paths."""
    return lambda path: f"{told['url']}{path}?token={told['token']}"
