"""What `test-browser --quick` leaves out."""

import os

import pytest

from tools import run

RUN = {"01_rewards", "04_losses"}  # cells are run in JupyterLab
LOOK = {"03_deltas", "06_training_loop", "10_bug_hunt", "12_gsm8k_grpo"}  # axe


def leave_out(name: str, kept: set[str]) -> None:
    """Skip the test of a notebook that is not kept, if this is a quick run."""
    if os.environ.get(run.QUICK) and name not in kept:
        pytest.skip("left out by --quick")
