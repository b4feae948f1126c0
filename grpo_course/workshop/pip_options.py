"""How pip is called: which torch it is sent to, and what it shows.

Standard library only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PYPI = "https://pypi.org/simple/pip/"
SECONDS = 5
PACKAGES = ("lib/python*", "Lib")  # in a virtual environment, the latter on Windows
PIP_FOLDER = "site-packages/pip-*.dist-info"
CUDA_NOTICE = f"""\
Note: {CPU_INDEX} does not answer; pip may take PyPI's
CUDA build of torch, several gigabytes. Ctrl-C stops it; then try again later, or set
PIP_FIND_LINKS to a folder with a CPU wheel of torch 2.13."""
NO_NETWORK = """\
Note: neither PyTorch's index nor PyPI answers. Are you online? Trying pip all
the same."""
# Tried once: without it there is no bar, and nothing else is lost.
RENEW = ("-m", "pip", "install", "--upgrade", "pip", "--retries=0", "--timeout=15")
SMALL = "a few minutes, up to 2 GB of disk"
LARGE = "a few minutes, 2 GB of disk and several more for torch's CUDA build"
OFFLINE = "this needs the network, or a folder of packages that pip knows"


def has_torch(venv: Path, root: Path) -> bool:
    """Whether the environment has a torch that the pin admits: pip leaves it alone."""
    pins = (root / "constraints.txt").read_text(encoding="utf-8")
    series = re.search(r"^torch==(\S+)", pins, re.MULTILINE)
    name = f"site-packages/torch-{series.group(1) if series else '*'}.dist-info"
    # 2.13.* is a pattern of names as well.
    return any(True for place in PACKAGES for _ in venv.glob(f"{place}/{name}"))


def progress_bar(venv: Path) -> str:
    """How pip is to tell its progress: in lines of numbers, from pip 24.1 on."""
    names = [
        path.name for place in PACKAGES for path in venv.glob(f"{place}/{PIP_FOLDER}")
    ]
    versions = [re.findall(r"\d+", name)[:2] for name in names]
    new = any([int(part) for part in version] >= [24, 1] for version in versions)
    return "raw" if new else "off"


def torch_options(python: Path) -> tuple[list[str], str]:
    """pip options for the build of torch that fits, and what a first install takes."""
    if not sys.platform.startswith("linux"):
        return [], SMALL  # there, PyPI's torch is the right one
    if shutil.which("nvidia-smi"):
        return [], LARGE
    if has_cpu_wheel(python):
        return [], SMALL
    if answers(CPU_INDEX, SECONDS):
        print(f"No NVIDIA GPU: torch's CPU build comes from {CPU_INDEX}", flush=True)
        return ["--extra-index-url", CPU_INDEX], SMALL
    reached = answers(PYPI, SECONDS)
    print(CUDA_NOTICE if reached else NO_NETWORK, flush=True)
    return [], LARGE if reached else OFFLINE


def has_cpu_wheel(python: Path) -> bool:
    """Whether a folder that pip is told to look into has a CPU build of torch."""
    ask = [str(python), "-m", "pip", "config", "list"]
    told = subprocess.run(ask, capture_output=True, text=True).stdout
    listed = " ".join(re.findall(r"find-links='(.*)'", told)).replace("\\n", " ")
    folders = map(Path, listed.split())
    return any(True for each in folders for _ in each.glob("torch-*+cpu*.whl"))


def answers(url: str, seconds: float) -> bool:
    """Whether a web address answers in time, name look-up included."""
    results: list[int] = []
    # A thread, because urlopen's own timeout does not cover the name look-up.
    thread = threading.Thread(target=ask, args=(url, seconds, results), daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(results)


def ask(url: str, seconds: float, results: list[int]) -> None:
    """Append the status of a successful answer."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as reply:
            results.append(reply.status)
    except (OSError, ValueError):
        pass  # no answer is an answer: the list stays empty
