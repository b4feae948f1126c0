"""Countdown, and a task in a learner's own file, by the same commands as GSM8K."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from grpo_course.countdown import Countdown
from grpo_course.runs import check_task, evaluate, new_task, train
from grpo_course.runs.resumable import Run

COUNTDOWN = Path(sys.modules[Countdown.__module__].__file__)
# A task of a learner's own, whole: its rewards compare with a text.
MINE = '''"""Say a word again."""

import random
from typing import ClassVar

from grpo_course.checks import settings
from grpo_course.tasks import extract_answer, graded, in_template
from grpo_course.tasks import Problem, TextTask


def said_again(completions, answer, **kwargs):
    return graded(lambda text, word: extract_answer(text) == word, completions, answer)


@settings()
class Mine(TextTask):
    letters: str = "abcdefgh"  # of the words

    rewards: ClassVar = {"accuracy": (said_again, 1.0)}

    def problems(self, split, count, seed):
        rng = random.Random(f"{split} {seed}")
        words = ("".join(rng.sample(self.letters, 4)) for _ in range(count))
        return [Problem(f"Say {word}.", word) for word in dict.fromkeys(words)]

    def gold(self, problem):
        return in_template("again", problem.answer)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with two tasks of a learner's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    for place in (tmp_path, tmp_path / "own"):
        (place / "mytask.py").write_text(MINE)
    copied = COUNTDOWN.read_text().replace("class Countdown(", "class Mine(")
    (tmp_path / "copied.py").write_text(copied)
    yield tmp_path
    for name in ("mytask", "copied"):
        sys.modules.pop(name, None)


@pytest.fixture
def options(small_run, folder):
    """The settings of a short run, as flags read them from a file."""
    (folder / "small.json").write_text(json.dumps(small_run))
    return ["--config", "small.json", "--out", "out"]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["countdown", "own/mytask.py:Mine", "copied:Mine"])
def test_a_task_trains_evaluates_and_resumes(task, options, folder, outcome, call):
    status, printed, error = call(train, "--task", task, *options)
    assert status == 0, error
    assert "Trained for 8 epochs" in printed
    saved = json.loads((folder / "out" / "grpo_config.json").read_text())
    assert saved["task"] == task and "accuracy" in saved["reward_weights"]
    status, printed, error = call(evaluate, "--model", "out", "--baselines")
    assert status == 0, error
    assert "majority of 3" in printed and "temperature 0.3" in printed
    assert f"on {task}, split test" in printed and "9 problems" in printed
    assert "greedy strict accuracy" in printed and "sampled pass@3" in printed
    whole = outcome(folder / "out")
    for name in ("000006", "000008"):
        shutil.rmtree(folder / "out" / "checkpoints" / name)
    assert call(train, "--resume", "--out", "out")[0] == 0
    assert outcome(folder / "out") == whole


def test_a_new_task_is_the_one_to_copy_and_is_right(folder, call):
    status, printed, error = call(new_task, "own/fresh.py")
    assert status == 0, error
    assert "check-task own/fresh.py:Reverse" in printed
    assert "--task own/fresh.py:Reverse" in (folder / "own" / "fresh.py").read_text()
    assert call(check_task, "own/fresh.py:Reverse")[0] == 0


@pytest.mark.parametrize("name", ["own/mytask.py", "no/folder.py", "own", "task.txt"])
def test_a_new_task_overwrites_nothing(name, folder, call):
    before = sorted(folder.rglob("*"))
    status, _, error = call(new_task, name)
    assert status == 1 and "Name a new file that ends with .py" in error
    assert sorted(folder.rglob("*")) == before
    assert (folder / "own" / "mytask.py").read_text() == MINE


def test_a_run_is_not_resumed_with_another_task(options, folder, call):
    task = ["--task", "mytask.py:Mine", "--num-epochs", 1, "--warm-start-steps", 0]
    assert call(train, *task, *options)[0] == 0
    file = folder / "mytask.py"
    file.write_text(MINE.replace("1.0)", "2.0)"))
    os.utime(file, ns=(1, 1))
    status, _, error = call(train, "--resume", "--out", "out")
    kept = folder / "out" / "task.py"
    assert status == 1 and "mytask.py:Mine has changed since the run in out" in error
    assert kept.read_text() == MINE
    file.write_text(kept.read_text())
    assert call(train, "--resume", "--out", "out")[0] == 0


def test_a_run_whose_file_was_moved_is_measured_with_the_new_path(
    options, folder, call
):
    task = ["--task", "mytask.py:Mine", "--num-epochs", 1, "--warm-start-steps", 0]
    assert call(train, *task, *options)[0] == 0
    (folder / "mytask.py").rename(folder / "moved.py")
    few = ["--model", "out", "--eval-problems", 2, "--eval-samples", 1]
    status, _, error = call(evaluate, *few)
    assert status == 1 and "There is no file " in error
    status, printed, error = call(evaluate, *few, "--task", "moved.py:Mine")
    assert status == 0 and "on moved.py:Mine, split test" in printed, error


def test_what_there_is_no_start_for_is_not_compared(alone, tmp_path, call):
    model = tmp_path / "model"
    shutil.copytree(alone / "checkpoints" / "000008", model)
    few = ["--model", model, "--eval-problems", 2, "--eval-samples", 1]
    status, _, error = call(evaluate, *few, "--baselines")
    assert status == 1 and "no model from before the training" in error
    shutil.copytree(alone / "checkpoints" / "000000", tmp_path / "start")
    status, printed, error = call(evaluate, *few, "--baselines")
    assert status == 0 and "majority of 1" in printed, error


# A task whose words come out of a set, in an order that each process has for itself.
FROM_A_SET = MINE.replace(
    """        words = ("".join(rng.sample(self.letters, 4)) for _ in range(count))
        return [Problem(f"Say {word}.", word) for word in dict.fromkeys(words)]
""",
    """        count *= split == "train"
        words = {"".join(rng.sample(self.letters, 4)) for _ in range(count)}
        return [Problem(f"Reverse {word}.", word[::-1]) for word in words]
""",
)


@pytest.mark.slow
def test_check_task_asks_in_another_process(folder, call):
    (folder / "set.py").write_text(FROM_A_SET)
    status, printed, error = call(check_task, "set.py:Mine", "--vocab-size", 280)
    assert status == 1 and not error
    assert "sorted(...) makes a list of it in one order" in " ".join(printed.split())


def test_check_task_takes_settings_and_says_what_is_wrong(folder, call):
    options = ["--max-new-tokens", 5, "--num-problems", 100]
    status, printed, error = call(check_task, "reverse", *options)
    assert status == 1 and "max_new_tokens=5 cuts" in " ".join(printed.split()), error


def test_settings_of_a_task_are_flags(options, folder, call):
    options += ["--num-epochs", 1, "--warm-start-steps", 0]
    chosen = ["--numbers", 2, "--largest", 5, "--reward-weights.format", 0.5]
    assert call(train, "--task", "countdown", *options, *chosen)[0] == 0
    run = Run(folder / "out", show=False)
    assert run.config.task_settings == {"numbers": 2, "largest": 5}
    assert run.config.reward_weights == {"accuracy": 1.0, "format": 0.5}
    assert all(len(p.answer["numbers"]) == 2 for p in run.problems)


def test_a_setting_of_a_task_may_not_be_a_flag_of_every_run(folder, options, call):
    taken = "\n\n@settings()\nclass Taken(Mine):\n    seed: int = 0\n"
    (folder / "taken.py").write_text(MINE + taken)
    status, _, error = call(train, "--task", "taken.py:Taken", *options)
    assert status == 1 and "--seed is a flag of every run. Give it another" in error
    assert not (folder / "out").exists()
