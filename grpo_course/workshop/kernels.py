"""The variables notebooks are executed with, here and under pytest.

Nothing heavy is loaded here: libraries read the variables when they are imported.
"""

import os
import subprocess
import sys
from pathlib import Path

from grpo_course import install
from grpo_course.classroom.record import STORED
from grpo_course.classroom.setup import QUIET

VARIABLES = {
    # One thread: the models are so small that a second one only waits.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "HF_HUB_OFFLINE": "1",  # no notebook waits for a network
    STORED: "1",  # plain text, and no file of a learner
    **QUIET,
}
STARTS = """Starting JupyterLab; Ctrl-C stops it. If no browser opens, copy the last
address below into one."""
# How PyTorch and MKL calculate on another processor: sums in another order.
CPUS = {
    "default": {"ATEN_CPU_CAPABILITY": "default"},
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512"},
    "compatible": {"MKL_CBWR": "COMPATIBLE"},
    "default+compatible": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
    },
    "avx2+compatible": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE"},
}
# Notebooks that `test` executes so, that a margin too narrow for others is seen here.
# Their outputs must be the stored ones all the same; every processor can do these.
ELSEWHERE = {"09_sequences": "default"}


def use() -> None:
    """Set the variables for this process and the kernels it starts."""
    os.environ.update(VARIABLES)


def elsewhere(notebook: str) -> dict[str, str]:
    """The variables that `test` adds for the kernel of a notebook."""
    return CPUS.get(ELSEWHERE.get(notebook, ""), {})


def python(arguments: list[str], root: Path) -> int:
    """Run this Python on `arguments` in the checkout; the exit status."""
    return subprocess.call([sys.executable, *arguments], cwd=root)


def serve(arguments: list[str], root: Path, variables: dict[str, str]) -> int:
    """Run JupyterLab, which ends by itself after Ctrl-C, with its kernels."""
    print(STARTS, flush=True)
    env = os.environ | variables
    server = subprocess.Popen([sys.executable, *arguments], cwd=root, env=env)
    return install.wait_for(server)
