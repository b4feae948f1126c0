"""Children of a process that has imported everything, so that each costs little."""

import os
import sys
import traceback
from collections.abc import Callable


def fork(work: Callable[[], int | None]) -> int:
    """Do something in a child; what it returns is its status. -> its process id

    What it prints goes to stderr: stdout is for the trials.
    """
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.dup2(2, 1)
        status = work() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait(child: int) -> int:
    """The exit status; minus the signal if one ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
