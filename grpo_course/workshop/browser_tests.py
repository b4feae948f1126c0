"""`python3 -m grpo_course test-browser [--quick] [pytest options]`.

JupyterLab and the website in a real, headless Chromium. `--quick` runs
the cells of two notebooks and audits the pages of four; the rest
of the site is always whole (`tests/browser/quick.py`).
"""

import os
import shutil
import subprocess
from pathlib import Path

from grpo_course.workshop import kernels, site
from grpo_course.workshop.tests import TWO_AT_ONCE

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Fonts too: what fits a slide depends on them.
DEBIAN = ("chromium", "fonts-liberation", "fonts-dejavu-core", "fonts-dejavu-extra")
MISSING = """\
No Chromium or Chrome was found, and it could not be installed. Install one, for example
  Debian, Ubuntu:  sudo apt install chromium
  Fedora:          sudo dnf install chromium
  macOS:           brew install --cask chromium
and make sure that it can be started as one of: """
QUICK = "GRPO_COURSE_QUICK"


def find_chromium() -> str:
    """The path of an installed Chromium or Chrome."""
    path = installed_chromium()
    if path is None:
        raise SystemExit(MISSING + ", ".join(CHROMIUM))
    return path


def installed_chromium() -> str | None:
    """The first browser on the PATH; None if there is none."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def install_chromium() -> None:
    """Take Debian's package where this process may install it; else do nothing."""
    may = shutil.which("apt-get") and getattr(os, "geteuid", lambda: 1)() == 0
    if installed_chromium() or not may:
        return
    print("Installing Debian's Chromium with apt-get.", flush=True)
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *DEBIAN]
    for command in (["apt-get", "update", "-q"], install):
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)


def main(arguments: list[str], root: Path) -> int:
    """Build the site and run the browser tests; a site with warnings ends it."""
    install_chromium()
    find_chromium()
    kernels.use()
    options = [argument for argument in arguments if argument != "--quick"]
    if "--quick" in arguments:
        os.environ[QUICK] = "1"
    if status := site.main([], root):
        return status
    # In their folder: pytest takes its settings, and its tests where none is named.
    pytest = ["-m", "pytest", *TWO_AT_ONCE, *options]
    return kernels.python(pytest, root / "tests" / "browser")
