"""Which torch pip is sent to. Standard library only."""

from __future__ import annotations

import re
import shutil
import sys
import threading
import urllib.request
from pathlib import Path

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SECONDS = 5
PACKAGES = ("lib/python*", "Lib")  # in a virtual environment, the latter on Windows
CUDA_NOTICE = f"""\
Note: {CPU_INDEX} does not answer; pip may take PyPI's
CUDA build of torch, several gigabytes. Ctrl+C stops it; then try again later, or set
PIP_FIND_LINKS to a folder with a CPU wheel of torch 2.13."""


def has_torch(venv: Path, root: Path) -> bool:
    """Whether the environment has a torch that the pin admits: pip leaves it alone."""
    pins = (root / "constraints.txt").read_text(encoding="utf-8")
    series = re.search(r"^torch==(\S+)", pins, re.MULTILINE)
    name = f"site-packages/torch-{series.group(1) if series else '*'}.dist-info"
    # 2.13.* is a pattern of names as well.
    return any(True for place in PACKAGES for _ in venv.glob(f"{place}/{name}"))


def torch_options() -> list[str]:
    """pip options that get the CPU build of torch where that is what fits."""
    if not sys.platform.startswith("linux") or shutil.which("nvidia-smi"):
        return []  # elsewhere PyPI's torch is the right one
    if answers(CPU_INDEX, SECONDS):
        print(f"No NVIDIA GPU: torch's CPU build comes from {CPU_INDEX}", flush=True)
        return ["--extra-index-url", CPU_INDEX]
    print(CUDA_NOTICE, flush=True)
    return []


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
