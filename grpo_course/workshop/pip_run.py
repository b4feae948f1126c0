"""Run pip: what it does in one line, its log in a file, and why it failed.

Standard library only.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

from grpo_course.workshop import machine

# What it is, and what pip says then; the first that fits. That versions are listed
# shows that an index answered, "total=0" that pip has given an address up.
SIGNS = (
    ("paths", r"Long Path support|WinError 206"),
    ("disk", r"No space left on|not enough space on the disk|Disk quota exceeded"),
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
    "disk": f"The disk or your quota is full. Free 2 GB, {machine.AND_CUDA},\n"
    "and run the same command again. If it has room, the temporary folder is full:\n"
    "set TMPDIR (on Windows TEMP) to another.",
    "paths": """\
Windows refuses long paths. Move the course into a folder with a short one, such as
C:\\grpo, or switch long paths on (https://pip.pypa.io/warnings/enable-long-paths), and
run the same command again.""",
    "versions": """\
This is not a network problem: some of the tested versions are not available here, for
Python {python} on {system}. They are available for 64-bit Linux, 64-bit
Windows, and macOS 14 and newer with Apple's processors, and 64-bit Python {tested}.
If your Python is another, delete .venv and run {common} -m grpo_course lab
If your system is another, no Python helps: use another computer.
If both are among them, pip's index may be a mirror without them (pip config list);
else report that with the log.""",
    "network": """\
This is a network problem, whatever the lines above say about versions: pip cannot reach
the package index. Check your connection, pip's proxy or your company's certificate, and
run the same command again; finished downloads are kept.""",
    "other": """\
The lines above are pip's reason. Run the same command again; if it fails the same way,
delete .venv and try once more, then report it with the log.""",
}
REASON = re.compile(r"ERROR:|error:|.* depends on |The user requested ")
PROGRESS = re.compile(r"Progress (\d+) of (\d+)$")  # of --progress-bar raw
MANY = 10  # packages that take some time to unpack
SHOWN, WIDTH = 6, 300  # how many of pip's lines, and how much of each


def run(command: list[str], log: Path) -> int:
    """The exit status of pip; what it says goes into `log`."""
    steps = Steps()
    with log.open("w", encoding="utf-8") as file, started(command) as process, steps:
        for line in process.stdout or ():
            progress = PROGRESS.match(line)
            if progress:
                steps.see_progress(*map(int, progress.groups()))
            else:
                file.write(line)
                steps.see(line)
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
    """What pip is doing, and for how long: one line that is rewritten, with a clock.

    Where it cannot be rewritten, a line now and then, ever more rarely: 20 in an hour.
    """

    def __init__(self) -> None:
        self.can_rewrite = sys.stdout.isatty()
        self.pause, self.growth = (1.0, 1.0) if self.can_rewrite else (20.0, 1.2)
        self.found = 0
        self.share, self.text = "", "looking for the packages"
        self.began = time.monotonic()
        self.ended = threading.Event()
        self.clock = threading.Thread(target=self.tick, daemon=True)

    def __enter__(self) -> None:
        self.clock.start()

    def __exit__(self, *problem: object) -> None:
        self.ended.set()
        self.clock.join()
        if self.can_rewrite:
            print(flush=True)  # let the line stand

    def tick(self) -> None:
        """Show that time passes, also while pip says nothing."""
        while not self.ended.wait(self.pause):
            self.show()
            self.pause *= self.growth

    def see(self, line: str) -> None:
        """Take a line of pip's, and tell the step that it begins."""
        word, _, rest = line.strip().partition(" ")
        if word == "Collecting":
            self.found += 1
            self.tell(f"{packages(self.found)} found: {rest}")
        elif word == "Downloading" and ".metadata" not in rest:
            file, _, size = rest.rpartition("/")[2].partition(" ")
            name = f"{file.partition('-')[0]} {size}".strip()
            self.tell(f"{packages(self.found)} found; downloading {name}")
        elif rest.startswith("Retrying (Retry("):
            self.tell("No answer; trying again")
        elif line.startswith("Installing collected packages:"):
            self.tell(unpacking(line.count(",") + 1), always=True)

    def see_progress(self, bytes_here: int, bytes_in_all: int) -> None:
        """Take how far a download is."""
        done = bytes_here / (bytes_in_all or 1)
        bar = f"[{'#' * int(10 * done):<10}] {done:.0%}  "
        self.share = bar if bytes_in_all else ""
        if self.can_rewrite:
            self.show()

    def tell(self, text: str, always: bool = False) -> None:
        """Begin a step."""
        self.share, self.text = "", text
        if self.can_rewrite or always:
            self.show()

    def show(self) -> None:
        """Write over the line before, as far as the window is wide, or a new one."""
        seconds = int(time.monotonic() - self.began)
        line = f"{seconds // 60}:{seconds % 60:02}  {self.share}{self.text}"
        if self.can_rewrite:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{line[:width]:<{width}}", end="", flush=True)
        else:
            print(line, flush=True)


def unpacking(count: int) -> str:
    """The last step, in words."""
    return f"Unpacking {packages(count)}{', a minute or more' if count >= MANY else ''}"


def packages(count: int) -> str:
    """How many, in words."""
    return f"{count} package{'' if count == 1 else 's'}"


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
        common=machine.python(machine.COMMON),
    )
    return f"pip could not install the packages:\n{shown}\n{cure}\nFull log: {log}"
