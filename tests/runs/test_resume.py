"""A run that was stopped in any way goes on as if it had not been, bit for bit."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grpo_course.runs import checkpoint, journal, new_task, train
from grpo_course.runs.interrupt import SIGNALS
from grpo_course.runs.resumable import Run

ROOT = Path(__file__).resolve().parents[2]
TORTURE = ROOT / "tests" / "torture"
# Everything that has a state: minibatches, an adapted beta, a moving reference.
MUCH_STATE = json.loads((TORTURE / "runs.json").read_text())["much state"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes to kill them")
@pytest.mark.parametrize(
    ("changes", "seed", "kills"),
    [(MUCH_STATE, 1, 9), ({}, 2, 6), ({"task": "my_task.py:Reverse"}, 4, 6)],
    ids=["much state", "little state", "a task of one's own"],
)
def test_killed_at_any_moment(tmp_path, monkeypatch, changes, seed, kills):
    """SIGKILL at random moments and inside the writing of checkpoints and metrics."""
    monkeypatch.chdir(tmp_path)
    assert new_task.main(["my_task.py"], tmp_path) == 0
    command = [sys.executable, str(TORTURE / "kills.py"), str(tmp_path)]
    done = subprocess.run(
        [*command, str(seed), str(kills), json.dumps(changes)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(len(trial["tried"]) for trial in found) >= kills
    assert any(trial["left"] for trial in found), "no checkpoint was cut off"
    for trial in found:
        assert not trial["wrong"], trial


def interrupt_at(monkeypatch, epoch, times=1, by=signal.SIGINT):
    """Press Ctrl-C, or what else stops a run, while an epoch's line is written."""
    add = journal.Journal.add

    def pressed(self, line, *more):
        add(self, line, *more)
        for _ in range(times if line["epoch"] == epoch else 0):
            signal.raise_signal(by)

    monkeypatch.setattr(journal.Journal, "add", pressed)


@pytest.mark.slow
@pytest.mark.parametrize("by", SIGNALS, ids=lambda by: by.name)
def test_a_signal_saves_and_says_how_to_go_on(
    alone, start, outcome, tmp_path, monkeypatch, call, by
):
    out = tmp_path / "run"
    start(out)
    with monkeypatch.context() as patch:
        interrupt_at(patch, epoch=4, by=by)
        status, printed, error = call(train, "--resume", "--out", out)
    assert status == 130
    assert "Stopping after this epoch" in printed
    assert f"--resume --out {out}" in error
    assert checkpoint.saved_epochs(out / "checkpoints")[-1] == 5
    assert call(train, "--resume", "--out", out)[0] == 0
    assert outcome(out) == outcome(alone)


@pytest.mark.slow
def test_a_second_ctrl_c_stops_at_once(
    alone, start, outcome, tmp_path, monkeypatch, call
):
    out = tmp_path / "run"
    start(out)
    with monkeypatch.context() as patch:
        interrupt_at(patch, epoch=4, times=2)
        assert call(train, "--resume", "--out", out)[0] == 130
    assert checkpoint.saved_epochs(out / "checkpoints")[-1] == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    Run(out, show=False).go()
    assert outcome(out) == outcome(alone)


@pytest.mark.slow
def test_the_history_of_a_resumed_run_is_whole(start, tmp_path):
    out = tmp_path / "run"
    whole = start(out).go()
    shutil.rmtree(out / "checkpoints" / "000008")
    resumed = Run(out, show=False)
    assert resumed.trainer.epoch == 6
    resumed = resumed.go()
    for name in ("accuracy", "kl", "gradient_norm"):
        assert torch.equal(resumed.epochs(name), whole.epochs(name))
        assert len(resumed.epochs(name)) == 8


def test_other_settings_are_refused(small_run, start, tmp_path, call):
    out = tmp_path / "run"
    start(out)
    before = sorted(out.rglob("*"))
    file = tmp_path / "other.json"
    file.write_text(json.dumps(small_run | {"learning_rate": 0.5, "save_every": 2}))
    options = ["--resume", "--out", out, "--config", file]
    status, _, told = call(train, *options, "--num-epochs", 9)
    assert status == 1
    for part in ("learning_rate is 0.003 there and 0.5 now", "num_epochs is 8 there"):
        assert part in told
    cure = f"--config {out / 'grpo_config.json'} --model {out} --out DIR"
    assert cure in told
    assert sorted(out.rglob("*")) == before
    file.write_text(json.dumps(small_run))
    assert call(train, *options)[0] == 0


def test_a_new_run_does_not_overwrite_an_old_one(start, tmp_path, call):
    out = tmp_path / "run"
    start(out)
    status, _, told = call(train, "--out", out)
    assert status == 1 and "holds a run already" in told
    assert "--resume" in told and "delete it" in told


def test_a_longer_run_begins_with_the_model_of_a_finished_one(alone, tmp_path, call):
    """As the error of other settings says it."""
    out, config = tmp_path / "longer", alone / "grpo_config.json"
    options = ["--config", config, "--model", alone, "--out", out, "--num-epochs", 2]
    assert call(train, *options)[0] == 0
    last, first = alone / "checkpoints" / "000008", out / "checkpoints" / "000000"
    name = "model.safetensors"
    assert (first / name).read_bytes() == (last / name).read_bytes()
    assert json.loads((out / "grpo_config.json").read_text())["model"] == str(last)


def test_there_is_nothing_to_resume(tmp_path, call):
    status, _, told = call(train, "--resume", "--out", tmp_path / "nothing")
    assert status == 1 and "There is no run in" in told
    assert not (tmp_path / "nothing").exists()


def test_metrics_that_were_cut_by_hand(start, tmp_path, call):
    out = tmp_path / "run"
    start(out).go()
    lines = out / "metrics.jsonl"
    lines.write_bytes(lines.read_bytes()[:-9])
    status, _, told = call(train, "--resume", "--out", out)
    assert status == 1 and "metrics.jsonl has" in told


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"x" * 9, b"\xff" * 9, b"[1, 2, 3]", b'{"a": 1} '])
def test_metrics_that_were_damaged_in_their_place(start, tmp_path, call, line):
    out = tmp_path / "run"
    start(out).go()
    file = out / "metrics.jsonl"
    lines = file.read_bytes().splitlines()
    lines[2] = line.ljust(len(lines[2]))
    file.write_bytes(b"\n".join([*lines, b""]))
    status, _, told = call(train, "--resume", "--out", out)
    assert status == 1
    assert f"{file}, line 3 is not what was written" in told and "--out" in told
