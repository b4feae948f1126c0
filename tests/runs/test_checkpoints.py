"""A full disk and damaged files: a clear error, and the last good checkpoint stays."""

import errno
import re
import shutil
from pathlib import Path

import pytest

from grpo_course.runs import checkpoint, evaluate, journal, state, train
from grpo_course.runs.checkpoint import CheckpointError
from grpo_course.runs.resumable import Run


def path_of(out, epoch):
    return out / "checkpoints" / f"{epoch:06d}"


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def torn(*args, **kwargs):
    """What torch raises when its file cannot grow."""
    raise RuntimeError("PytorchStreamWriter failed writing file data.pkl")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "error"),
    [
        (state.torch, "save", no_space),
        (state.torch, "save", torn),
        (checkpoint, "force_to_disk", no_space),
        (checkpoint.os, "rename", no_space),
    ],
)
def test_a_full_disk_keeps_the_last_good_checkpoint(
    alone, start, outcome, tmp_path, monkeypatch, call, owner, name, error
):
    out = tmp_path / "run"
    start(out)
    with monkeypatch.context() as patch:
        add = journal.Journal.add

        def fill_up(self, line, *more):
            add(self, line, *more)
            if line["epoch"] == 5:
                patch.setattr(owner, name, error)

        patch.setattr(journal.Journal, "add", fill_up)
        status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "Traceback" not in told
    assert "checkpoint of epoch 6 could not be written" in told
    assert "of epoch 3, is kept" in told and "--resume" in told
    assert sorted(p.name for p in (out / "checkpoints").iterdir()) == [
        "000000",
        "000003",
    ]
    Run(out, show=False).go()
    assert outcome(out) == outcome(alone)


@pytest.mark.slow
def test_no_room_for_the_metrics(alone, start, outcome, tmp_path, monkeypatch, call):
    out = tmp_path / "run"
    start(out)
    with monkeypatch.context() as patch:
        patch.setattr(journal, "json_lines", no_space)
        status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "No space left" in told
    assert f"{out / 'samples.jsonl'} could not be written" in told
    assert "make room" in told and "--resume" in told
    Run(out, show=False).go()
    assert outcome(out) == outcome(alone)


def shorten(path):
    path.write_bytes(path.read_bytes()[:-9])


def flip(path):
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [shorten, flip, Path.unlink])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "training.pt", "tokenizer.json", "digests.json"]
)
def test_a_damaged_checkpoint_is_passed_over(
    alone, start, outcome, tmp_path, capsys, harm, name
):
    out = tmp_path / "run"
    start(out).go()
    harm(path_of(out, 8) / name)
    run = Run(out, show=False)
    assert run.trainer.epoch == 6
    assert "checkpoint of epoch 8 is damaged" in capsys.readouterr().out
    run.go()
    assert outcome(out) == outcome(alone)
    assert checkpoint.damage(path_of(out, 8)) is None


def test_all_checkpoints_damaged(start, tmp_path, call):
    out = tmp_path / "run"
    start(out)
    shorten(path_of(out, 0) / "model.safetensors")
    status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "Every checkpoint in" in told and "--out" in told


def test_the_reference_is_damaged(start, tmp_path):
    """The first checkpoint is not the newest, but the reference is in it."""
    out = tmp_path / "run"
    start(out).go()
    flip(path_of(out, 0) / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"epoch 0.*reference"):
        Run(out, show=False)


def test_what_lies_beside_the_checkpoints_is_passed_by(
    alone, start, outcome, tmp_path, capsys, call
):
    out = tmp_path / "run"
    start(out).go()
    folder = out / "checkpoints"
    shutil.rmtree(path_of(out, 8))
    for name in ("000007", "000099", "best", ".cache"):
        (folder / name).mkdir()
    (folder / "000099" / "notes.txt").write_text("mine")
    for name in ("000050", "notes.txt", ".DS_Store"):
        (folder / name).write_text("mine")
    capsys.readouterr()
    assert checkpoint.saved_epochs(folder) == [0, 6]
    run = Run(out, show=False)
    assert run.trainer.epoch == 6
    run.go()
    assert outcome(out) == outcome(alone)
    assert call(evaluate, "--model", out, "--show", 0)[0] == 0
    assert "damaged" not in capsys.readouterr().out
    assert (folder / "000099" / "notes.txt").read_text() == "mine"
    assert (folder / "000007").is_dir() and (folder / "best").is_dir()
    assert (folder / "000050").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("there", ["an empty folder", "a foreign folder", "a file"])
def test_a_run_that_has_only_strange_things_begins_anew(
    alone, start, outcome, tmp_path, there
):
    out = tmp_path / "run"
    (out / "checkpoints").mkdir(parents=True)
    path = path_of(out, 5)
    path.write_text("mine") if there == "a file" else path.mkdir()
    if there == "a foreign folder":
        (path / "notes.txt").write_text("mine")
    start(out).go()
    assert outcome(out) == outcome(alone)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 1}, "seed is 1 there and 0 now"),
        ({"hidden_size": 8}, "hidden_size is 8 there and 16 now"),
        ({"task_settings": {"slips": 0.9}}, "task_settings is .*0.9"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(start, tmp_path, call, changes, says):
    out, other = tmp_path / "run", tmp_path / "other"
    start(out).go()
    start(other, **changes).go()
    shutil.rmtree(path_of(out, 8))
    shutil.copytree(path_of(other, 8), path_of(out, 8))
    lines = (out / "metrics.jsonl").read_bytes()
    status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "is the checkpoint of another run, or" in told
    assert re.search(says, told) and "Remove it" in told and "Traceback" not in told
    assert (out / "metrics.jsonl").read_bytes() == lines
    shutil.rmtree(path_of(out, 8))  # as it says
    assert call(train, "--resume", "--out", out)[0] == 0


def test_a_checkpoint_under_the_name_of_another_epoch_is_refused(start, tmp_path, call):
    out = tmp_path / "run"
    start(out).go()
    path_of(out, 6).rename(path_of(out, 9))
    status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "holds the checkpoint of epoch 6" in told
    assert "copied or renamed" in told
