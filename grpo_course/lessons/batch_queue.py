"""How old samples get where writers and learner do not wait for each other."""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from grpo_course.checks import require_inside, require_sizes

LEARNER = -1


class Span(NamedTuple):
    """When a writer, or the learner, is busy with one batch, in seconds."""

    who: int  # a writer, counted from 0, or LEARNER
    start: float
    end: float


def trace_queue(
    write: Sequence[float],
    update: float,
    writers: int = 1,
    ahead: int = 1,
    sync: float = 0.0,
) -> tuple[list[int], float, list[Span]]:
    """How old each batch is when it is learned from, in updates; the seconds in all;
    when each was busy.

    Writing batch number i takes `write[i]` seconds. Each of the writers takes the
    weights of the moment and writes a batch of its own, as long as fewer than `ahead`
    batches are begun and not yet learned from. The learner takes them in the order in
    which they are ready: `update` seconds each, and `sync` more to send the new weights
    out. With ahead=1 writer and learner take turns, and every batch is fresh.

    Raises ValueError for fewer than one writer or batch, and for a negative time.
    """
    require_sizes(writers=writers, ahead=ahead, batches=len(write))
    for name, seconds in {"write": min(write), "update": update, "sync": sync}.items():
        require_inside(name, seconds, {"at least": 0})
    clock, begun, version, ages, spans = 0.0, 0, 0, [], []
    writing: list[tuple[float, int, int, int]] = []  # ready at, number, version, writer
    free = list(range(writers))
    ready: deque[int] = deque()  # versions of the batches that wait
    learned = None  # when the update will be done; None: the learner waits
    while version < len(write):
        while free and begun < min(version + ahead, len(write)):
            spans.append(Span(heappop(free), clock, clock + write[begun]))
            heappush(writing, (spans[-1].end, begun, version, spans[-1].who))
            begun += 1
        if learned is None and ready:
            ages.append(version - ready.popleft())
            learned = clock + update + sync
            spans.append(Span(LEARNER, clock, learned))
        if learned is None or (writing and writing[0][0] <= learned):
            clock, _, born, writer = heappop(writing)
            heappush(free, writer)
            ready.append(born)
        else:
            clock, learned, version = learned, None, version + 1
    return ages, clock, spans
