"""The training program from its arguments to files that transformers can load."""

import json
import math
import os

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_course.lm import MODELS, make_tiny_model
from grpo_course.runs import train
from grpo_course.runs.resumable import Run

FOLDER = os.environ.get("GSM8K_DIR", "")


SHORT = {"num_epochs": 3, "save_every": 1, "held_out_every": 0}


@pytest.fixture
def config_file(tmp_path, small_run):
    def write(**changes):
        path = tmp_path / "small.json"
        path.write_text(json.dumps(small_run | SHORT | changes))
        return str(path)

    return write


@pytest.fixture(scope="module", params=MODELS)
def saved_model(request, tokenizer, tmp_path_factory):
    """A random model of each architecture, as save_pretrained writes it."""
    folder = tmp_path_factory.mktemp(request.param)
    sizes = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "context_length": 1024}
    make_tiny_model(tokenizer, request.param, **sizes).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def lines_of(out):
    return [json.loads(x) for x in (out / "metrics.jsonl").read_text().splitlines()]


def weights_of(folder):
    return AutoModelForCausalLM.from_pretrained(folder).state_dict()


def test_a_model_from_nothing(small_run, config_file, tmp_path, call):
    out = tmp_path / "run"
    status, printed, told = call(train, "--config", config_file(), "--out", out)
    assert status == 0
    lines = lines_of(out)
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    needed = {"mean_reward", "accuracy", "format", "kl", "gradient_norm", "loss"}
    assert all(needed <= line.keys() for line in lines)
    assert lines[0]["kl"] == 0 and lines[-1]["kl"] > 0
    rates = [line["learning_rate"] for line in lines]
    assert rates == pytest.approx([1.5e-3, 3e-3, 1.5e-3])
    saved = json.loads((out / "grpo_config.json").read_text())
    given = {k: v for k, v in (small_run | SHORT).items() if k != "base"}
    assert {k: saved[k] for k in given} == given
    assert "parameters" in printed and "most at once" in printed
    bar = told.splitlines()[-1].rpartition("\r")[2]
    assert all(name in bar for name in ("3/3", "reward=", "accuracy=", "kl="))


def test_checkpoints_load_and_differ(start, tmp_path):
    out = tmp_path / "run"
    start(out, keep_checkpoints=2, **SHORT).go()
    folders = sorted((out / "checkpoints").iterdir())
    assert [path.name for path in folders] == ["000000", "000002", "000003"]
    first, last = weights_of(folders[0]), weights_of(folders[-1])
    assert any(not torch.equal(first[name], last[name]) for name in first)
    assert (folders[-1] / "model.safetensors").is_file()
    tokenizer = AutoTokenizer.from_pretrained(folders[-1])
    assert tokenizer.chat_template and tokenizer.padding_side == "left"


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine",
    [{}, {"dtype": "bfloat16", "gradient_checkpointing": True, "micro_batch_size": 1}],
    ids=["plain", "as on a GPU"],
)
def test_a_given_model(saved_model, config_file, tmp_path, call, machine):
    out = tmp_path / "run"
    options = ["--model", saved_model, "--num-epochs", 2, "--out", out]
    file = config_file(reward_weights={"format": 5.0}, **machine)
    status, printed, _ = call(train, "--config", file, *options)
    assert status == 0
    assert "The run needs about" in printed and "Scores differ from what" in printed
    lines = lines_of(out)
    assert len(lines) == 2 and all(map(math.isfinite, lines[-1].values()))
    given, start = weights_of(saved_model), weights_of(out / "checkpoints" / "000000")
    assert all(torch.equal(given[name], start[name]) for name in given)


@pytest.mark.slow
def test_parts_and_recomputing_leave_the_gradient_alone(saved_model, start, tmp_path):
    """The same run with one group a forward pass, and with layers made again."""
    norms = {}
    changes = {"micro_batch_size": 1}, {"gradient_checkpointing": True}
    for number, change in enumerate(({}, *changes)):
        out = tmp_path / f"run{number}"
        settings = {"kl_penalty": 0.5, "learning_rate": 1e-2, "max_new_tokens": 24}
        start(out, model=str(saved_model), **settings, **SHORT, **change).go()
        norms[number] = [line["gradient_norm"] for line in lines_of(out)]
    assert min(norms[0]) > 0
    assert norms[1] == pytest.approx(norms[0], rel=1e-3)
    assert norms[2] == pytest.approx(norms[0], rel=1e-3)


def test_nothing_but_the_kl_needs_a_reference(start, tmp_path):
    out = tmp_path / "run"
    run = start(out, kl_penalty=0.0, **SHORT)
    run.go()
    assert run.trainer.ref_policy is None
    assert "kl" not in lines_of(out)[-1]


def test_the_reference_is_the_start_after_resuming_too(alone):
    out = alone
    reference = Run(out, show=False).trainer.ref_policy.model.state_dict()
    first = weights_of(out / "checkpoints" / "000000")
    assert all(torch.equal(reference[name], first[name]) for name in first)


def test_generated_problems_from_a_folder(config_file, save_gsm8k, tmp_path, call):
    save_gsm8k(20, tmp_path / "train.jsonl")
    out = tmp_path / "run"
    options = ["--data", tmp_path, "--slips", 0, "--out", out]
    assert call(train, "--config", config_file(), *options)[0] == 0
    assert len(Run(out, show=False).problems) == 18  # two are for validation


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER, reason="GSM8K_DIR names no folder with real GSM8K")
def test_real_gsm8k(saved_model, config_file, tmp_path, call):
    out = tmp_path / "run"
    options = ["--data", "gsm8k", "--model", saved_model, "--out", out]
    assert call(train, "--config", config_file(), *options, "--num-epochs", 2)[0] == 0
    assert len(lines_of(out)) == 2


def test_a_loss_that_is_no_number_stops_with_its_step(start, tmp_path):
    """The last good checkpoint stays, and no line is written for the bad epoch."""
    out = tmp_path / "run"
    run = start(out, save_every=1)
    reward = run.trainer.reward_fn

    def broken(rollout):
        if run.trainer.epoch == 2:
            with torch.no_grad():
                reference = run.trainer.ref_policy.model
                reference.get_input_embeddings().weight.fill_(math.nan)
        return reward(rollout)

    run.trainer.reward_fn = broken
    with pytest.raises(ValueError, match="the loss is nan in epoch 2, step 0"):
        run.go()
    assert [line["epoch"] for line in lines_of(out)] == [0, 1]
    assert Run(out, show=False).trainer.epoch == 2
