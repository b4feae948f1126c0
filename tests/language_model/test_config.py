"""A config goes to JSON and back, and says what is wrong with a value or a file."""

import json
from dataclasses import asdict, fields
from math import inf, nan

import pytest

from grpo_course.lm import make_tokenizer
from grpo_course.runs import differences
from grpo_course.training import (
    GRPOConfig,
    from_values,
    load_config,
    make_task,
    presets_of,
)

PRESETS = presets_of("gsm8k")
LAPTOP, GPU = PRESETS["laptop"], PRESETS["gpu"]


@pytest.fixture
def load(tmp_path):
    """What a file with this content says."""

    def loaded(content, task=None):
        path = tmp_path / "my.json"
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text)
        return load_config(path, task)

    return loaded


@pytest.mark.parametrize("name", PRESETS)
def test_presets_go_through_json(name, tmp_path):
    PRESETS[name].save(tmp_path / "config.json")
    again = load_config(tmp_path / "config.json")
    assert differences(again, PRESETS[name]) == ""
    assert make_task(again) == make_task(PRESETS[name])


def test_what_a_file_leaves_out_is_as_in_its_base(load):
    config = load({"base": "gpu", "learning_rate": 1e-6})
    assert config.learning_rate == 1e-6 != GPU.learning_rate
    assert asdict(config) | {"learning_rate": GPU.learning_rate} == asdict(GPU)
    assert (config.max_new_tokens, config.dtype) == (300, "bfloat16")
    assert config.system_prompt == GPU.system_prompt


def test_settings_of_the_task_go_through_a_file(load):
    config = load({"base": "laptop", "task_settings": {"operands": [2, 5]}})
    assert make_task(config).operands == (2, 5)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"seed": 5}, r"adam_beta1, adam_beta2.*are not set.*\"base\""),
        ({"base": "laptops"}, r"base='laptops' is not known.*'colab-t4'\.$"),
        ({"base": ["gpu"]}, r"base=\['gpu'\] is not known"),
        ({"base": "gpu", "task": "countdown"}, "base='gpu' is not known.*'laptop'"),
        ({"base": "laptop", "task": 3}, "task=3 is not known"),
        ({"base": "laptop", "task": ["gsm8k"]}, r"task=\['gsm8k'\] is not known"),
        ({"base": "laptop", "num_prompts": 0}, "num_prompts=0"),
        ("{", "is not JSON"),
        ("[1, 2]", "must hold one object"),
        ("3", "must hold one object"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ({"base": "gpu", "lora_rank": 4, "ref_mixture": 0.5}, "lora_rank=4 with"),
    ],
)
def test_a_file_that_is_no_config(load, content, says):
    with pytest.raises(ValueError, match=r"my\.json.*" + says):
        load(content)


def test_a_file_that_is_no_text(tmp_path):
    (tmp_path / "my.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match=r"my\.json is not JSON"):
        load_config(tmp_path / "my.json")


def test_a_file_with_every_setting_needs_no_base(load):
    values = asdict(LAPTOP)
    assert differences(load(values), LAPTOP) == ""
    missing = {k: v for k, v in values.items() if k != "top_k"}
    with pytest.raises(ValueError, match="top_k is not set"):
        load(missing)


def test_the_task_that_was_asked_for_goes_before_that_of_a_file(load):
    config = load({"base": "laptop"}, task="countdown")
    assert config == presets_of("countdown")["laptop"]


def test_values_are_not_changed_by_reading_them():
    values = {"base": "laptop", "seed": 3}
    assert from_values(values).seed == 3
    assert values == {"base": "laptop", "seed": 3}


def test_an_unknown_field_is_named_with_the_known_ones(load):
    with pytest.raises(ValueError) as error:
        load({"base": "laptop", "learning_rat": 1e-4})
    told = str(error.value)
    assert "my.json: " in told and "'learning_rat'" in told
    assert "Did you mean 'learning_rate'?" in told
    assert all(field.name in told for field in fields(GRPOConfig))


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("num_prompts", "16", "integer"),
        ("num_prompts", 1.5, "integer"),
        ("num_prompts", True, "integer"),
        ("num_prompts", None, "integer"),
        ("learning_rate", "1e-4", "number"),
        ("model", 3, "string, or None"),
        ("top_k", "all", "integer, or None"),
        ("gradient_checkpointing", 1, "boolean"),
        ("device", None, "string"),
        ("task_settings", [1], "dictionary"),
        ("reward_weights", [1.0], "dictionary"),
        ("reward_weights", {"format": "1"}, "number"),
    ],
)
def test_a_wrong_type_is_told(load, name, value, kind):
    with pytest.raises(
        ValueError, match=rf"my\.json: {name}=.* must be a valid {kind}"
    ):
        load({"base": "laptop", name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("schedule", "cosinus"),
        ("dtype", "float16"),
        ("loss_mode", "clip"),
        ("num_prompts", 0),
        ("learning_rate", -1.0),
        ("temperature", 0),
        ("top_p", 1.5),
        ("max_new_tokens", 0),
        ("save_every", 0),
        ("num_threads", 0),
        ("num_problems", 0),
        ("learning_rate", nan),
        ("learning_rate", inf),
        ("warmup_epochs", -1),
        ("weight_decay", nan),
        ("weight_decay", -0.1),
        ("reward_weights", {"accuracy": -0.1}),
        ("reward_weights", {"format": nan}),
        ("reward_weights", {"format": inf}),
        ("reward_weights", {"length_reward": -0.1}),
        ("adam_beta1", 2),
        ("adam_beta2", 1.0),
        ("adam_beta2", -0.1),
        ("architecture", "bert"),
        ("hidden_size", 0),
        ("hidden_size", 98),
        ("num_layers", 0),
        ("num_heads", 0),
        ("vocab_size", 3),
        ("vocab_size", 262),
        ("warm_start_steps", -1),
        ("warm_start_batch_size", 0),
        ("warm_start_learning_rate", nan),
        ("keep_checkpoints", 0),
        ("eval_problems", 0),
        ("eval_temperature", 0),
        ("eval_temperature", -1),
        ("num_responses", 1),
        ("epsilon", 0),
        ("num_prompts", 1.5),
        ("eval_samples", 0),
        ("seed", -1),
        ("seed", 10**30),
        ("minibatch_seed", 10**30),
        ("held_out_every", -1),
        ("keep_samples", -1),
        ("lora_rank", -1),
        ("device", "tpu"),
        ("device", ""),
        ("device", "cpu:x"),
    ],
)
def test_a_value_out_of_range_is_told(name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        GRPOConfig(**{name: value})


def test_the_smallest_vocabulary_is_that_of_the_tokenizer():
    least = GRPOConfig(vocab_size=263).vocab_size
    assert make_tokenizer(["one plus one"], least)
    with pytest.raises(ValueError, match="vocab_size=262"):
        make_tokenizer(["one plus one"], least - 1)
