"""A config goes to JSON and back, and says what is wrong with a file."""

import json
from dataclasses import asdict, fields

import pytest

from grpo_course.gsm8k.config import GRPOConfig, load_config, make_config
from grpo_course.gsm8k.presets import LAPTOP, PRESETS, choose_config


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
        ("model", 3, "text or null"),
        ("top_k", "all", "whole number or null"),
        ("gradient_checkpointing", 1, "true or false"),
        ("operands", 9, "list of whole numbers"),
        ("operands", [1, "9"], "list of whole numbers"),
    ],
)
def test_a_wrong_type_is_told(name, value, kind):
    with pytest.raises(ValueError, match=f"{name} is .* of the type {kind}"):
        make_config({name: value})


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
        ("eval_samples", 0),
        ("warm_start_forms", (1.0, 1.0)),
        ("operands", (1, 2, 3)),
    ],
)
def test_a_value_out_of_range_is_told(name, value):
    with pytest.raises(ValueError, match=f"{name}="):
        GRPOConfig(**{name: value})


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
