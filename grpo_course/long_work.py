"""Long work: how far it is, and with how many threads it is fastest.

    counted      the items of a loop, behind a bar wherever somebody watches
    watched      inside it, what is counted is shown on a terminal, in a notebook or,
                 as few plain lines, in a log file
    use_threads  as many threads as are faster than fewer, on this machine, now

The bars are tqdm's. Left out: what the work is.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import Any, TypeVar

import torch

# --- How far it is

Item = TypeVar("Item")
Show = Callable[..., Iterable]  # as tqdm: show(items, desc="learning", unit="part")
SHOW: ContextVar[Show | None] = ContextVar("SHOW", default=None)

IN_A_LOG = 60.0  # seconds between two lines
SOON = 1.0  # what takes no longer has no bar of its own
LINE = "{desc}: {n_fmt} of {total_fmt} {unit}s, {elapsed} so far, {remaining} left"


def counted(items: Sequence[Item], what: str, unit: str) -> Iterable[Item]:
    """The items themselves; inside `watched` it is shown how many are done.

    counted(parts, "learning", "part"); nothing is shown of a single one.
    """
    show = SHOW.get() if len(items) > 1 else None
    return items if show is None else show(items, desc=what, unit=unit)


@contextmanager
def watched(show: Show | None = None) -> Iterator[None]:
    """Inside the block `counted` shows what it counts, by `show` or as a further bar.

    `show` is called as tqdm is: with the items, and `desc` and `unit` by name.
    """
    before = SHOW.set(show or inner_bar)
    try:
        yield
    finally:
        SHOW.reset(before)


class PlainLines:
    """A log file, as tqdm writes to it: each state is a line of its own."""

    def __init__(self, stream: Any):
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> None:
        """Drop what moves the cursor of a terminal, and what is empty without it."""
        if line := text.replace("\x1b[A", "").strip():
            self.stream.write(f"{line}\n")


def is_log(stream: Any) -> bool:
    """Whether nobody can move a cursor there: no terminal, and no notebook."""
    return not stream.isatty() and "ipykernel" not in type(stream).__module__


def progress_bar(items: Iterable | None = None, **how: Any) -> Any:
    """tqdm's bar on stderr, with tqdm's settings; in a log file a line a minute."""
    from tqdm.auto import tqdm  # which looks for a notebook

    how |= {"miniters": 1, "mininterval": 0.2}  # each slow count looks at the clock
    if is_log(sys.stderr):
        how |= {"file": PlainLines(sys.stderr), "bar_format": LINE + "{postfix}"}
        how["mininterval"] = IN_A_LOG
    elif sys.stderr.isatty():  # some terminals have no size, and tqdm would be silent
        how["ncols"], how["nrows"] = shutil.get_terminal_size()
    return tqdm(items, **how)


def inner_bar(items: Iterable, desc: str, unit: str) -> Any:
    """A bar below another one, which goes when it is full; none for what is short."""
    delay = IN_A_LOG if is_log(sys.stderr) else SOON
    return progress_bar(items, desc=desc, unit=unit, leave=False, delay=delay)


# --- With how many threads

WORTH_IT = 1.2  # so much faster must twice as many threads be


def use_threads(number: int | None = None) -> int:
    """Compute with so many threads of the CPU; returns how many. None: the fastest.

    The number decides how sums are rounded, too.
    """
    torch.set_num_threads(fastest_threads() if number is None else number)
    return torch.get_num_threads()


def num_cores() -> int:
    """How many cores this process may use; OMP_NUM_THREADS, if that is less."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    most = int(asked) if asked.isdecimal() else inf
    if hasattr(os, "sched_getaffinity"):  # some of the machine's may be for others
        return int(min(most, len(os.sched_getaffinity(0))))
    return int(min(most, os.cpu_count() or 1))


def fastest_threads() -> int:
    """So many threads as are faster than half as many, on this machine, now.

    They share each of the thousands of products of a token, and each time all wait for
    the last of them. Where other programs hold a core, that one waits for its turn
    each time: two threads may then be ten times slower than one.
    """
    number, fastest = 1, time_products(1)
    while 2 * number <= num_cores():
        enough = fastest / WORTH_IT
        seconds = time_products(2 * number, enough)
        if seconds > enough:
            break
        number, fastest = 2 * number, seconds
    return number


def time_products(threads: int, enough: float = inf) -> float:
    """Seconds that some products of a small language model's size take.

    Not many more than `enough` are waited for.
    """
    torch.set_num_threads(threads)
    tokens, weights = torch.ones(64, 576), torch.ones(576, 1536)
    tokens @ weights  # the first one starts the threads
    begun = time.monotonic()
    for _ in range(150):
        tokens @ weights
        if (seconds := time.monotonic() - begun) > enough:
            break
    return seconds
