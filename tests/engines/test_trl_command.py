"""What TRL is told of a run, and what the command says when something is wrong."""

import json
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from grpo_course import trl as command
from grpo_course.gsm8k import GPU_SMOLLM2, LAPTOP, PRESETS, make_problems
from grpo_course.lock import try_lock
from grpo_course.runs.cli import run_command
from grpo_course.runs.folder import LOCK
from grpo_course.tasks import Problem
from grpo_course.training import GRPOConfig
from grpo_course.trl import (
    batch_settings,
    chat_dataset,
    paid_rewards,
    response_limit,
    trl_settings,
)

ENGINES = Path(command.__file__).parent
OUT = Path("runs")
# What of a GSM8K config makes the model, the data or the evaluation: not TRL's.
NOT_TRL = (
    "model task task_settings num_problems system_prompt dtype"
    " device architecture hidden_size num_layers num_heads vocab_size context_length"
    " held_out_every keep_samples lora_rank"
    " eval_problems num_threads eval_samples eval_temperature"
)


@pytest.fixture
def trl():
    return pytest.importorskip("trl", reason="TRL is the optional extra `scale`")


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_config_of_trl(trl, name):
    from grpo_course.trl import make_args

    config = replace(PRESETS[name], device="cpu")
    made = make_args(config, OUT)
    rows = made.per_device_train_batch_size * made.gradient_accumulation_steps
    assert rows == config.num_prompts * config.num_responses
    assert made.generation_batch_size == rows  # one rollout a step, as here
    assert made.max_steps == config.num_epochs * config.num_steps_per_epoch


def test_the_settings_of_one_preset():
    made = trl_settings(replace(GPU_SMOLLM2, device="cpu"), OUT)
    expected = {"temperature": 0.9, "top_k": 50, "top_p": 0.9, "warmup_steps": 0}
    expected |= {"reward_weights": [1.0, 0.5], "max_completion_length": 300}
    expected |= {"learning_rate": 5e-5, "gradient_accumulation_steps": 4}
    assert {name: made[name] for name in expected} == expected


CHANGES = {
    ("seed", 5): {"seed": 5},
    ("max_new_tokens", 9): {"max_completion_length": 9},
    ("temperature", 0.5): {"temperature": 0.5},
    ("top_k", 3): {"top_k": 3},
    ("top_p", 0.5): {"top_p": 0.5},
    ("learning_rate", 0.1): {"learning_rate": 0.1},
    ("schedule", "constant"): {"lr_scheduler_type": "constant_with_warmup"},
    ("warmup_epochs", 3): {"warmup_steps": 3},
    ("weight_decay", 0.1): {"weight_decay": 0.1},
    ("adam_beta1", 0.8): {"adam_beta1": 0.8},
    ("adam_beta2", 0.8): {"adam_beta2": 0.8},
    ("num_prompts", 8): {"per_device_train_batch_size": 64},
    ("gradient_checkpointing", True): {"gradient_checkpointing": True},
    ("save_every", 7): {"save_steps": 7},
    ("keep_checkpoints", 4): {"save_total_limit": 4},
}


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_one_setting_at_a_time(name, value):
    config = replace(LAPTOP, device="cpu")
    before = trl_settings(config, OUT)
    after = trl_settings(replace(config, **{name: value}), OUT)
    changed = {k: v for k, v in after.items() if before[k] != v}
    assert changed == CHANGES[name, value]


@pytest.mark.parametrize(
    ("weights", "paid"),
    [
        ({}, {"correctness_reward": 1.0, "format_reward": 0.2}),
        ({"accuracy": 2.0}, {"correctness_reward": 2.0, "format_reward": 0.2}),
        ({"format": 0.1}, {"correctness_reward": 1.0, "format_reward": 0.1}),
        ({"format": 0.0}, {"correctness_reward": 1.0}),
        (
            {"length_reward": 0.3},
            {"correctness_reward": 1.0, "format_reward": 0.2, "length_reward": 0.3},
        ),
    ],
)
def test_the_rewards_that_pay_go_to_trl_with_their_weights(weights, paid):
    config = replace(LAPTOP, device="cpu", reward_weights=weights)
    found = paid_rewards(config)
    assert {function.__name__: weight for function, weight in found} == paid
    assert trl_settings(config, OUT)["reward_weights"] == list(paid.values())


def test_no_setting_is_forgotten():
    own = {f.name for f in fields(GRPOConfig)} - {
        f.name for f in fields(GRPOConfig.__base__)
    }
    changed = {"reward_weights", *(name for name, _ in CHANGES)}
    left = {name for name in own - changed if not name.startswith("warm_start")}
    assert left == set(NOT_TRL.split())


@pytest.mark.parametrize(
    ("world", "micro", "rows", "parts"),
    [
        (1, None, 96, 1),
        (2, None, 48, 1),
        (4, None, 24, 1),
        (2, 2, 16, 3),
        (1, 3, 24, 4),
    ],
)
def test_a_rollout_is_cut_into_equal_parts(world, micro, rows, parts):
    config = replace(LAPTOP, num_prompts=12, micro_batch_size=micro)
    made = batch_settings(config, world)
    assert made == {
        "per_device_train_batch_size": rows,
        "gradient_accumulation_steps": parts,
    }


@pytest.mark.parametrize("divisor", [None, 9])
def test_trl_has_one_number_for_the_limit_and_the_divisor(divisor):
    config = replace(LAPTOP, max_length=divisor, max_new_tokens=12)
    assert response_limit(config) == 12
    config = replace(config, aggregation="constant")
    with pytest.raises(ValueError, match=r"Set max_length=12\."):
        response_limit(config)
    assert response_limit(replace(config, max_length=12)) == 12


@pytest.mark.parametrize(("world", "micro"), [(5, None), (24, None), (2, 4)])
def test_unequal_parts_are_refused(world, micro):
    config = replace(LAPTOP, num_prompts=12, micro_batch_size=micro)
    with pytest.raises(ValueError, match="num_prompts=12 cannot be spread"):
        batch_settings(config, world)


def test_the_data_set_holds_conversations_and_answers():
    problems = make_problems("train", 3, seed=0)
    rows = chat_dataset(problems, "Be brief.")
    assert rows["answer"] == [p.answer for p in problems]
    assert [m["role"] for m in rows[0]["prompt"]] == ["system", "user"]
    assert rows[0]["prompt"][1]["content"] == problems[0].question


@pytest.mark.parametrize("text", ["use_vllm", "[1]", '{"a": }', "[" * 100_000])
def test_own_arguments_must_be_an_object(text):
    with pytest.raises(ValueError, match="--trl"):
        command.own_arguments(text)
    assert command.own_arguments('{"beta": 0.5}') == {"beta": 0.5}


def test_own_arguments_must_be_names_of_trl(trl, tmp_path):
    given = ["--out", str(tmp_path / "run"), "--trl", '{"beta": 0.5, "nonsense": 1}']
    match = "--trl names 'nonsense', which trl.GRPOConfig does not have"
    with pytest.raises(ValueError, match=match):
        command.work(given)
    assert not (tmp_path / "run").exists()


def test_without_trl_the_command_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "trl", None)
    assert run_command(command.work, ["--config", "laptop"]) == 1
    assert "needs TRL" in capsys.readouterr().err


def test_a_finished_run_is_not_overwritten(trl, tmp_path):
    (tmp_path / "model").mkdir()
    with pytest.raises(FileExistsError, match="--out DIR"):
        command.work(["--config", "laptop", "--out", str(tmp_path)])


def test_a_folder_where_another_process_trains_is_refused_by_name(trl, tmp_path):
    with (
        (tmp_path / LOCK).open("a") as file,
        pytest.raises(OSError, match=re.escape(str(tmp_path))),
    ):
        assert try_lock(file)  # as another process would
        command.work(["--config", "laptop", "--out", str(tmp_path)])


def test_the_fsdp_file_is_one_that_accelerate_reads(trl):
    from accelerate.commands.config.config_args import load_config_from_file

    made = load_config_from_file(str(ENGINES / "fsdp.yaml"))
    assert made.num_processes == 2 and not made.use_cpu
    assert made.fsdp_config["fsdp_version"] == 2


def test_the_vllm_flags_are_arguments_of_trl(trl):
    text = command.__doc__.replace("\n", " ")
    flags = [part.split("'")[0] for part in text.split("--trl '")[1:]]
    known = {f.name for f in fields(trl.GRPOConfig)}
    assert len(flags) == 2
    assert all(json.loads(flag).keys() <= known for flag in flags)


@pytest.mark.parametrize(
    "flag", command.__doc__.replace("\n", " ").split("--trl '")[1:]
)
def test_vllm_is_corrected_for_as_trl_does_by_default(trl, flag):
    """No preset speaks of its sampler, so none may switch TRL's correction off."""
    from grpo_course.trl import make_args

    flags = json.loads(flag.split("'")[0])
    made = make_args(replace(LAPTOP, device="cpu"), OUT, **flags)
    default = {f.name: f.default for f in fields(trl.GRPOConfig)}
    names = [name for name in default if name.startswith("vllm_importance_sampling")]
    assert made.use_vllm and len(names) > 3
    assert {n: getattr(made, n) for n in names} == {n: default[n] for n in names}
    assert made.vllm_importance_sampling_correction is True
    assert made.vllm_importance_sampling_mode == "sequence_mask"


def test_a_preset_with_a_sampler_cap_says_what_it_needs_and_reaches_trl(trl):
    from grpo_course.trl import make_args

    config = replace(LAPTOP, device="cpu", old_log_probs_from="policy")
    with pytest.raises(ValueError, match=r"cap=2\.0, set old_log_probs_from='policy'"):
        replace(LAPTOP, sampler_cap=2.0)
    made = make_args(replace(config, sampler_cap=2.0), OUT, use_vllm=True)
    assert made.vllm_importance_sampling_mode == "token_truncate"
    assert made.vllm_importance_sampling_clip_max == 2.0


def test_answers_that_the_table_would_change_are_refused():
    problems = [Problem("a", {"x": 1}), Problem("b", {"y": 2})]
    with pytest.raises(ValueError, match="comes back from the table that TRL reads"):
        chat_dataset(problems, None)
    assert chat_dataset(problems[:1], None)["answer"][0] == {"x": 1}
