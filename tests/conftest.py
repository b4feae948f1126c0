"""What all tests share."""

import sys

import pytest
import torch

# A run of a second, as a config file has it.
SMALL = {
    "base": "default",
    "num_epochs": 8,
    "num_prompts": 3,
    "num_responses": 4,
    "num_problems": 40,
    "max_new_tokens": 8,
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 2,
    "vocab_size": 300,
    "warm_start_steps": 3,
    "warm_start_batch_size": 8,
    "learning_rate": 3e-3,
    "warmup_epochs": 1,
    "save_every": 3,
    "held_out_every": 3,
    "eval_problems": 9,
    "eval_samples": 3,
    "device": "cpu",
}


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrix products are slower on two threads than on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def small_run():
    """The settings of a run of a second."""
    return dict(SMALL)


@pytest.fixture(scope="session")
def start():
    """Begin a small run in a folder, up to its first checkpoint."""
    from grpo_course.text.runs import Run, begin
    from grpo_course.text.training import from_values

    def started(out, **changes):
        begin(from_values(SMALL | changes), out)
        return Run(out, show=False)

    return started


@pytest.fixture(scope="session")
def alone(start, tmp_path_factory):
    """The folder of a finished run that nobody disturbed. Look only."""
    out = tmp_path_factory.mktemp("alone") / "run"
    start(out).go()
    return out


@pytest.fixture(scope="session")
def outcome():
    """The metrics and the last weights of a finished run, byte for byte."""

    def read(out):
        folder = max((out / "checkpoints").iterdir())
        files = out / "metrics.jsonl", folder / "model.safetensors"
        return [path.read_bytes() for path in files]

    return read


@pytest.fixture
def call(capsys, monkeypatch):
    """Run a command in this process. -> (exit status, stdout, stderr)"""
    monkeypatch.setattr(sys, "path", [*sys.path])  # a command adds the current folder

    def called(command, *arguments):
        capsys.readouterr()
        try:
            status = command([str(argument) for argument in arguments])
        except SystemExit as ended:  # of the parser of flags
            status = ended.code
        return status, *capsys.readouterr()

    return called


@pytest.fixture(scope="session")
def easy_problems():
    """Sums of two numbers up to four, told in words."""
    from grpo_course.text.stories import make_problems

    easy = {"operands": (1, 4), "operations": "+", "steps": (1,)}
    return make_problems("train", 300, seed=0, **easy)


@pytest.fixture(scope="session")
def tokenizer(easy_problems):
    """One that was learned on their questions and demonstrations."""
    from grpo_course.text.gsm8k import demonstration
    from grpo_course.text.tiny import make_tokenizer

    texts = [problem.question for problem in easy_problems]
    return make_tokenizer(texts + [demonstration(problem) for problem in easy_problems])
