"""`show` prints and draws a run, or two side by side."""

import shutil

import pytest
from matplotlib.figure import Figure

from grpo_course.runs import picture, saved_run, show
from grpo_course.runs.record import read_record
from grpo_course.runs.resumable import Run

PNG = b"\x89PNG"


@pytest.fixture
def two(alone, tmp_path):
    """Two runs, of which the second was seen while it wrote a line."""
    other = tmp_path / "other"
    shutil.copytree(alone, other)
    config = (other / "grpo_config.json").read_text()
    config = config.replace('"learning_rate": 0.003', '"learning_rate": 0.5')
    (other / "grpo_config.json").write_text(config)
    lines = (other / "metrics.jsonl").read_text().splitlines()
    (other / "metrics.jsonl").write_text("\n".join([*lines[:4], lines[4][:30]]))
    return alone, other


def test_one_run_is_printed_and_drawn(call, alone, tmp_path):
    out = tmp_path / "own.png"
    status, printed, _ = call(show, alone, "--out", out, "--samples", 1)
    assert status == 0 and out.read_bytes().startswith(PNG)
    assert "8 of 8" in printed and " → " in printed and "minutes: sampling" in printed
    first = read_record(alone).samples[-1]
    assert first["question"] in printed and first["completion"] in printed


def test_two_runs_stand_side_by_side(call, two, tmp_path):
    status, printed, _ = call(show, *two, "--out", tmp_path / "both.png")
    assert status == 0
    assert "8 of 8" in printed and "4 of 8" in printed
    assert "They differ in: learning_rate 0.003 | 0.5" in printed


def test_what_is_no_run_is_refused(call, alone, tmp_path):
    status, _, told = call(show, tmp_path)
    assert status == 1 and f"There is no run in {tmp_path}" in told
    assert call(show, alone, alone)[0] == 2


def test_looks_are_points_and_ties_are_split(alone):
    record, ax = read_record(alone), Figure().subplots()
    picture.draw_panel(ax, record, "accuracy", "C0")
    training, looks = ax.lines
    assert training.get_marker() == "None" and looks.get_marker() == "o"
    assert list(looks.get_xdata()) == [0, 3, 6, 8]
    for row in record.metrics[:8]:
        assert row["tied_right"] + row["tied_wrong"] <= row["tied_groups"] + 1e-6


def test_a_run_goes_on_where_it_cannot_be_drawn(alone, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    told = []
    monkeypatch.setattr(picture, "write_atomically", full)
    picture.redraw(alone, told.append)
    assert "could not be written" in told[0]


def test_nothing_is_drawn_before_the_first_epoch(start, tmp_path):
    start(tmp_path)
    picture.redraw(tmp_path)
    assert not (tmp_path / picture.PICTURE).exists()


def test_each_checkpoint_is_drawn(start, tmp_path, monkeypatch):
    drawn, out = [], tmp_path / "run"
    start(out, num_epochs=2, save_every=1)
    monkeypatch.setattr(saved_run, "redraw", lambda out, tell: drawn.append(out))
    Run(out, show=True).go()
    assert drawn == [out, out]
    picture.redraw(out)
    assert (out / picture.PICTURE).read_bytes().startswith(PNG)
