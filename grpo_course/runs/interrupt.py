"""Ctrl-C and the system's ways to end a program ask a run to stop, to be gone on with.

The first is only noted, and the run saves after its epoch; a second one stops at once.
"""

import signal
import threading
from collections.abc import Callable

# SIGTERM comes from `kill` and from job queues, SIGHUP when a terminal closes.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]


class Interrupt:
    """Inside its block the first request to stop is only noted, in `asked`.

    With `at_once` it raises KeyboardInterrupt: where there is nothing to wait for, the
    system's ways end the program as Ctrl-C does.
    """

    def __init__(self, tell: Callable[[str], None] = print, at_once: bool = False):
        self.asked, self.tell = at_once, tell

    def __enter__(self) -> "Interrupt":
        # Only the main thread may set a handler; elsewhere no signal arrives.
        main = threading.current_thread() is threading.main_thread()
        self.before = {s: signal.signal(s, self.note) for s in SIGNALS if main}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def note(self, *_: object) -> None:
        """What such a signal does."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.tell("\nStopping after this epoch. Press Ctrl-C again to stop at once.")
