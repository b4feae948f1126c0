"""What the commands say, and the exit status they end with."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_course import training as build
from grpo_course.files import json_lines
from grpo_course.runs import evaluate, train
from grpo_course.runs.resumable import Run


def test_evaluate_a_run(call, alone, tmp_path):
    file = tmp_path / "measures.json"
    status, printed, _ = call(evaluate, "--model", alone, "--out", file)
    assert status == 0
    assert "on gsm8k, split unseen_problems" in printed
    assert "9 problems" in printed and "sampled pass@3" in printed
    assert printed.count("right: ") == 2
    rows = json.loads(file.read_text())
    assert {row["problems"] for row in rows} == {9}
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)


def test_evaluate_one_checkpoint_with_other_settings(call, alone):
    options = ["--eval-problems", 4, "--eval-samples", 2]
    options += ["--split", "unseen_facts", "--show", 0]
    model = alone / "checkpoints" / "000000"
    status, printed, _ = call(evaluate, "--model", model, *options)
    assert status == 0
    assert "split unseen_facts" in printed and "4 problems" in printed
    assert "sampled pass@2" in printed and "right: " not in printed


def test_evaluate_on_files(call, alone, save_gsm8k, tmp_path):
    save_gsm8k(6, tmp_path / "test.jsonl")
    status, printed, _ = call(evaluate, "--model", alone, "--data", tmp_path)
    assert status == 0
    assert "split test" in printed and "6 problems" in printed


def test_a_split_that_is_not_there(call, alone):
    status, _, error = call(evaluate, "--model", alone, "--split", "test")
    assert status == 1
    assert "split='test'" in error and "'unseen_phrasings'" in error


def test_a_finished_run_has_nothing_left_to_do(call, alone):
    before = (alone / "metrics.jsonl").read_bytes()
    status, printed, _ = call(train, "--resume", "--out", alone)
    assert status == 0 and "Trained for 8 epochs" in printed
    assert (alone / "metrics.jsonl").read_bytes() == before


def broken_models(folder):
    """Folders that hold no model, and what is to be said of them."""
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "notes.txt").write_text("hello")
    (folder / "half").mkdir()
    small = {"model_type": "qwen2", "num_hidden_layers": 1, "hidden_size": 32}
    (folder / "half" / "config.json").write_text(json.dumps(small))
    (folder / "strange").mkdir()
    (folder / "strange" / "config.json").write_text('{"model_type": "qwen99"}')
    return {
        "missing/one": "is no folder, and no name on the hub",
        "empty": "has no config.json",
        "other": "it holds: notes.txt",
        "half": "could not be loaded",
        "strange": "could not be loaded",
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["missing/one", "empty", "other", "half", "strange"])
@pytest.mark.parametrize("command", [train, evaluate])
def test_a_wrong_model_folder(call, tmp_path, command, name):
    told = broken_models(tmp_path)[name]
    extra = []  # evaluate looks for the model before it looks for GSM8K
    if command is train:
        extra = ["--config", "laptop", "--out", tmp_path / "run"]
    options = ["--model", tmp_path / name, *extra]
    status, _, error = call(command, *options)
    assert status == 1
    assert told in error and "Traceback" not in error and name in error


def test_a_place_for_the_measures_is_looked_for_first(call, alone, tmp_path):
    for place in (tmp_path / "nowhere" / "a.json", tmp_path):
        status, printed, error = call(evaluate, "--model", alone, "--out", place)
        assert status == 1 and f"--out {place} cannot be written" in error
        assert "accuracy" not in printed


@pytest.mark.parametrize("below", ["", "run"])
def test_a_file_cannot_be_the_folder_of_a_run(call, tmp_path, below):
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / below
    status, _, error = call(train, "--out", out)
    assert status == 1 and f"--out {out} cannot be a folder" in error
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", [train, evaluate])
def test_a_device_that_is_not_there(
    call, alone, small_run, tmp_path, monkeypatch, command
):
    model = ["--model", alone] if command is evaluate else []
    file, out = tmp_path / "c.json", tmp_path / "out"
    for device in ("tpu9", "cuda:99", "meta"):
        file.write_text(json.dumps(small_run | {"device": device}))
        status, _, error = call(command, "--config", file, "--out", out, *model)
        assert status == 1
        assert f"device='{device}'" in error and '"cpu"' in error


def test_a_response_without_room_is_refused_before_the_warm_start(
    call, small_run, tmp_path, monkeypatch
):
    def begun(*arguments):
        raise AssertionError("the warm start has begun")

    monkeypatch.setattr(build, "run_warm_start", begun)
    file, out = tmp_path / "c.json", tmp_path / "run"
    file.write_text(json.dumps(small_run | {"max_new_tokens": 250}))
    status, _, error = call(train, "--config", file, "--out", out)
    assert status == 1 and "the model knows 256 positions" in error
    assert "max_new_tokens" in error
    monkeypatch.undo()
    file.write_text(json.dumps(small_run | {"num_epochs": 1}))
    assert call(train, "--config", file, "--out", out)[0] == 0


def test_real_data_are_too_long_for_the_tiny_model(call, tmp_path, monkeypatch):
    """The laptop's model and GSM8K's own problems: another preset is the cure."""
    monkeypatch.setattr(build, "run_warm_start", None)  # it is not begun
    long = "A baker sells 3 loaves in the morning and some more later. " * 30
    rows = [{"question": f"{long}{i}?", "answer": "#### 3"} for i in range(40)]
    (tmp_path / "train.jsonl").write_text(json_lines(rows))
    options = ["--data", tmp_path, "--vocab-size", 300, "--out", tmp_path / "run"]
    status, _, error = call(train, "--config", "laptop", *options)
    assert status == 1 and "take a pretrained model: --config gpu" in error
    longer = int(re.search(r"--context-length (\d+)", error)[1])
    with pytest.raises(TypeError):  # long enough for the warm start to begin
        call(train, "--config", "laptop", *options, "--context-length", longer)


def test_a_seed_that_no_generator_takes(call, alone, tmp_path):
    seed = ["--seed", 10**30]
    status, _, error = call(train, "--out", tmp_path / "run", *seed)
    assert status == 2 and "seed=" in error
    status, _, error = call(evaluate, "--model", alone, *seed)
    assert status == 2 and "--seed" in error


def test_prompts_that_no_machine_holds(call, tmp_path):
    out = tmp_path / "run"
    status, _, error = call(train, "--num-prompts", 10**9, "--out", out)
    assert status == 1 and "this machine has" in error and not out.exists()


def test_code_that_comes_with_a_model_is_not_run(call, tmp_path):
    (tmp_path / "config.json").write_text(
        '{"model_type": "own", "auto_map": {"AutoConfig": "own.Config", '
        '"AutoModelForCausalLM": "own.Model"}}'
    )
    (tmp_path / "own.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    options = ["--config", "laptop", "--model", tmp_path, "--out", tmp_path / "run"]
    status, _, error = call(train, *options)
    assert status == 1 and "could not be loaded" in error
    assert not Path("ran").exists() and not (tmp_path / "ran").exists()


def test_no_data(call, tmp_path):
    (tmp_path / "train.jsonl").write_text("\n")
    out = tmp_path / "run"
    status, _, error = call(train, "--data", tmp_path, "--out", out)
    assert status == 1 and "holds no row" in error
    # Nothing came of that run, so its folder may be used again.
    status, _, error = call(train, "--data", tmp_path / "nowhere", "--out", out)
    assert status == 1 and "nowhere" in error and "GSM8K_DIR" in error


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--config", "laptops"], 1, "config='laptops' is not known"),
        (["--config", "nowhere.json"], 1, "config='nowhere.json' is not known"),
        (["--task", "gsm9k"], 1, "task='gsm9k' is not known"),
        (["--resume"], 1, "There is no run in"),
        (["--num-epochs", "-1"], 2, "num_epochs=-1"),
        (["--num-epochs", "two"], 2, "two"),
        (["--device", "tpu"], 2, "device='tpu'"),
        (["--slips", "3"], 2, "slips=3.0"),
        (["--reward-weights.form", "1"], 2, "--reward-weights.form"),
        (["--reward-weights.format", "-1"], 2, "reward_weights=-1.0"),
        (["--task-settings.slips", "1"], 2, "--task-settings.slips"),
        (["--epochs", "3"], 2, "--epochs"),
    ],
)
def test_options_that_cannot_be(call, tmp_path, options, status, told):
    ended, _, error = call(train, *options, "--out", tmp_path / "run")
    assert ended == status and told in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_as_a_process(process, alone):
    options = ["--eval-problems", "2", "--eval-samples", "1"]
    done = process("evaluate", "--model", alone, *options)
    assert done.returncode == 0, done.stderr
    assert "greedy strict accuracy" in done.stdout


HOLD = """
import sys, time
from pathlib import Path
from grpo_course.runs.folder import alone_in
with alone_in(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def busy(tmp_path):
    """The folder of a run that another process has just begun."""
    out = tmp_path / "busy"
    command = [sys.executable, "-c", HOLD, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield out
        process.kill()


def test_two_processes_do_not_train_in_one_folder(call, small_run, busy, tmp_path):
    """Not even while the first makes its warm start and has saved nothing yet."""
    file = tmp_path / "c.json"
    file.write_text(json.dumps(small_run))
    status, _, error = call(train, "--config", file, "--out", busy)
    assert status == 1 and f"Another process is training in {busy}" in error
    assert not (busy / "grpo_config.json").exists()


def test_a_run_that_another_process_goes_on_with_is_not_resumed(call, busy, alone):
    shutil.copytree(alone, busy, dirs_exist_ok=True)
    status, _, error = call(train, "--resume", "--out", busy)
    assert status == 1 and f"Another process is training in {busy}" in error


def test_a_run_opened_in_python_keeps_others_out_too(busy, alone):
    shutil.copytree(alone, busy, dirs_exist_ok=True)
    with pytest.raises(OSError, match=re.escape(f"is training in {busy}")):
        Run(busy, show=False)


def test_a_run_that_another_went_on_with_is_opened_again(start, tmp_path):
    first = start(tmp_path / "run")
    Run(tmp_path / "run", show=False).go()
    with pytest.raises(OSError, match="gone on with since it was opened here"):
        first.go()
