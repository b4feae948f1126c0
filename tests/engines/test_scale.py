"""The calculator against a small model that is measured, and against hand sums."""

import pytest
import torch

from grpo_course.lm import make_tiny_model
from grpo_course.memory import MemoryPlan, memory_parts, plan_table
from grpo_course.runs.memory import Shape, adam_bytes, shape_of, weight_bytes


class Tokenizer:
    eos_token_id, pad_token_id = 1, 0

    def __len__(self):
        return 50


SEQUENCES, TOKENS = 3, 11
FLOAT32 = MemoryPlan(
    weight_bytes=4,
    gradient_bytes=4,
    master_bytes=0,
    cache_bytes=4,
    sequences=SEQUENCES,
    tokens=TOKENS,
)


def size_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


@pytest.fixture(scope="module")
def model():
    return make_tiny_model(Tokenizer(), hidden_size=32, num_heads=4, num_layers=3)


@pytest.fixture(scope="module")
def shape(model):
    return shape_of(model.config)


def billion(parameters=10**9):
    """Ten layers with keys of 100 numbers; what else a shape says is not read."""
    return Shape(parameters, 10, 1, 100, 1, 1)


def test_weights_gradients_and_adam_are_what_torch_holds(model, shape):
    parts = memory_parts(shape, FLOAT32)
    assert parts["policy"] == parts["reference"] == size_of(model.parameters())
    optimizer = torch.optim.AdamW(model.parameters())
    model(input_ids=torch.ones(2, 5, dtype=torch.long)).logits.sum().backward()
    optimizer.step()
    held = size_of(w.grad for w in model.parameters())
    for state in optimizer.state.values():
        held += size_of([state["exp_avg"], state["exp_avg_sq"]])
    assert parts["gradient and optimizer"] == held
    count = shape.parameters
    assert held == weight_bytes(count) + adam_bytes(count)


def test_the_cache_is_what_transformers_holds(model, shape):
    tokens = torch.ones(SEQUENCES, TOKENS, dtype=torch.long)
    cache = model(input_ids=tokens, use_cache=True).past_key_values
    held = size_of(x for layer in cache.layers for x in (layer.keys, layer.values))
    assert memory_parts(shape, FLOAT32)["key-value cache"] == held


def test_a_model_of_a_billion_by_hand():
    plan = MemoryPlan(critic=True, engine_copy=True, sequences=10, tokens=1000)
    assert memory_parts(billion(), plan) == {
        "policy": 2 * 10**9,
        "gradient and optimizer": 14 * 10**9,
        "reference": 2 * 10**9,
        "critic": 16 * 10**9,
        "sampler's copy": 2 * 10**9,
        "key-value cache": 2 * 10 * 100 * 10 * 1000 * 2,
    }


def test_plans_side_by_side():
    plans = {"with": MemoryPlan(critic=True, tokens=0), "bare": MemoryPlan(tokens=0)}
    lines = [line.split() for line in plan_table(billion(), plans).splitlines()]
    assert lines[0] == ["GB", "with", "bare"]
    assert ["critic", "16.00", "0.00"] in lines
    assert lines[-1] == ["together", "34.00", "18.00"]


def test_what_is_not_kept_costs_nothing():
    parts = memory_parts(billion(10), MemoryPlan(reference=False, tokens=0))
    for name in ("reference", "critic", "sampler's copy", "key-value cache"):
        assert parts[name] == 0
    with pytest.raises(ValueError, match="sequences=-1"):
        memory_parts(billion(10), MemoryPlan(sequences=-1))
