"""Runs that take a second, in this process and in others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grpo_course.files import json_lines
from grpo_course.gsm8k import demonstration, make_problems
from grpo_course.lm import make_tokenizer
from grpo_course.runs import saved_run
from grpo_course.runs.folder import begin
from grpo_course.runs.resumable import Run
from grpo_course.training import from_values

ROOT = Path(__file__).resolve().parents[2]
# How a process of its own runs a command.
AS_A_PROCESS = (
    "import sys; from importlib import import_module; from pathlib import Path; "
    "command = import_module(f'grpo_course.runs.{sys.argv[1]}'); "
    "sys.exit(command.main(sys.argv[2:], Path()))"
)
COMMAND = [sys.executable, "-c", AS_A_PROCESS]

RUNS = json.loads((ROOT / "tests" / "torture" / "runs.json").read_text())


@pytest.fixture(autouse=True)
def undrawn():
    """No run is drawn at its checkpoints, which takes half a second each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saved_run, "redraw", lambda *_: None)
        yield


@pytest.fixture(scope="session")
def tokenizer():
    """Of a few generated problems."""
    problems = make_problems("train", 100, seed=0)
    return make_tokenizer(f"{p.question}\n{demonstration(p)}" for p in problems)


@pytest.fixture(scope="session")
def small_run():
    """Settings of a run that takes a second, as a config file has them."""
    return dict(RUNS["small"])


@pytest.fixture(scope="session")
def start(small_run):
    """Begin a run in a folder, up to its first checkpoint."""

    def started(out, **changes):
        begin(from_values(small_run | changes), out)
        return Run(out, show=False)

    return started


@pytest.fixture(scope="session")
def outcome(small_run):
    """The metrics and the last weights of a finished run, byte for byte."""

    def read(out):
        folder = out / "checkpoints" / f"{small_run['num_epochs']:06d}"
        lines = (out / "metrics.jsonl").read_bytes()
        return lines, (folder / "model.safetensors").read_bytes()

    return read


@pytest.fixture(scope="session")
def alone(start, tmp_path_factory):
    """A finished run that nobody disturbed. Look only."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    out = tmp_path_factory.mktemp("alone") / "run"
    start(out).go()
    torch.set_num_threads(before)
    return out


@pytest.fixture
def call(capsys, monkeypatch):
    """Run a command in this process. -> (exit status, stdout, stderr)"""
    monkeypatch.setattr(sys, "path", [*sys.path])  # a command adds the current folder

    def called(command, *arguments):
        capsys.readouterr()
        try:
            status = command.main([str(argument) for argument in arguments], ROOT)
        except SystemExit as ended:  # of the parser of flags
            status = ended.code
        return status, *capsys.readouterr()

    return called


@pytest.fixture(scope="session")
def save_gsm8k():
    """Write generated problems as a file of GSM8K."""

    def saved(count, path):
        problems = make_problems("train", count, seed=3)
        rows = [{"question": p.question, "answer": p.solution} for p in problems]
        path.write_text(json_lines(rows), encoding="utf-8")

    return saved


@pytest.fixture(scope="session")
def process():
    """Run a command in a process of its own, in any folder."""

    def started(name, *arguments, cwd=ROOT):
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        return subprocess.run(
            [*COMMAND, name, *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )

    return started
