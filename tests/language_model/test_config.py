"""A config goes to JSON and back, and says what is wrong with a file."""

import json
from dataclasses import asdict, fields
from math import inf, nan

import pytest

from grpo_course.gsm8k.config import GRPOConfig, load_config, make_config
from grpo_course.gsm8k.presets import LAPTOP, PRESETS, choose_config
from grpo_course.gsm8k.tokenizer import make_tokenizer


@pytest.mark.parametrize("name", PRESETS)
def test_presets_go_through_json(name, tmp_path):
    PRESETS[name].save(tmp_path / "config.json")
    assert load_config(tmp_path / "config.json") == PRESETS[name]


def test_what_a_file_leaves_out_has_its_default(tmp_path):
    (tmp_path / "c.json").write_text('{"num_prompts": 3, "operands": [2, 5]}')
    config = load_config(tmp_path / "c.json")
    assert (config.num_prompts, config.operands) == (3, (2, 5))
    assert config.num_responses == GRPOConfig().num_responses


def test_an_unknown_field_is_named_with_the_known_ones():
    with pytest.raises(ValueError) as error:
        make_config({"learning_rat": 1e-4}, "my.json")
    told = str(error.value)
    assert "my.json: 'learning_rat'" in told
    assert "Did you mean 'learning_rate'?" in told
    assert all(field.name in told for field in fields(GRPOConfig))


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("num_prompts", "16", "whole number"),
        ("num_prompts", 1.5, "whole number"),
        ("num_prompts", True, "whole number"),
        ("num_prompts", None, "whole number"),
        ("learning_rate", "1e-4", "number"),
        ("model", 3, "text or None"),
        ("top_k", "all", "whole number or None"),
        ("gradient_checkpointing", 1, "True or False"),
        ("operands", 9, "list of whole numbers"),
        ("operands", [1, "9"], "list of whole numbers"),
    ],
)
def test_a_wrong_type_is_told(name, value, kind):
    with pytest.raises(ValueError, match=f"^my.json: {name}=.* of the type {kind}"):
        make_config({name: value}, "my.json")


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
        ("correctness_weight", -0.1),
        ("format_weight", nan),
        ("length_weight", -0.1),
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
        ("warm_start_slips", 3),
        ("warm_start_slips", -0.1),
        ("warm_start_slips", nan),
        ("keep_checkpoints", 0),
        ("eval_problems", 0),
        ("eval_temperature", 0),
        ("eval_temperature", -1),
        ("num_responses", 1),
        ("epsilon", 5),
        ("num_prompts", 1.5),
        ("eval_samples", 0),
        ("warm_start_forms", (1.0, 1.0)),
        ("warm_start_forms", (0, 0, 0, 0)),
        ("warm_start_forms", (1, -1, 1, 1)),
        ("warm_start_forms", (1, nan, 1, 1)),
        ("operands", (1, 2, 3)),
        ("operands", 5),
        ("operations", "%"),
        ("steps", (1.5,)),
    ],
)
def test_a_value_out_of_range_is_told(name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        GRPOConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("operands", (9, 1), r"operands\[1\]=1.*at least 9"),
        ("operands", (-1, 1), "operands=-1.*at least 0"),
        ("operations", "", "operations and steps each need"),
        ("steps", (), "operations and steps each need"),
        ("steps", (1, 0), "steps=0.*at least 1"),
    ],
)
def test_problems_that_cannot_be_made_are_told(name, value, says):
    with pytest.raises(ValueError, match=says):
        GRPOConfig(**{name: value})


def test_the_smallest_vocabulary_is_that_of_the_tokenizer():
    least = GRPOConfig(vocab_size=263).vocab_size
    assert make_tokenizer(["one plus one"], least)
    with pytest.raises(ValueError, match="vocab_size=262"):
        make_tokenizer(["one plus one"], least - 1)


@pytest.mark.parametrize("text", ["{", "[1, 2]", "3"])
def test_a_file_that_is_no_config(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(ValueError, match=r"c\.json"):
        load_config(tmp_path / "c.json")


def test_choosing(tmp_path):
    assert choose_config(None, {}) == LAPTOP
    assert choose_config("gpu", {"model": None}) == PRESETS["gpu"]
    assert choose_config("gpu", {"model": "here"}).model == "here"
    (tmp_path / "c.json").write_text(json.dumps(asdict(LAPTOP) | {"seed": 5}))
    chosen = choose_config(str(tmp_path / "c.json"), {"num_epochs": 2})
    assert (chosen.seed, chosen.num_epochs) == (5, 2)
    with pytest.raises(ValueError, match=r"config='gpus'.*'gpu-smollm2'"):
        choose_config("gpus", {})
