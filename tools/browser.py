"""`test-browser`: try JupyterLab and the website in a headless Chromium.

`--quick` runs one notebook, and looks at few pages and slides
(`tests/browser/quick.py`). What else is given goes to pytest.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tools import site
from tools.run import TWO_AT_ONCE, python, use_variables

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Fonts too: what fits a slide depends on them.
DEBIAN = ("chromium", "fonts-liberation", "fonts-dejavu-core", "fonts-dejavu-extra")
NO_CHROMIUM = """\
No Chromium or Chrome was found, and it could not be installed. Install one, for example
  Debian, Ubuntu:  sudo apt install chromium
  Fedora:          sudo dnf install chromium
  macOS:           brew install --cask chromium
and make sure that it can be started as one of: """
QUICK = "GRPO_COURSE_QUICK"


def find_chromium() -> str | None:
    """The path of the first browser on the PATH; None if there is none."""
    return next((path for name in CHROMIUM if (path := shutil.which(name))), None)


def main(arguments: list[str], root: Path) -> int:
    """Build the site and run the browser tests; a site with warnings ends it."""
    if not find_chromium() and getattr(os, "geteuid", lambda: 1)() == 0:
        print("Installing Debian's Chromium with apt-get, if it is there.", flush=True)
        packages = ["install", "-y", "-q", "--no-install-recommends", *DEBIAN]
        for command in (["update", "-q"], packages):
            if apt := shutil.which("apt-get"):
                subprocess.run([apt, *command], stdout=subprocess.DEVNULL)
    if not find_chromium():
        raise SystemExit(NO_CHROMIUM + ", ".join(CHROMIUM))
    use_variables()
    options = [argument for argument in arguments if argument != "--quick"]
    if "--quick" in arguments:
        os.environ[QUICK] = "1"
    if status := site.main([], root):
        return status
    # In their folder: pytest takes its settings, and its tests where none is named.
    pytest = ["-m", "pytest", *TWO_AT_ONCE, *options]
    return python(pytest, root / "tests" / "browser")
