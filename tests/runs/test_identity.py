"""A run goes on from its own checkpoints, settings and data, or says what differs."""

import json
import shutil
import signal

import pytest
import torch

from grpo_course import training as build
from grpo_course.files import json_lines
from grpo_course.gsm8k import make_problems
from grpo_course.runs import checkpoint, state, train
from grpo_course.runs.checkpoint import CheckpointError
from grpo_course.runs.resumable import Run

CONFIG = "grpo_config.json"


@pytest.fixture
def copied(alone, tmp_path):
    """A finished run that may be changed."""
    out = tmp_path / "run"
    shutil.copytree(alone, out)
    return out


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("name", ["seed", "learning_rate", "hidden_size"])
def test_edited_settings_are_refused_with_both_cures(copied, call, name):
    edit(copied / CONFIG, **{name: 32})
    before = (copied / "metrics.jsonl").read_bytes()
    status, _, told = call(train, "--resume", "--out", copied)
    assert status == 1 and f"{name} is" in told and "there and 32" in told
    assert f"or {copied / CONFIG} was changed" in told and "holds a copy" in told
    assert (copied / "metrics.jsonl").read_bytes() == before
    shutil.copy(copied / "checkpoints" / "000008" / CONFIG, copied / CONFIG)  # the cure
    assert call(train, "--resume", "--out", copied)[0] == 0


def test_a_run_without_its_settings_file_is_not_begun_anew(copied, call):
    config, copy = copied / CONFIG, copied / "checkpoints" / "000008" / CONFIG
    config.unlink()
    status, _, told = call(train, "--out", copied, "--seed", 5)
    assert status == 1 and "holds a run already" in told and not config.exists()
    status, _, told = call(train, "--resume", "--out", copied)
    assert status == 1 and f"{copy} is a copy of it" in told
    shutil.copy(copy, config)
    assert call(train, "--resume", "--out", copied)[0] == 0


def test_metrics_without_checkpoints_are_not_written_over(copied, call):
    shutil.rmtree(copied / "checkpoints")
    before = (copied / "metrics.jsonl").read_bytes()
    for how in (["--resume"], []):
        status, _, told = call(train, *how, "--out", copied)
        assert status == 1 and "has no checkpoint any more" in told
    assert (copied / "metrics.jsonl").read_bytes() == before


def save_rows(path, problems):
    rows = [{"question": p.question, "answer": p.solution} for p in problems]
    path.write_text(json_lines(rows), encoding="utf-8")


@pytest.mark.parametrize("kind", ["training", "held-out"])
def test_other_data_are_refused(start, tmp_path, kind):
    data, out = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    rows = make_problems("train", 30, seed=3)
    save_rows(data / "train.jsonl", rows)
    start(out, task_settings={"data": str(data)}, num_epochs=1)
    assert Run(out, show=False).trainer.epoch == 0
    few = 27 if kind == "training" else 0  # the last tenth is held out
    save_rows(data / "train.jsonl", [*rows[:few][::-1], *rows[few:][::-1]])
    found = r"made with (27|3) .* finds as many now that are not the same"
    with pytest.raises(CheckpointError, match=found):
        Run(out, show=False)


def test_a_longer_name_is_no_checkpoint(copied, capsys):
    folder = copied / "checkpoints"
    for name in ("0000008", "000008 (copy)", "٠٠٠٠٠٩"):
        shutil.copytree(folder / "000008", folder / name)
    assert checkpoint.saved_epochs(folder) == [0, 6, 8]
    assert Run(copied, show=False).trainer.epoch == 8
    assert "damaged" not in capsys.readouterr().out


@pytest.mark.parametrize("moving", [{}, {"ref_mixture": 0.5}])
def test_an_older_checkpoint_keeps_the_reference_that_it_needs(start, tmp_path, moving):
    """The newest is damaged, and the one before has a reference of its own."""
    out = tmp_path / "run"
    settings = {"compute_ref_model_period": 4, "save_every": 3, "kl_penalty": 0.5}
    start(out, **settings, **moving).go()
    whole = (out / "metrics.jsonl").read_bytes()
    (out / "checkpoints" / "000008" / "model.safetensors").unlink()
    run = Run(out, show=False)
    assert run.trainer.epoch == 6
    run.go()
    assert (out / "metrics.jsonl").read_bytes() == whole


def test_a_run_that_is_not_killed_keeps_few_checkpoints(tmp_path):
    needs = {3: {0}, 4: {4}, 6: {4}, 8: {8}, 9: {8}}
    for epoch in (0, *needs):
        folder = checkpoint.checkpoint_path(tmp_path, epoch)
        folder.mkdir()
        (folder / checkpoint.DIGESTS).touch()
    checkpoint.remove_old(tmp_path, 9, 1, needs.get)
    assert checkpoint.saved_epochs(tmp_path) == [0, 8, 9]


def test_the_files_of_a_run_have_one_mode(alone):
    files = [path for path in alone.rglob("*") if path.is_file()]
    assert len({path.stat().st_mode for path in files}) == 1 and len(files) > 20


def test_code_in_a_checkpoint_is_not_run_and_not_recommended(copied, call):
    path = copied / "checkpoints" / "000008"
    torch.save({"epoch": print}, path / checkpoint.STATE)
    edit(
        path / checkpoint.DIGESTS,
        **{state.STATE: checkpoint.digest(path / state.STATE)},
    )
    status, _, told = call(train, "--resume", "--out", copied)
    assert status == 1 and f"Remove {path}" in told and "weights_only" not in told
    shutil.rmtree(path)
    assert call(train, "--resume", "--out", copied)[0] == 0


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_warm_start_says_that_it_begins_again(
    call, small_run, tmp_path, monkeypatch, by
):
    before = signal.getsignal(by)
    monkeypatch.setattr(build, "run_warm_start", lambda *_: signal.raise_signal(by))
    file, out = tmp_path / "c.json", tmp_path / "run"
    file.write_text(json.dumps(small_run | {"num_epochs": 1}))
    status, _, told = call(train, "--config", file, "--out", out)
    assert status == 130 and signal.getsignal(by) is before
    assert (
        "begin again, with the warm start" in told and f"--resume --out {out}" in told
    )
    monkeypatch.undo()
    assert call(train, "--resume", "--out", out)[0] == 0
