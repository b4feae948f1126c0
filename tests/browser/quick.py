"""What `test-browser --quick` leaves out."""

import os

from tools.browser import QUICK

RUN = {"hour"}  # in JupyterLab; 03 and half of 01 are run by tests of their own
LOOK = {"06_training_loop"}  # of the long pages


IS_QUICK = bool(os.environ.get(QUICK))


def is_left_out(name: str, kept: set[str]) -> bool:
    """Whether this is a quick run, which keeps other notebooks."""
    return IS_QUICK and name not in kept
