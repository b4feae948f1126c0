"""Run pip: what it does in one line, its log in a file, and why it failed.

Standard library only.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

# What it is, and what pip says then; the first that fits. That versions are listed
# shows that an index answered, "total=0" that pip has given an address up.
SIGNS = (
    ("disk", r"No space left on device|not enough space on the disk"),
    (
        "versions",
        r"ResolutionImpossible|requires a different Python|"
        r"\(from versions: (?!none\))",
    ),
    (
        "network",
        r"Retry\(total=0|Max retries exceeded|Read timed out|Connection aborted|"
        r"(NewConnection|Connection|ReadTimeout|SSL|Proxy)Error",
    ),
    ("versions", r"No matching distribution found"),
)
CURES = {
    "disk": "The disk is full. Free 2 GB and run the same command again.",
    "versions": """\
The network is not the reason: the versions that the course is tested with cannot all
be installed here, with Python {python} on {system}. They exist for
Python {tested} on 64-bit Linux, 64-bit Windows and Macs with Apple's processors.
Delete .venv and name one of these, for example: python3.11 -m grpo_course lab
If yours is one of these, report it with the log.""",
    "network": """\
pip does not reach the addresses from which packages come. Connect to the network, or
look at the proxy that pip uses, and run the same command again; downloads are kept.""",
    "other": "Run the same command again.",
}
REASON = re.compile(r"ERROR:|error:|.* depends on |The user requested ")
SHOWN, WIDTH = 6, 300  # how many of pip's lines, and how much of each


def run(command: list[str], log: Path) -> int:
    """The exit status of pip; what it says goes into `log`."""
    steps = Steps()
    with log.open("w", encoding="utf-8") as file, started(command) as process:
        for line in process.stdout or ():
            file.write(line)
            steps.see(line)
    steps.end()
    return process.returncode


def started(command: list[str]) -> subprocess.Popen[str]:
    """A process whose words are read as they come, errors among them."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


class Steps:
    """What pip is doing: one line that is rewritten, where that can be."""

    def __init__(self) -> None:
        self.can_rewrite = sys.stdout.isatty()
        self.found = 0

    def see(self, line: str) -> None:
        """Take a line of pip's, and tell the step that it begins."""
        word, _, rest = line.strip().partition(" ")
        if word == "Collecting":
            self.found += 1
            self.tell(f"{self.found} packages found: {rest}")
        elif word == "Downloading" and ".metadata" not in rest:
            self.tell(f"{self.found} packages found; downloading {rest}")
        elif rest.startswith("Retrying (Retry("):
            self.tell("No answer; trying again")
        elif line.startswith("Installing collected packages:"):
            self.tell(f"Unpacking {line.count(',') + 1} packages, about a minute")
            self.end()

    def tell(self, text: str) -> None:
        """Write over the line before, as far as the window is wide."""
        if self.can_rewrite:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{text[:width]:<{width}}", end="", flush=True)
        elif text.startswith("Unpacking"):
            print(text, flush=True)

    def end(self) -> None:
        """Let the line stand."""
        if self.can_rewrite:
            print(flush=True)


def explain(said: str, log: Path, tested: str) -> str:
    """What pip's words mean, and the cure; `tested` are the versions of Python."""
    kind = next((kind for kind, sign in SIGNS if re.search(sign, said)), "other")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reasons = [line for line in lines if REASON.match(line)]
    told = lines if kind == "other" else reasons or lines
    shown = "\n".join(f"  {line[:WIDTH]}" for line in told[-SHOWN:])
    cure = CURES[kind].format(
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        tested=tested,
    )
    return f"pip could not install the packages:\n{shown}\n{cure}\nIts whole log: {log}"
