"""One process at a time: a lock that the system frees when its holder ends or dies.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

HELD = (errno.EAGAIN, errno.EACCES)  # what the systems say where another has it


@contextmanager
def one_at_a_time(path: Path, waiting: str) -> Iterator[None]:
    """Hold the lock of a file while inside; print `waiting` if another holds it.

    Where the file cannot be made or the file system has no locks, go on without.
    """
    try:
        file = path.open("a")
    except OSError:
        yield
        return
    with file:
        if not try_lock(file):
            print(waiting, flush=True)
            while not try_lock(file):
                time.sleep(0.5)
        yield


def try_lock(file: IO) -> bool:
    """Whether the lock is held now. It goes when the file is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        return problem.errno not in HELD
    return True
