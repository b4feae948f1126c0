"""What long work shows of itself, on a terminal and in a log, and its threads."""

import io
import re

import pytest

from grpo_course import long_work
from grpo_course.long_work import counted, progress_bar, use_threads, watched


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock for tqdm: call it to let seconds pass."""
    import tqdm.std

    now = [1000.0]
    monkeypatch.setattr(tqdm.std, "time", lambda: now[0])

    def passes(seconds):
        now[0] += seconds

    return passes


def work(clock, epochs=4, tokens=40, seconds=5):
    """A run that counts its tokens, one each so many seconds."""
    with progress_bar(total=epochs, desc="GRPO", unit="epoch") as bar, watched():
        for _ in range(epochs):
            for _ in counted(range(tokens), "sampling 64 responses", "token"):
                clock(seconds)
            bar.update()


def test_a_terminal_shows_movement_and_time_left_inside_an_epoch(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", Terminal())
    work(clock, epochs=1)
    states = re.split(r"[\r\n]+", long_work.sys.stderr.getvalue())
    inside = [each for each in states if "sampling 64 responses" in each]
    assert len(inside) >= 40 and "20/40 [01:40<01:40" in " ".join(inside)
    assert any("GRPO: 100%" in each for each in states)
    monkeypatch.setattr("sys.stderr", Terminal())
    work(clock, seconds=0.01)  # what is short has no bar of its own
    told = long_work.sys.stderr.getvalue()
    assert "sampling" not in told and "4/4" in told


def test_a_log_has_a_plain_line_a_minute_at_most(monkeypatch, clock):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    work(clock)  # 800 seconds
    told = long_work.sys.stderr.getvalue()
    assert "\r" not in told and "\x1b" not in told
    lines = told.splitlines()
    assert lines[0].startswith("GRPO: 0 of 4 epochs") and "4 of 4" in lines[-1]
    assert "sampling 64 responses: 12 of 40 tokens, 01:00 so far, 02:20 left" in lines
    assert all(lines) and 800 / 60 / 2 < len(lines) < 2 * 800 / 60


def test_nothing_is_shown_where_nobody_watches(monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    items = range(3)
    assert counted(items, "learning", "part") is items
    with watched(lambda items, desc, unit: [desc, unit]):
        assert [*counted(items, "learning", "part")] == ["learning", "part"]
        assert counted([7], "learning", "part") == [7]
    assert counted(items, "learning", "part") is items
    assert not long_work.sys.stderr.getvalue()


@pytest.mark.parametrize(
    ("seconds", "cores", "number"),
    [
        ({1: 1.0, 2: 0.55, 4: 0.3, 8: 0.2}, 8, 8),
        ({1: 1.0, 2: 0.55, 4: 0.3, 8: 0.29}, 8, 4),  # one core counts for two
        ({1: 1.0, 2: 9.0}, 2, 1),  # the second one is busy
        ({1: 1.0, 2: 0.55, 4: 0.3}, 3, 2),
        ({1: 1.0}, 1, 1),
    ],
)
def test_as_many_threads_as_are_faster_than_fewer(monkeypatch, seconds, cores, number):
    monkeypatch.setattr(
        long_work, "time_products", lambda threads, *_: seconds[threads]
    )
    monkeypatch.setattr(long_work, "num_cores", lambda: cores)
    assert use_threads() == number
    assert use_threads(1) == 1


def test_a_slow_trial_is_not_waited_for(monkeypatch):
    now = iter(range(1000))
    monkeypatch.setattr(long_work.time, "monotonic", lambda: float(next(now)))
    assert long_work.time_products(1, enough=5) == 6
    assert long_work.time_products(1) == 150


def test_no_more_cores_than_one_may_use(monkeypatch):
    if hasattr(long_work.os, "sched_getaffinity"):
        monkeypatch.setattr(long_work.os, "sched_getaffinity", lambda _: {0, 5, 6})
    monkeypatch.setattr(long_work.os, "cpu_count", lambda: 3)
    for asked, number in (("", 3), ("2", 2), ("64", 3)):
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
        assert long_work.num_cores() == number
