"""The commands of a run from their arguments to files: what they do and what they say.

The bad calls stand in one table.
"""

import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_course import install
from grpo_course.files import json_lines
from grpo_course.text import cli, reverse, training
from grpo_course.text.cli import ask, check_task, evaluate, new_task, show, train
from grpo_course.text.reverse import Reverse
from grpo_course.text.runs import CONFIG, METRICS, Run, checkpoint_path, read_lines
from grpo_course.text.stories import make_problems
from grpo_course.text.tasks import find_task
from tests.test_runs import after_each_line

# A task of a learner's own: the one to copy.
MINE = inspect.getsource(reverse).replace("class Reverse", "class Mine")
GRADED = "    return graded("
LINE = 1 + MINE.partition(GRADED)[0].count("\n")
FEW = ["--eval-problems", 2, "--eval-samples", 1]


@pytest.fixture
def folder(tmp_path, monkeypatch, small_run):
    """A working directory with a learner's own task, and small settings in a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mytask.py").write_text(MINE)
    (tmp_path / "small.json").write_text(json.dumps(small_run))
    return tmp_path


SMALL = ["--config", "small.json"]
MY_TASK = ["--task", "own/mytask.py:Mine", *SMALL, "--out", "my run"]
SHORT = ["--num-epochs", 1, "--warm-start-steps", 0]


# train


@pytest.mark.slow
def test_a_model_from_nothing(folder, call):
    status, printed, told = call(train, *SMALL, "--num-epochs", 3, "--out", "a run")
    assert status == 0, told
    assert "parameters" in printed and "most at once" in printed
    assert "evaluate --model 'a run'" in printed
    assert "\r" not in told
    bar = told.splitlines()[-1]
    assert all(name in bar for name in ("3 of 3", "reward=", "accuracy=", "kl="))
    lines = read_lines(folder / "a run" / METRICS)
    needed = {"mean_reward", "accuracy", "format", "kl", "gradient_norm", "loss"}
    assert needed <= lines[0].keys() and lines[0]["kl"] == 0 < lines[2]["kl"]
    last = checkpoint_path(folder / "a run", 3)
    tokenizer = AutoTokenizer.from_pretrained(last)
    assert tokenizer.chat_template and tokenizer.padding_side == "left"
    assert AutoModelForCausalLM.from_pretrained(last).num_parameters() > 0


def test_a_run_begins_with_the_model_of_a_finished_one_and_goes_on_without(
    alone, folder, call
):
    """As the refusal of other settings says it; its checkpoints hold whole models."""
    start, name = shutil.copytree(alone, folder / "start"), "model.safetensors"
    options = ["--config", alone / CONFIG, "--model", start, "--out", "run"]
    few = ["--num-epochs", 2, "--save-every", 1]
    status, printed, told = call(train, *options, *few)
    assert status == 0 and "Scores differ from what" in printed, told
    begun, last = checkpoint_path(Path("run"), 0), checkpoint_path(start, 8)
    assert (begun / name).read_bytes() == (last / name).read_bytes()
    assert json.loads(Path("run", CONFIG).read_text())["model"] == str(last)
    shutil.rmtree(checkpoint_path(Path("run"), 2))
    shutil.rmtree(start)
    status, _, told = call(train, "--resume", "--out", "run")
    assert status == 0 and checkpoint_path(Path("run"), 2).exists(), told


def test_a_finished_run_goes_on_to_more_epochs_as_if_it_had_never_ended(
    folder, outcome, call
):
    """At a constant rate; one that falls to the end would have fallen otherwise."""
    few = [*SMALL, "--schedule", "constant", "--held-out-every", 0, "--num-epochs"]
    assert call(train, *few, 3, "--out", "whole")[0] == 0
    assert call(train, *few, 2, "--out", "longer")[0] == 0
    status, _, told = call(train, "--resume", "--out", "longer", "--num-epochs", 3)
    assert status == 0 and outcome(folder / "longer") == outcome(folder / "whole"), told
    assert call(train, "--resume", "--out", "longer")[0] == 0  # its length is kept
    assert call(train, *SMALL, "--num-epochs", 2, "--out", "falls")[0] == 0
    status, _, told = call(train, "--resume", "--out", "falls", "--num-epochs", 3)
    assert status == 1 and "falls has other settings: num_epochs 2 -> 3" in told


def test_a_run_that_saved_nothing_is_begun_anew_with_other_settings(folder, call):
    """There is no model of it that another run could begin with."""
    long = ["--max-new-tokens", 1000, "--out", "run"]
    assert call(train, *SMALL, *long)[0] == 1  # more than the model reads
    status, _, told = call(train, "--resume", "--out", "run", "--max-new-tokens", 9)
    found = re.search("Nothing was saved yet. Begin anew: .* train (.*), and", told)
    assert status == 1 and found
    given = [*found[1].split(), "--max-new-tokens", 9, *SHORT]
    status, _, told = call(train, *given)
    assert status == 0, told


@pytest.mark.slow
def test_a_task_of_ones_own_trains_and_is_evaluated(folder, call):
    status, printed, error = call(train, *MY_TASK)
    assert status == 0 and printed.count("[!] The start is too weak") == 1, error
    saved = json.loads((folder / "my run" / CONFIG).read_text())
    assert saved["reward_weights"] == {"accuracy": 1.0}
    status, printed, error = call(evaluate, "--model", "my run", "--baselines")
    assert status == 0, error
    assert "majority of 3" in printed and "temperature 0.3" in printed
    assert "longer imitation" in printed and "warm start of 11 steps" in printed
    assert "on own/mytask.py:Mine, split test" in printed and "9 problems" in printed


def test_a_reward_that_breaks_later_is_mended_and_gone_on_with(
    folder, call, monkeypatch
):
    """The line of the learner's file, the epoch, and a way on that works."""
    broken = "if pathlib.Path('broken').exists(): return [1 / (len(text) * 0) for"
    broken = f"    {broken} text in completions]\n{GRADED}"
    file, kept = folder / "own" / "mytask.py", Path("my run", "task.py")
    file.write_text("import pathlib\n" + MINE.replace(GRADED, broken))

    def break_it(epoch):
        if epoch == 4:
            folder.joinpath("broken").touch()

    after_each_line(monkeypatch, break_it)
    status, printed, error = call(train, *MY_TASK)
    assert status == 1 and "Traceback" not in printed + error
    (last,) = error.splitlines()[-1:]
    assert f"{file}, line {LINE + 1}, `if pathlib" in last
    assert "ZeroDivisionError: division by zero." in last
    assert "This was in epoch 5." in last and f"delete {kept} and go on: " in last
    words = last.partition("go on: ")[2].partition(" train ")[2].partition(". To")[0]
    file.write_text(MINE)
    for more, told in ([], "has changed since"), (["--seed", 1], "seed 0 -> 1"):
        status, _, error = call(train, *shlex.split(words), *more)
        assert status == 1 and told in error
    kept.unlink()
    status, _, error = call(train, *shlex.split(words))
    assert status == 0, error
    rows = read_lines(folder / "my run" / METRICS)
    assert [row["epoch"] for row in rows] == [*range(9)]
    assert kept.read_text() == MINE
    # On problems that training never saw, too.
    file.write_text(MINE.replace(GRADED, "    return [][0]  # ("))
    status, _, error = call(evaluate, "--model", "my run", *FEW)
    assert status == 1 and "IndexError: list index out of range." in error
    assert f"{file}, line {LINE}, `return [][0]" in error and "Traceback" not in error


def test_a_loss_that_is_no_number_names_a_new_run(folder, call, monkeypatch):
    """With the same settings, it would come to the same."""

    nothing = torch.tensor(torch.nan)
    monkeypatch.setattr(training.Trainer, "loss", lambda self, batch: (nothing, {}))
    status, _, error = call(train, *SMALL, "--out", "run")
    assert status == 1 and "--resume" not in error
    assert error.splitlines()[-1].count("epoch 0") == 1
    assert "train --config run/grpo_config.json --model run --out DIR" in error


@pytest.mark.slow
def test_settings_of_a_task_are_flags(folder, call):
    chosen = ["--numbers", 2, "--largest", 5, "--reward-weights.format", 0.5]
    options = ["--task", "countdown", *SMALL, *SHORT, "--out", "run"]
    assert call(train, *options, *chosen)[0] == 0
    run = Run("run", show=False)
    assert run.config.task_settings == {"numbers": 2, "largest": 5}
    assert run.config.reward_weights == {"accuracy": 1.0, "format": 0.5}
    assert all(len(p.answer["numbers"]) == 2 for p in run.problems)
    status, printed, _ = call(train, "--task", "countdown", "--settings")
    assert status == 0 and "--largest" in printed and "--learning-rate" in printed


def test_a_stopped_warm_start_says_that_it_begins_again(folder, call, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "run_warm_start", stop)
    status, _, told = call(train, *SMALL, "--seeds", 2, "--out", "my seeds")
    assert status == 130 and "train --resume --seeds 2 --out 'my seeds'" in told
    assert not (folder / "my seeds" / "seed1").exists()
    status, _, told = call(train, *SMALL, "--out", "run", "--num-epochs", 1)
    assert status == 130 and "Nothing was saved yet" in told
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert call(train, "--resume", "--out", "run")[0] == 0


def test_what_has_no_room_is_refused_before_the_warm_start(folder, call, monkeypatch):
    monkeypatch.setattr(training, "run_warm_start", None)  # it is not begun
    options = [*SMALL, "--max-new-tokens", 300, "--out", "run"]
    status, _, error = call(train, *options)
    assert status == 1 and "take a pretrained model" in error
    longer = int(re.search(r"--context-length (\d+)", error)[1])
    with pytest.raises(TypeError):  # long enough for the warm start to begin
        call(train, *options, "--context-length", longer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (["--config", "laptops"], 1, "config='laptops' is not known"),
        (["--task", "no.py:No"], 1, "Is the path that of a task's file?\n"),
        (["--config", "nowhere.json"], 1, "config='nowhere.json' is not known"),
        (["--task", "gsm9k"], 1, "task='gsm9k' is not known"),
        (["--task", "own/taken.py:Taken"], 1, "--seed is a flag of every run"),
        (["--config", "typo.json"], 1, "Did you mean learning_rate"),
        (["--config", "own.json"], 1, "no setting 'operand'. Did you mean operands"),
        (["--num-responses", "1"], 2, "a group of one"),
        (["--resume"], 1, "There is no run in"),
        (["--model", "missing/one"], 1, "model='missing/one'"),
        (["--data", "nowhere"], 1, "nowhere"),
        (["--num-prompts", 10**9], 1, "this machine has"),
        (["--device", "tpu", *SMALL], 1, "device='tpu' cannot be used"),
        (["--num-epochs", "two"], 2, "two"),
        (["--reward-weights.form", "1"], 2, "--reward-weights.form"),
        (["--slip", "1"], 2, "--slip"),
    ],
)
def test_calls_that_cannot_be(folder, call, options, status, told):
    taken = "\n\n@settings()\nclass Taken(Mine):\n    seed: int = 0\n"
    (folder / "own" / "taken.py").write_text(MINE + taken)
    typo = {"base": "default", "learning_rat": 1e-4}
    (folder / "typo.json").write_text(json.dumps(typo))
    own = {"base": "default", "task_settings": {"operand": [1, 2]}}
    (folder / "own.json").write_text(json.dumps(own))
    ended, _, error = call(train, *options, "--out", "run")
    assert ended == status and told in error and "Traceback" not in error
    assert "ArgsKwargs" not in error and "[type=" not in error
    assert not (folder / "run" / "checkpoints").exists()


@pytest.mark.slow
def test_seeds_are_runs_of_their_own_that_are_gone_on_with(folder, outcome, call):
    few = [*SMALL, "--num-epochs", 2, "--seed", 3]
    assert call(train, *few, "--seed", 4, "--out", "alone")[0] == 0
    status, printed, error = call(train, *few, "--seeds", 2, "--out", "seeds")
    assert status == 0 and "Compare them: " in printed, error
    assert outcome(folder / "seeds" / "seed4") == outcome(folder / "alone")
    whole = outcome(folder / "seeds" / "seed3")
    shutil.rmtree(checkpoint_path(folder / "seeds" / "seed3", 2))
    assert call(train, *few, "--seeds", 2, "--out", "seeds")[0] == 1  # are there
    again = ["--resume", "--seeds", 3, "--out", "seeds"]
    assert call(train, *again)[0] == 0
    assert outcome(folder / "seeds" / "seed3") == whole
    runs = sorted(path.name for path in (folder / "seeds").iterdir())
    assert runs == ["seed3", "seed4", "seed5"]
    status, printed, error = call(show, "seeds", "alone")
    assert status == 0 and "seeds (3 seeds)" in printed, error
    assert "±" in printed and "2 of 2" in printed and "They differ in: seed" in printed
    assert (folder / "runs.png").read_bytes().startswith(b"\x89PNG")
    status, _, error = call(train, *again, "--learning-rate", 1)
    assert status == 1 and "seed3 has other settings: learning_rate" in error
    assert call(train, *few, "--seeds", 0)[0] == 2


def test_metrics_go_to_a_logger_and_the_run_is_the_same(
    folder, outcome, call, monkeypatch
):
    tracking = pytest.importorskip("accelerate.tracking")
    kind = MagicMock(requires_logging_directory=False)
    tracker = kind.return_value
    monkeypatch.setitem(tracking.LOGGER_TYPE_TO_CLASS, "wandb", kind)
    few = [*SMALL, "--num-epochs", 2, "--out"]
    assert call(train, *few, "alone")[0] == 0
    status, _, error = call(train, *few, "logged", "--report-to", "wandb")
    assert status == 1 and "pip install" in error and "wandb" in error
    monkeypatch.setattr(install, "lacking", lambda needed: [])
    status, _, error = call(train, *few, "logged", "--report-to", "wandb")
    assert status == 0, error
    kind.assert_called_once_with("grpo-course", name="logged")
    (values,) = tracker.store_init_configuration.call_args.args
    assert values["num_epochs"] == 2 and values["model"] == "null"
    tracker.finish.assert_called_once()
    told = [(each.kwargs["step"], each.args[0]) for each in tracker.log.mock_calls]
    assert outcome(folder / "logged") == outcome(folder / "alone")
    lines = read_lines(folder / "logged" / METRICS)
    assert [step for step, _ in told] == [line["epoch"] for line in lines] == [0, 1, 2]
    assert told[1][1]["mean_reward"] == lines[1]["mean_reward"]
    assert "held_out" in told[2][1]
    assert call(train, *few, "other", "--report-to", "paper")[0] == 2


# evaluate


def test_evaluate_a_run_and_one_of_its_checkpoints(call, alone, tmp_path):
    file = tmp_path / "measures.json"
    status, printed, _ = call(evaluate, "--model", alone, "--out", file)
    assert status == 0
    assert "on gsm8k, split unseen_problems" in printed
    assert "9 problems" in printed and "sampled pass@3" in printed
    assert printed.count("right: ") == 2
    rows = json.loads(file.read_text())
    assert all(row["low"] <= row["mean"] <= row["high"] for row in rows)
    model, split = checkpoint_path(alone, 0), ["--split", "unseen_facts", "--show", 0]
    status, printed, _ = call(evaluate, "--model", model, *split, *FEW)
    assert status == 0 and "split unseen_facts" in printed and "2 problems" in printed
    assert "sampled pass@1" in printed and "right: " not in printed


@pytest.mark.slow
def test_evaluate_a_model_with_another_task_on_files(call, alone, tmp_path):
    problems = make_problems("train", 6, seed=3)
    rows = [{"question": p.question, "answer": p.solution} for p in problems]
    (tmp_path / "test.jsonl").write_text(json_lines(rows))
    model = ["--model", shutil.copytree(checkpoint_path(alone, 8), tmp_path / "model")]
    status, printed, _ = call(evaluate, *model, "--data", tmp_path)
    assert status == 0 and "split test" in printed and "6 problems" in printed
    config = tmp_path / "model" / "grpo_config.json"  # as train writes it
    weighed = json.loads(config.read_text()) | {"reward_weights": {"length_reward": 0}}
    config.write_text(json.dumps(weighed))
    status, printed, error = call(evaluate, *model, "--task", "countdown", *FEW)
    assert status == 0 and "on countdown, split test" in printed, error
    status, _, error = call(evaluate, *model, *FEW, "--baselines")
    assert status == 1 and "no model from before the training" in error
    shutil.copytree(checkpoint_path(alone, 0), tmp_path / "start")  # as TRL's bridge
    status, printed, error = call(evaluate, *model, *FEW, "--baselines")
    assert status == 0 and "majority of 1" in printed, error
    (tmp_path / "model" / "grpo_config.json").unlink()  # as what others trained
    status, printed, error = call(evaluate, *model, "--task", "reverse", *FEW)
    assert status == 0 and "on reverse, split" in printed, error


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--split", "train2"], "split='train2'"),
        (["--out", "nowhere/a.json"], "--out nowhere/a.json: its folder is not"),
        (["--model", "empty"], "Pass a folder that save_pretrained has"),
    ],
)
def test_what_evaluate_refuses(call, alone, tmp_path, monkeypatch, options, told):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    ended, printed, error = call(evaluate, "--model", alone, *options)
    assert ended == 1 and told in error and "accuracy" not in printed


# ask


def test_a_model_is_asked_and_its_answers_are_graded(alone, call):
    model = ["--model", alone, "--max-new-tokens", 9]
    question = ["--question", "Ann has 3 pens and buys 4. How many?"]
    status, printed, error = call(ask, *model, *question, "--answer", 7)
    assert status == 0 and printed.count("-> ") == 1, error
    assert re.search(r"accuracy [01], .*format [\d.]+.*; right: 7", printed)
    assert call(ask, *model, *question, "--answer", 7)[1] == printed  # the likeliest
    status, printed, _ = call(ask, *model, *question, "--samples", 3, "--plain")
    assert status == 0 and printed.count("-> ") == 3 and "right: " not in printed
    status, _, error = call(ask, *model[:2], *question, "--max-new-tokens", 999)
    assert status == 1 and "the model knows 256 positions" in error
    gold = '{"numbers": [1, 2], "target": 3}'  # an answer that is no text is JSON
    options = ["--task", "countdown", "--question", "Make 3.", "--answer", gold]
    status, printed, error = call(ask, *model[:2], *options)
    assert status == 0 and "right: {'numbers': [1, 2], 'target': 3}" in printed, error


def test_what_is_typed_is_answered_line_by_line(alone, call, monkeypatch):
    """An empty line is a problem of the task, whose answer is known."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("How many?\n\n\n"))
    status, printed, error = call(ask, "--model", alone, "--max-new-tokens", 9)
    assert status == 0 and printed.count("-> ") == 3, error
    assert printed.count("right: ") == 2 and printed.startswith("Ask, or press Enter")


# show


@pytest.mark.slow
def test_runs_are_printed_and_drawn(call, alone, tmp_path, monkeypatch):
    """The second was seen while it wrote a line."""
    monkeypatch.chdir(tmp_path)
    other = shutil.copytree(alone, tmp_path / "other")
    text = (other / CONFIG).read_text().replace('_rate": 0.003', '_rate": 0.5')
    (other / CONFIG).write_text(text)
    lines = (other / METRICS).read_text().splitlines()
    (other / METRICS).write_text("\n".join([*lines[:4], lines[4][:30]]))
    status, printed, _ = call(show, alone, "--out", "one.png", "--samples", 1)
    png = b"\x89PNG"
    assert status == 0 and Path("one.png").read_bytes().startswith(png)
    assert "8 of 8" in printed and " → " in printed
    assert read_lines(alone / "samples.jsonl")[-1]["completion"] in printed
    status, printed, _ = call(show, alone, other)
    assert status == 0 and Path("runs.png").read_bytes().startswith(png)
    assert "8 of 8" in printed and "4 of 8" in printed
    assert "They differ in: learning_rate 0.003 -> 0.5" in printed
    (other / METRICS).unlink()  # before its first epoch
    assert call(show, other)[0] == 0 and (other / "run.png").is_file()
    status, _, told = call(show, tmp_path / "none")
    assert status == 1 and f"There is no run in {tmp_path / 'none'}" in told


def test_a_log_is_read_while_the_work_goes_on_in_any_code_page(monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    seen = []
    work = lambda _: print("0 → 8") or seen.append(written.getvalue()) or 0  # noqa: E731
    assert cli.run_command(work, []) == 0
    assert seen == [b"0 ? 8\n"]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="a pipe of Unix")
def test_a_reader_that_leaves_ends_no_command_with_a_traceback(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "grpo_course", "new-task", tmp_path / "mine.py"],
        stdout=writer,
        stderr=subprocess.PIPE,
        cwd=Path(reverse.__file__).parents[2],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    os.close(writer)
    assert done.returncode == 0 and not done.stderr, done.stderr


# new-task, check-task


def test_a_new_task_is_the_one_to_copy_and_overwrites_nothing(folder, call):
    status, printed, error = call(new_task, "own/fresh.py")
    assert status == 0, error
    assert "check-task own/fresh.py:Reverse" in printed
    assert "--task own/fresh.py:Reverse" in (folder / "own" / "fresh.py").read_text()
    task = find_task("own/fresh.py:Reverse")
    assert task is not Reverse
    assert task().problems("test", 9, 0) == Reverse().problems("test", 9, 0)
    status, printed, error = call(new_task, "my own task.py")
    assert status == 0 and "'my own task.py:Reverse'" in printed, error
    assert find_task("my own task.py:Reverse")  # it compiles
    for name in ("own/mytask.py", "no/folder.py", "own", "task.txt"):
        status, _, error = call(new_task, name)
        assert status == 1 and "Name a new file that ends with .py" in error
    assert (folder / "own" / "mytask.py").read_text() == MINE


@pytest.mark.slow
def test_check_task_takes_settings_and_says_what_is_wrong(folder, call):
    options = ["--num-problems", 100, "--eval-problems", 9, "--max-new-tokens"]
    status, printed, error = call(check_task, "reverse", *options, 5)
    assert status == 1 and "max_new_tokens=5 cuts" in " ".join(printed.split()), error
    tiny = ["--hidden-size", 16, "--num-layers", 1, "--warm-start-steps", 2]
    status, printed, error = call(check_task, "reverse", *options, 20, *tiny)
    assert status == 0 and "[!] After 2 steps most groups are tied" in printed, error
