"""The variables notebooks are executed with, here and under pytest. The one place.

Standard library only: conftest.py reads it before anything else is imported.
"""

import os
import subprocess
import sys
from pathlib import Path

VARIABLES = {
    # One thread: the models are so small that a second one only waits.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    # The course runs offline and stores no progress bars.
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


def use() -> None:
    """Set the variables for this process and the kernels it starts."""
    os.environ.update(VARIABLES)


def python(arguments: list[str], root: Path) -> int:
    """Run this Python on `arguments` in the checkout; the exit status."""
    return subprocess.call([sys.executable, *arguments], cwd=root)
