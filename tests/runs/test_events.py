"""`show --tensorboard`: a run as TensorBoard's event files, finished or going on."""

import json
import shutil
import sys
from types import ModuleType

import pytest

from grpo_course.runs import events, show
from grpo_course.runs.folder import alone_in, is_taken
from grpo_course.runs.record import read_record

NAME = "torch.utils.tensorboard"


class Writer:
    """In place of TensorBoard's: what was written to which folder."""

    written: list[tuple]

    def __init__(self, folder):
        self.folder = folder

    def add_scalar(self, tag, value, step):
        self.written.append((self.folder, tag, step, value))

    def flush(self):
        pass


@pytest.fixture
def written(monkeypatch):
    """The points that are written, without TensorBoard."""
    module = ModuleType(NAME)
    module.SummaryWriter = type("Stand", (Writer,), {"written": []})
    monkeypatch.setitem(sys.modules, "tensorboard", ModuleType("tensorboard"))
    monkeypatch.setitem(sys.modules, NAME, module)
    return module.SummaryWriter.written


@pytest.fixture
def copied(alone, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(alone, out)
    return out


def points(out):
    """Every number of the run's metrics and times, with its place."""
    record, folder = read_record(out), str(out / "tensorboard")
    for group, rows in (("metrics", record.metrics), ("seconds", record.times)):
        for row in rows:
            for name in row.keys() - {"epoch"}:
                yield folder, f"{group}/{name}", row["epoch"], row[name]


def test_every_number_of_a_run_is_written_once(call, copied, written):
    status, printed, _ = call(show, copied, "--tensorboard")
    assert status == 0 and str(copied / "tensorboard") in printed
    assert sorted(written) == sorted(points(copied)) and len(written) > 100
    assert "until the run ends" not in printed


def test_two_runs_are_written_each_in_its_own_folder(call, copied, tmp_path, written):
    other = tmp_path / "other"
    shutil.copytree(copied, other)
    out = tmp_path / "both.png"
    assert call(show, copied, other, "--tensorboard", "--out", out)[0] == 0
    assert sorted(written) == sorted([*points(copied), *points(other)])


def test_a_run_that_goes_on_is_followed_to_its_end(call, copied, written, monkeypatch):
    path = copied / "metrics.jsonl"
    held, more = alone_in(copied), {"epoch": 8, "mean_reward": 0.5}
    pauses = []

    def go_on(seconds):
        pauses.append(seconds)
        assert len(written) == len(set(written)) and written
        with path.open("a") as file:
            file.write(json.dumps(more)[:9] if len(pauses) == 1 else "")
            file.write((json.dumps(more) + "\n")[9:] if len(pauses) == 2 else "")
        if len(pauses) == 2:
            held.__exit__(None, None, None)  # the run ends

    monkeypatch.setattr(events.time, "sleep", go_on)
    held.__enter__()
    status, printed, _ = call(show, copied, "--tensorboard")
    assert status == 0 and len(pauses) == 2 and "until the run ends" in printed
    assert sorted(written) == sorted(points(copied))
    assert (str(copied / "tensorboard"), "metrics/mean_reward", 8, 0.5) in written


def test_a_second_call_adds_what_came_since(copied, written):
    """TensorBoard wants a file that it reads unchanged; no point is written twice."""
    path = copied / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]))
    events.follow([copied])
    first = [*written]
    path.write_text("".join(lines))
    events.follow([copied])
    assert written[: len(first)] == first and len(first) < len(written)
    assert sorted(written) == sorted(points(copied))


def test_whether_a_process_trains_there(copied):
    assert not is_taken(copied)
    with alone_in(copied):
        assert is_taken(copied)
    assert not is_taken(copied)
    assert not is_taken(copied / "nowhere")


def test_without_tensorboard_the_cure_is_named(call, alone, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    status, printed, told = call(show, alone, "--tensorboard")
    assert status == 1 and not printed and "Traceback" not in told
    assert "needs the package tensorboard" in told and ".[tensorboard]" in told


def test_tensorboard_reads_what_was_written(call, copied):
    needed = "tensorboard.backend.event_processing.event_accumulator"
    read = pytest.importorskip(needed, reason="the optional extra `tensorboard`")
    for _ in range(2):  # the second has nothing to add
        assert call(show, copied, "--tensorboard")[0] == 0
    found = read.EventAccumulator(str(copied / "tensorboard")).Reload()
    seen = {
        (tag, event.step): event.value
        for tag in found.Tags()["scalars"]
        for event in found.Scalars(tag)
    }
    expected = {(tag, step): value for _, tag, step, value in points(copied)}
    assert seen == pytest.approx(expected) and len(seen) > 100
    assert len(found.Scalars("metrics/mean_reward")) == 8
