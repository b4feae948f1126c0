"""What `test-browser --quick` leaves out."""

import os

from tools.browser import QUICK

RUN = {"01_rewards", "04_losses", "hour"}  # in JupyterLab
LOOK = {"03_deltas", "06_training_loop", "10_bug_hunt", "12_gsm8k_grpo"}  # axe


def is_left_out(name: str, kept: set[str]) -> bool:
    """Whether this is a quick run, which keeps other notebooks."""
    return bool(os.environ.get(QUICK)) and name not in kept
