"""Ctrl-C asks a run to stop; a second one stops it at once."""

import signal
import threading
from collections.abc import Callable


class Interrupt:
    """Inside its block the first Ctrl-C is only noted, in `asked`."""

    def __init__(self, tell: Callable[[str], None] = print):
        self.asked, self.tell = False, tell

    def __enter__(self) -> "Interrupt":
        # Only the main thread may set a handler; elsewhere Ctrl-C does not arrive.
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self.note)
        return self

    def __exit__(self, *_: object) -> None:
        if self.main:
            signal.signal(signal.SIGINT, self.before)

    def note(self, *_: object) -> None:
        """What Ctrl-C does."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.tell("\nStopping after this epoch. Press Ctrl-C again to stop at once.")
