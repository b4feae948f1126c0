"""The arithmetic of memory against models that were really made."""

from types import SimpleNamespace

import pytest
import torch
from transformers import DynamicCache

from grpo_course.algorithm.rollout import Batch, Rollout
from grpo_course.algorithm.train import trainer_class
from grpo_course.algorithm.variants.micro_batches import split
from grpo_course.gsm8k.presets import PRESETS
from grpo_course.language_model.config import GRPOConfig
from grpo_course.language_model.tiny_model import MODELS, make_tiny_model
from grpo_course.runs.memory import (
    activation_bytes,
    adam_bytes,
    cache_bytes,
    estimate,
    logit_bytes,
    memory_table,
    rows_at_once,
    shape_of,
    tiny_shape,
    weight_bytes,
)

ROWS, POS = 3, 40


@pytest.fixture(scope="module", params=MODELS)
def made(request, tokenizer):
    return make_tiny_model(tokenizer, request.param, hidden_size=64, num_layers=3)


def tensor_bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def tokens():
    return torch.zeros(ROWS, POS, dtype=torch.long)


def test_weights_are_exact(made):
    shape = shape_of(made.config)
    assert weight_bytes(shape.parameters) == tensor_bytes(made.parameters())


def test_adam_is_exact(made):
    optimizer = torch.optim.AdamW(made.parameters())
    made(tokens()).logits.sum().backward()
    optimizer.step()
    state = [v for s in optimizer.state.values() for k, v in s.items() if k != "step"]
    optimizer.zero_grad()
    assert adam_bytes(shape_of(made.config).parameters) == tensor_bytes(state)


@torch.no_grad()
def test_the_cache_is_exact(made):
    cache = made(tokens(), past_key_values=DynamicCache(), use_cache=True)
    layers = cache.past_key_values.layers
    held = tensor_bytes([t for layer in layers for t in (layer.keys, layer.values)])
    assert cache_bytes(shape_of(made.config), ROWS, POS) == held


def kept_by_forward(model, dtype):
    """Bytes that the forward pass keeps for the backward pass, without the weights."""
    seen, alive = {}, []
    weights = {weight.data_ptr() for weight in model.parameters()}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if tensor.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16),
    ):
        model.base_model(tokens().repeat(1, 4))
    return sum(seen.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activations_are_right_to_a_quarter(made, dtype):
    expected = activation_bytes(shape_of(made.config), ROWS, 4 * POS, dtype.itemsize)
    # bfloat16 copies of the weights are kept too, whatever the number of tokens.
    kept = kept_by_forward(made, dtype)
    copies = sum(p.numel() for p in made.base_model.parameters()) * dtype.itemsize
    kept -= copies if dtype == torch.bfloat16 else 0
    assert 0.75 < kept / expected < 1.25


def test_checkpointing_keeps_little(made):
    shape = shape_of(made.config)
    whole = activation_bytes(shape, ROWS, POS)
    assert activation_bytes(shape, ROWS, POS, checkpointing=True) < 0.5 * whole


def test_logits_have_a_ceiling(made):
    shape = shape_of(made.config)
    assert logit_bytes(shape, 2, 5) == 3 * 4 * 10 * shape.vocabulary
    assert logit_bytes(shape, 200, 500, most=1000) == 3 * 4 * 1000


def test_the_estimate_adds_up(made):
    shape = shape_of(made.config)
    config = GRPOConfig(num_prompts=4, num_responses=2, micro_batch_size=1)
    parts = estimate(shape, config, prompt_tokens=30)
    held = sum(parts[k] for k in ("policy", "reference", "optimizer", "gradients"))
    assert held == 5 * weight_bytes(shape.parameters)
    learning = parts["activations"] + parts["logits"]
    writing = parts["cache while writing"] + parts["logits while writing"]
    most = max(learning, writing)
    assert parts["most at once"] == held + most
    whole = estimate(shape, GRPOConfig(num_prompts=4, num_responses=2), 30)
    assert whole["activations"] == 4 * parts["activations"]
    assert estimate(shape, GRPOConfig(kl_penalty=0.0), 30)["reference"] == 0


@pytest.mark.parametrize(
    ("knobs", "rows"),
    [
        ({}, 4 * 8),
        ({"micro_batch_size": 3}, 3 * 8),
        ({"micro_batch_size": 9}, 4 * 8),
        ({"minibatch_size": 6}, 6),
        ({"minibatch_size": 6, "micro_batch_size": 2}, 2),
        ({"minibatch_size": 6, "micro_batch_size": 9}, 6),
    ],
)
def test_rows_are_those_of_one_forward_pass(knobs, rows):
    knobs = {
        "num_prompts": 4,
        "num_responses": 8,
        "old_log_probs_from": "policy",
    } | knobs
    assert rows_at_once(GRPOConfig(**knobs)) == rows
    assert rows_of_the_loop(GRPOConfig(**knobs)) == rows


def rows_of_the_loop(config):
    """The most responses that a part of the loop's own batches holds."""
    shape = (config.num_prompts, config.num_responses)
    rollout = Rollout(torch.zeros(shape[0], 3).long(), torch.zeros(*shape, 5).long())
    batch = Batch(rollout, torch.zeros(shape), torch.ones(shape))
    loop = SimpleNamespace(config=config, shuffle=torch.Generator())
    parts = [
        part.batch
        for seen in trainer_class(config).inner_batches(loop, batch)
        for part in split(seen, config)
    ]
    return max(part.rewards.numel() for part in parts)


def test_the_estimate_follows_the_rows(made):
    shape, knobs = shape_of(made.config), {"old_log_probs_from": "policy"}
    parts = [
        estimate(shape, GRPOConfig(minibatch_size=size, **knobs), 30)["activations"]
        for size in (6, 12)
    ]
    assert parts[1] == 2 * parts[0]


def test_the_table_fits_a_notebook(made):
    shape = shape_of(made.config)
    text = memory_table(shape, estimate(shape, PRESETS["gpu"], 300), 300)
    assert f"{shape.parameters:,} parameters" in text
    assert max(map(len, text.splitlines())) <= 75


@pytest.mark.parametrize("architecture", MODELS)
def test_the_tiny_model_is_counted_before_it_is_made(tokenizer, architecture):
    sizes = {"hidden_size": 32, "num_layers": 1, "num_heads": 2}
    config = GRPOConfig(architecture=architecture, vocab_size=len(tokenizer), **sizes)
    model = make_tiny_model(tokenizer, architecture, **sizes)
    counted = sum(weight.numel() for weight in model.parameters())
    assert tiny_shape(config).parameters == counted
