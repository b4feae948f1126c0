"""Which torch pip is sent to. Standard library only."""

from __future__ import annotations

import shutil
import sys
import threading
import urllib.request

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SECONDS = 5
CUDA_NOTICE = f"""\
Note: {CPU_INDEX} does not answer.
Unless your pip is set up to find a CPU build of torch, PyPI sends the CUDA build:
several gigabytes, of no use without an NVIDIA GPU. To avoid that, press Ctrl+C and
try again when the address answers, or put a torch 2.13 CPU wheel into a folder and
set PIP_FIND_LINKS to that folder."""


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
