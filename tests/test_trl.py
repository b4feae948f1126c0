"""The bridge: the table of names, what TRL is told, and what the command says."""

import re
import runpy
from dataclasses import fields, replace
from pathlib import Path

import pytest
from filelock import FileLock

from grpo_course import install
from grpo_course.loop import TrainConfig
from grpo_course.text import trl as bridge
from grpo_course.text.cli import run_command
from grpo_course.text.models import save_model
from grpo_course.text.responses import format_reward
from grpo_course.text.runs import LOCK
from grpo_course.text.stories import make_problems
from grpo_course.text.tasks import Problem
from grpo_course.text.tiny import make_tiny_model, make_tokenizer
from grpo_course.text.training import GRPOConfig, presets_of
from grpo_course.text.trl import (
    NAMES,
    chat_dataset,
    names_table,
    script_of,
    to_trl_arguments,
    to_trl_config,
    trl_settings,
    weighed_rewards,
)

HERE = Path(__file__).parent
PAGE = (HERE.parent / "TRL.md").read_text(encoding="utf-8")
OUT = Path("runs")
PRESETS = presets_of("gsm8k")
CPU = replace(PRESETS["sums"], device="cpu")


@pytest.fixture
def trl():
    return pytest.importorskip("trl", reason="TRL is the optional extra `scale`")


def known_to(trl):
    return {field.name for field in fields(trl.GRPOConfig)}


# The table of names, held against the fields of both sides


def test_every_knob_of_ours_is_in_the_table_once():
    assert sorted(row[0] for row in NAMES) == sorted(
        f.name for f in fields(TrainConfig)
    )


def test_what_is_told_stands_in_the_table_and_is_known_to_trl(trl):
    cells = [row[1].partition(" (")[0] for row in NAMES if row[1] != "-"]
    named = {name for cell in cells for name in cell.split(", ")}
    told = to_trl_arguments(TrainConfig(max_length=9, sampler_cap=2.0)).keys()
    assert named | told <= known_to(trl)
    # A user sets these two, TRL needs those three beside what stands in the table.
    assert named - told == {
        "steps_per_generation",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
    }
    assert told - named == {
        "sync_ref_model",
        "vllm_importance_sampling_correction",
        "vllm_importance_sampling_mode",
    }


# verl's settings, of which a file keeps the names. key -> the values that it names
LINES = (HERE / "verl_keys.txt").read_text().splitlines()
KEYS = dict(line.partition(": ")[::2] for line in LINES if not line.startswith("#"))
SHORT = {"actor": "actor_rollout_ref.actor", "rollout": "actor_rollout_ref.rollout"}
WORDS = {part for key in KEYS for part in key.split(".")}
WORDS |= {value for values in KEYS.values() for value in values.split()}
NOTES = (
    "with for the sampler's counts prompts is clamped at no r other beta 0 1 4 10 False"
)


def unknown_words(text):
    return [
        w for w in re.findall(r"[\w'-]+", text) if w not in {*WORDS, *NOTES.split()}
    ]


@pytest.mark.parametrize("row", NAMES, ids=[row[0] for row in NAMES])
def test_the_table_names_settings_of_verl(row):
    key, _, note = row[2].partition(" (")
    first, _, rest = key.partition(".")
    assert key == "-" or f"{SHORT.get(first, first)}.{rest}" in KEYS
    assert not unknown_words(note) and unknown_words("kl_loss_coeff")


# One knob changed: what changes in TRL's arguments

CHANGES = {
    ("num_epochs", 7): {"max_steps": 70, "sync_ref_model": False},
    ("num_steps_per_epoch", 2): {
        "num_iterations": 2, "max_steps": 200, "ref_model_sync_steps": 20},
    ("num_responses", 8): {"num_generations": 8},
    ("deltas_mode", "centered_rewards"): {"scale_rewards": "none"},
    ("deltas_mode", "batch_normalized_rewards"): {"scale_rewards": "batch"},
    ("aggregation", "token_mean"): {"loss_type": "dapo"},
    ("aggregation", "sequence_sum"): {"loss_type": "luspo"},
    ("loss_mode", "dual_clipped"): {"delta": 3.0},
    ("loss_mode", "sapo"): {"loss_type": "sapo"},
    ("max_length", 9): {"max_completion_length": 9},
    ("epsilon", 0.1): {"epsilon": 0.1, "epsilon_high": 0.1},
    ("epsilon", 1.5): {"epsilon": 1.5, "epsilon_high": 1.5},
    ("epsilon_high", 0.28): {"epsilon_high": 0.28},
    ("ratio_level", "sequence"): {"importance_sampling_level": "sequence"},
    ("dual_clip", 5.0): {},
    ("kl_penalty", 0.2): {"beta": 0.2},
    ("kl_estimator", "corrected_k3"): {"use_bias_correction_kl": True},
    ("compute_ref_model_period", 3): {"ref_model_sync_steps": 30},
    ("ref_mixture", 0.6): {"ref_model_mixup_alpha": 0.6},
    ("mask_truncated", True): {"mask_truncated_completions": True},
    ("sampler_cap", 2.0): {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": 2.0},
    ("max_gradient_norm", 1.0): {"max_grad_norm": 1.0},
}  # fmt: skip


@pytest.mark.parametrize(("ours", "value"), CHANGES)
def test_one_knob_at_a_time(ours, value):
    base = {"kl_penalty": 0.1}
    before = to_trl_arguments(TrainConfig(**base))
    after = to_trl_arguments(TrainConfig(**base | {ours: value}))
    changed = {k: v for k, v in after.items() if k not in before or before[k] != v}
    assert changed == CHANGES[ours, value]


def test_the_bound_of_cispo_is_absolute_in_trl():
    config = TrainConfig(loss_mode="cispo", aggregation="token_mean", epsilon_high=4.0)
    arguments = to_trl_arguments(config)
    assert arguments["loss_type"] == "cispo" and arguments["epsilon_high"] == 5.0


BENT = {"kl_penalty": 0.1, "kl_estimator": "corrected_k3", "ratio_level": "sequence"}


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"loss_mode": "naive"}, "loss_mode, aggregation.*'naive'.*not known"),
        ({"deltas_mode": "max_rewards"}, "deltas_mode='max_rewards'.*'normalized"),
        ({"kl_penalty": 0.1, "kl_estimator": "k1"}, "kl_estimator='k1'.*corrected_k3"),
        ({"kl_penalty": 0.1, "kl_place": "reward"}, "nothing like kl_place='reward'"),
        ({"kl_penalty": 0.1, "kl_target": 0.1}, "nothing like kl_target=0.1"),
        (BENT, "TRL would weigh the KL of each token.*kl_estimator='k3'"),
        ({"num_resamples": 2}, "nothing like num_resamples=2"),
        ({"stop_kl": 0.1}, "nothing like stop_kl=0.1"),
        ({"minibatch_size": 4}, "nothing like minibatch_size=4"),
        ({"aggregation": "constant"}, "needs max_length for TRL"),
    ],
)
def test_what_trl_does_not_have_is_refused(knobs, message):
    with pytest.raises(ValueError, match=message):
        to_trl_arguments(TrainConfig(**knobs))


def test_a_config_of_trl(trl):
    config = TrainConfig(num_responses=4, num_epochs=3, num_steps_per_epoch=2)
    only = {"use_cpu": True, "bf16": False, "report_to": "none"}
    only |= {"per_device_train_batch_size": 8, "learning_rate": 3e-4}
    made = to_trl_config(config, **only, max_grad_norm=0.5)
    assert isinstance(made, trl.GRPOConfig)
    assert (made.num_generations, made.max_steps, made.learning_rate) == (4, 6, 3e-4)
    assert made.max_grad_norm == 0.5  # what is given for TRL only wins


# What TRL.md says: its tables of names and methods


def test_the_page_has_the_table_of_names():
    """The cure: `python3 -m grpo_course save --form-only`."""
    assert names_table() in PAGE


def test_the_map_of_methods_names_what_trl_and_verl_have(trl):
    from trl import rewards

    rows = [line.split("|") for line in PAGE.splitlines()]
    rows = [row for row in rows if len(row) == 6 and "`" in row[2]]
    ours, verl = (
        [text for row in rows for text in re.findall(r"`([^`]+)`", row[at])]
        for at in (3, 4)
    )
    ours = {re.split("[=(]", text)[0] for text in ours}
    assert len(ours) > 10 and len(verl) > 10
    assert not ours - known_to(trl) - {*dir(trl), *dir(rewards)}
    assert not [text for text in verl if unknown_words(text)]


# What TRL is told of a whole run


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_config_of_trl(trl, name):
    config = replace(PRESETS[name], device="cpu")
    made = to_trl_config(config, **trl_settings(config, OUT))
    rows = made.per_device_train_batch_size * made.gradient_accumulation_steps
    assert rows == config.num_prompts * config.num_responses
    assert made.generation_batch_size == rows  # one rollout a step, as here
    assert made.max_steps == config.num_epochs * config.num_steps_per_epoch


RUN_CHANGES = {
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
# What makes the model, the data or the evaluation: not TRL's.
NOT_TRL = (
    "model task task_settings num_problems system_prompt dtype"
    " device architecture hidden_size num_layers num_heads vocab_size context_length"
    " held_out_every keep_samples lora_rank"
    " eval_problems num_threads eval_samples eval_temperature"
)


@pytest.mark.parametrize(("name", "value"), RUN_CHANGES)
def test_one_setting_at_a_time(name, value):
    before = trl_settings(CPU, OUT)
    after = trl_settings(replace(CPU, **{name: value}), OUT)
    changed = {k: v for k, v in after.items() if before[k] != v}
    assert changed == RUN_CHANGES[name, value]


def test_no_setting_is_forgotten():
    own = {f.name for f in fields(GRPOConfig)} - {f.name for f in fields(TrainConfig)}
    changed = {"reward_weights", *(name for name, _ in RUN_CHANGES)}
    left = {name for name in own - changed if not name.startswith("warm_start")}
    assert left == set(NOT_TRL.split())


def test_rewards_go_to_trl_with_their_weights():
    """Those of weight 0, too, which TRL logs."""
    config = replace(CPU, reward_weights={"accuracy": 2.0, "length_reward": 0.3})
    names = [function.__name__ for function, _ in weighed_rewards(config)]
    own = "correctness_reward lenient_reward format_reward length_reward"
    assert names == own.split()
    assert trl_settings(config, OUT)["reward_weights"] == [2.0, 0.0, 0.2, 0.3]


@pytest.mark.parametrize(
    ("world", "micro", "rows", "parts"),
    [(1, None, 96, 1), (4, None, 24, 1), (2, 2, 16, 3), (1, 3, 24, 4)],
)
def test_a_rollout_is_cut_into_equal_parts(world, micro, rows, parts):
    config = replace(CPU, num_prompts=12, micro_batch_size=micro)
    made = trl_settings(config, OUT, world)
    assert made["per_device_train_batch_size"] == rows
    assert made["gradient_accumulation_steps"] == parts


CONSTANT = {"aggregation": "constant", "max_new_tokens": 12}
DICTS = [Problem("a", {"x": 1}), Problem("b", {"y": 2})]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trl_settings(replace(CPU, num_prompts=12), OUT, 5), "12 cannot be sp"),
        (lambda: trl_settings(replace(CPU, num_prompts=12), OUT, 24), "multiple of 24"),
        (lambda: trl_settings(replace(CPU, **CONSTANT), OUT), r"Set max_length=12\."),
        (lambda: chat_dataset(DICTS, None), "back from the table that TRL reads"),
    ],
)
def test_what_a_run_with_trl_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert trl_settings(replace(CPU, **CONSTANT, max_length=12), OUT)  # nearly so
    assert chat_dataset(DICTS[:1], None)["answer"][0] == {"x": 1}


# The command


def test_own_arguments_must_be_names_of_trl(trl):
    assert bridge.own_arguments('{"beta": 0.5}') == {"beta": 0.5}
    with pytest.raises(ValueError, match=r"no setting 'betta'\. Did you mean .*beta"):
        bridge.own_arguments('{"beta": 0.5, "betta": 1}')


def test_without_trl_an_error_names_the_extra(monkeypatch, capsys):
    monkeypatch.setattr(install, "lacking", lambda needed: needed)
    with pytest.raises(ImportError, match=r"(?s)needs TRL.*pip install.*trl==1"):
        to_trl_config(TrainConfig())
    assert run_command(bridge.main, ["--config", "sums"]) == 1
    assert "needs TRL" in capsys.readouterr().err


def test_a_folder_that_is_in_use_is_refused_by_name(trl, tmp_path):
    given = ["--config", "sums", "--out", str(tmp_path)]
    with (
        FileLock(tmp_path / LOCK),  # as another process would
        pytest.raises(OSError, match=re.escape(str(tmp_path))),
    ):
        bridge.main(given)
    (tmp_path / "model").mkdir()  # a finished run
    with pytest.raises(FileExistsError, match="--out DIR"):
        bridge.main(given)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 2])
def test_a_printed_script_trains_as_the_command_does(trl, tmp_path, capfd, rank):
    if rank:
        pytest.importorskip("peft", reason="peft is the optional extra `lora`")
    problems = make_problems("train", 40, seed=0)
    tokenizer = make_tokenizer(f"{p.question}\n{p.solution}" for p in problems)
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    save_model(model, tokenizer, tmp_path / "start")
    sizes = {"num_epochs": 2, "num_prompts": 4, "num_responses": 4, "num_problems": 8}
    short = {"max_new_tokens": 6, "eval_problems": 2, "eval_samples": 1}
    settings = sizes | short | {"model": str(tmp_path / "start"), "lora_rank": rank}
    ours = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    words = ["--config", "sums", *ours, "--device", "cpu", "--out"]
    assert bridge.main([*words, str(tmp_path / "run"), "--print-trl-config"]) == 0
    script = tmp_path / "mine.py"
    printed = capfd.readouterr().out
    assert not (tmp_path / "run").exists()
    script.write_text(printed.replace(f"{tmp_path}/run", f"{tmp_path}/mine"))
    runpy.run_path(str(script), run_name="__main__")
    assert bridge.main([*words, str(tmp_path / "run")]) == 0
    assert "TRL on 1 process(es), cpu." in capfd.readouterr().out
    name = "adapter_model.safetensors" if rank else "model.safetensors"
    one, other = (tmp_path / each / "model" / name for each in ("mine", "run"))
    assert one.read_bytes() == other.read_bytes()


def test_a_script_chooses_the_device_of_the_machine_that_runs_it():
    gpu = replace(PRESETS["gpu"], model="a/b")
    text = script_of(gpu, OUT, report_to="trackio")
    assert "on_gpu = torch.cuda.is_available()\n" in text
    assert "    bf16=on_gpu,\n" in text and "    report_to='trackio',\n" in text
    text = script_of(replace(gpu, device="cpu", dtype="float32"), OUT)
    assert "on_gpu = False\n" in text and "    bf16=False,\n" in text
    with pytest.raises(ValueError, match="Name a model: --model FOLDER"):
        script_of(CPU, OUT)
    with pytest.raises(ValueError, match="has a tool"):
        script_of(replace(CPU, task="calculator", model="models/smollm2"), OUT)


def test_the_fsdp_file_is_one_that_accelerate_reads(trl):
    from accelerate.commands.config.config_args import load_config_from_file

    made = load_config_from_file(str(Path(bridge.__file__).parent / "fsdp.yaml"))
    assert made.num_processes == 2 and not made.use_cpu
    assert made.fsdp_config["fsdp_version"] == 2


def test_vllm_is_corrected_for_as_trl_does_by_default(trl):
    """No preset may switch TRL's correction off."""
    default = {f.name: f.default for f in fields(trl.GRPOConfig)}
    names = [name for name in default if name.startswith("vllm_importance_sampling")]
    made = to_trl_config(CPU, **trl_settings(CPU, OUT), use_vllm=True)
    assert made.vllm_importance_sampling_correction is True and len(names) > 3
    assert {n: getattr(made, n) for n in names} == {n: default[n] for n in names}
    assert made.vllm_importance_sampling_mode == "sequence_mask"
    capped = replace(CPU, old_log_probs_from="policy", sampler_cap=2.0)
    made = to_trl_config(capped, **trl_settings(capped, OUT), use_vllm=True)
    assert made.vllm_importance_sampling_mode == "token_truncate"
    assert made.vllm_importance_sampling_clip_max == 2.0


def test_rewards_see_under_trl_what_they_see_here(trl, tmp_path):
    """A tag that the prompt opened counts; where TRL hides tags, it says so."""
    chats = [[{"role": "assistant", "content": "3+4=7</think><answer>7</answer>"}]]
    paid = bridge.with_opened(format_reward, "<think>\n")
    assert paid(completions=chats, prompts=[], answer=[7]) == [1.0]
    assert format_reward(chats) == [0.6] and paid.__name__ == "format_reward"
    tokenizer = make_tokenizer(["3+4?"])
    model = make_tiny_model(tokenizer, hidden_size=16, num_layers=1, num_heads=2)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>"]})
    save_model(model, tokenizer, tmp_path)
    with pytest.raises(
        ValueError, match=r"<think> is a special token of .*this course"
    ):
        bridge.make_trainer(CPU, None, tmp_path, [Problem("3+4?", "7")])
