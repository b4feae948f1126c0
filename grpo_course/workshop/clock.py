"""Times of a schedule: minutes that are told, or hours of the day with the pauses."""

import argparse
import re

BREAK, LUNCH = "*a break*", "*lunch*"
PAUSES = {BREAK: 15, LUNCH: 60}  # minutes


def minute(time: str) -> int:
    """A time such as 9:00 as a minute of the day, for the command line."""
    found = re.fullmatch(r"(\d\d?):([0-5]\d)", time)
    if not found or int(found[1]) > 23:
        raise argparse.ArgumentTypeError(
            f"{time!r} is no time of the day; write hours and minutes, such as 9:00"
        )
    return int(found[1]) * 60 + int(found[2])


def hours(minutes: float) -> str:
    """Minutes in hours and minutes, such as 1:05; half a minute as 1:05½."""
    half = "½" if minutes % 1 else ""
    return f"{int(minutes) // 60}:{int(minutes) % 60:02d}{half}"


class Clock:
    """Counts from a minute of the day; without one, it counts what is told alone."""

    def __init__(self, begin: int | None) -> None:
        self.begin, self.shift = begin, begin or 0

    def pause(self, what: str, told: int) -> None:
        """A break, lunch or a further day, after so many minutes told."""
        further = (self.begin or 0) - told
        self.shift = self.shift + PAUSES[what] if what in PAUSES else further

    def time(self, told: int) -> str:
        """When so many minutes are told."""
        return str(told) if self.begin is None else hours(told + self.shift)
