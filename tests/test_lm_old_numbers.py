"""World 3 gives the numbers that it gave before the package was rebuilt.

`lm_old_numbers.json` holds runs of the code of commit 5317f71 with the settings below,
then under other names: the sum of all weights' sizes at the start of GRPO and at its
end, what each step recorded, and what the model could do then. On one machine the new
numbers were equal to the last bit. A processor's other instruction sets
(ATEN_CPU_CAPABILITY=default and avx2, MKL_CBWR=COMPATIBLE) change them by less than one
part in 10,000.
"""

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grpo_course.text.evaluation import evaluate_policy
from grpo_course.text.training import (
    load_problems,
    make_environment,
    make_start,
    presets_of,
    train_policy,
)

OLD = json.loads(Path(__file__).with_name("lm_old_numbers.json").read_text())
LAPTOP = presets_of("gsm8k")["sums"]
CLOSE = {"rel": 1e-3, "abs": 1e-5}
EASY = {"operands": (1, 4), "operations": "+", "steps": (1,)}
SMALL = replace(
    LAPTOP,
    task_settings=LAPTOP.task_settings | EASY,
    num_problems=64,
    hidden_size=32,
    num_layers=1,
    num_heads=2,
    warm_start_steps=80,
    warm_start_batch_size=8,
    warm_start_learning_rate=5e-3,
    num_epochs=2,
    num_prompts=4,
    num_responses=4,
    max_new_tokens=16,
    learning_rate=3e-3,
    warmup_epochs=1,
    device="cpu",
)
TWO_STEPS = {"num_steps_per_epoch": 2, "old_log_probs_from": "policy"}
SETTINGS = {
    "finale": {},
    "mu2": {**TWO_STEPS, "minibatch_size": 8},
    "micro": {"micro_batch_size": 3},
    "skip": {"kl_penalty": 0.0, "skip_tied_groups": True},
    "sampler": TWO_STEPS | {"old_log_probs_from": "sampler"},
    "topk": {"top_k": 20, "top_p": 0.9, "temperature": 0.9},
    "constant": {"schedule": "constant", "weight_decay": 0.1, "adam_beta1": 0.8},
    "recompute": {"gradient_checkpointing": True},
    "llama": {"architecture": "llama"},
    "gpt2": {"architecture": "gpt2"},
    "length": {"reward_weights": {"length_reward": 0.5, "format": 0.1}},
}
IN_THE_START = ("architecture", "top_k", "top_p", "temperature")


@pytest.fixture(scope="module")
def start():
    """The warm-started model of a config, made once where nothing in it differs."""
    made = {}

    def started(config):
        key = tuple(getattr(config, name) for name in IN_THE_START)
        if key not in made:
            made[key] = make_start(config, load_problems(config), show=False)
        return copy.deepcopy(made[key])

    return started


def size_of(model):
    return sum(weight.double().abs().sum().item() for weight in model.parameters())


def test_nothing_is_left_out():
    assert OLD.keys() == SETTINGS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_old_numbers(name, start):
    config, old = replace(SMALL, **SETTINGS[name]), OLD[name]
    model, tokenizer = start(config)
    assert size_of(model) == pytest.approx(old["start"], **CLOSE)
    environment = make_environment(config, load_problems(config), tokenizer)
    policy, history = train_policy(config, model, tokenizer, environment)
    assert len(history.records) == len(old["records"])
    for record, expected in zip(history.records, old["records"], strict=True):
        found = {key: torch.as_tensor(record[key]).item() for key in expected}
        assert found == pytest.approx(expected, **CLOSE)
    assert size_of(model) == pytest.approx(old["end"], **CLOSE)
    problems = load_problems(config, "unseen_problems", 16)
    asked = make_environment(config, problems, tokenizer)
    measured = evaluate_policy(policy, asked, 4, temperature=0.8)
    means = {key: values.mean().item() for key, values in measured.items()}
    assert means == pytest.approx(old["measures"], **CLOSE)
