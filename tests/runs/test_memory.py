"""The arithmetic of memory against models that were really made."""

import re
from dataclasses import replace

import pytest
import torch
from torch.distributed._tools.mem_tracker import MemTracker
from torch.nn import Linear
from transformers import DynamicCache, LlamaConfig, Qwen2Config
from transformers.pytorch_utils import Conv1D

from grpo_course.lm import MODELS, make_tiny_model
from grpo_course.loop import Batch, Rollout, Trainer, split
from grpo_course.runs import fits
from grpo_course.runs.memory import (
    activation_bytes,
    adam_bytes,
    cache_bytes,
    estimate,
    logit_bytes,
    memory_table,
    rows_at_once,
    scoring_bytes,
    weight_bytes,
)
from grpo_course.runs.shape import shape_of, tiny_shape
from grpo_course.training import GRPOConfig, presets_of

PRESETS = presets_of("gsm8k")
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
    loop = Trainer.__new__(Trainer)
    loop.config, loop.shuffle = config, torch.Generator()
    parts = [
        part.batch for seen in loop.inner_batches(batch) for part in split(seen, config)
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


@torch.no_grad()
@pytest.mark.parametrize("rows", [8, 32])
def test_scoring_is_right_to_a_third(made, rows):
    """Twice the rows to be scored, so that what does not grow with them cancels."""
    peaks = []
    for count in (rows, 2 * rows):
        tracker = MemTracker()
        with tracker:
            made.base_model(
                torch.zeros(count, 4 * POS, dtype=torch.long),
                past_key_values=DynamicCache(),
                use_cache=True,
            )
        peak = tracker.get_tracker_snapshot("peak")
        peaks.append(peak[torch.device("cpu")]["Total"])
    expected = scoring_bytes(shape_of(made.config), rows, 4 * POS)
    assert 0.67 < (peaks[1] - peaks[0]) / expected < 1.33


def test_the_reference_scores_as_many_as_a_micro_batch(made):
    shape = shape_of(made.config)
    whole, part = (
        estimate(shape, GRPOConfig(num_prompts=8, micro_batch_size=size), 300)
        for size in (None, 2)
    )
    assert part["scoring"] < 0.5 * whole["scoring"]
    assert estimate(shape, GRPOConfig(kl_penalty=0.0), 300)["scoring"] == 0


def test_an_adapter_is_all_that_learns(made):
    shape, rank = shape_of(made.config), 4
    layers = [p for p in made.base_model.modules() if isinstance(p, Linear | Conv1D)]
    assert shape.adapter == sum(sum(part.weight.shape) for part in layers) > 0
    parts = estimate(shape, GRPOConfig(lora_rank=rank), 30)
    assert parts["gradients"] == weight_bytes(rank * shape.adapter)
    assert parts["optimizer"] == adam_bytes(rank * shape.adapter)
    assert parts["reference"] == 0


HALF_BILLION = Qwen2Config(  # the sizes of Qwen2.5-0.5B
    vocab_size=151_936,
    hidden_size=896,
    intermediate_size=4864,
    num_hidden_layers=24,
    num_attention_heads=14,
    num_key_value_heads=2,
    tie_word_embeddings=True,
)
SMOLLM2 = LlamaConfig(  # the sizes of SmolLM2-1.7B
    vocab_size=49_152,
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=24,
    num_attention_heads=32,
    num_key_value_heads=32,
    tie_word_embeddings=True,
)


@pytest.mark.parametrize(
    ("name", "config", "most"),
    [
        ("gpu-smollm2", SMOLLM2, 39e9),
        ("gpu", HALF_BILLION, 16e9),
        ("gpu-16gb", HALF_BILLION, 13e9),  # a quarter is left for the estimate's error
        ("colab-t4", HALF_BILLION, 12e9),
    ],
)
def test_what_a_preset_needs(name, config, most):
    preset = PRESETS[name]
    need = estimate(shape_of(config), preset, 320)["most at once"]
    assert 0.3 * most < need < most


def test_it_is_said_what_needs_less():
    shape, preset = shape_of(SMOLLM2), PRESETS["gpu-smollm2"]
    told = fits.cures(shape, preset, 320)
    assert re.fullmatch(r"To need less: --lora-rank 16 \(11\.\d GB\)\.", told)
    told = fits.cures(shape_of(HALF_BILLION), PRESETS["gpu"], 320)
    order = ["--micro-batch-size 1", "--lora-rank 16"]
    assert re.findall(r"--[a-z-]+ \d+", told) == order
    assert fits.cures(shape, replace(preset, lora_rank=16), 320) == ""


def test_a_run_that_cannot_fit_is_refused(capsys, monkeypatch):
    with pytest.raises(ValueError, match=r"needs about .* GB, and this machine has"):
        fits.require_memory(GRPOConfig(num_prompts=10**9))
    monkeypatch.setattr(fits, "memory_of", lambda device: 200_000)
    with pytest.raises(ValueError, match="--micro-batch-size 1"):
        fits.require_memory(GRPOConfig())
    monkeypatch.setattr(fits, "memory_of", lambda device: 60_000_000)
    fits.require_memory(GRPOConfig(num_prompts=8))
    assert "may be more than this machine has: 60.0 MB" in capsys.readouterr().out
    monkeypatch.setattr(fits, "memory_of", lambda device: None)
    fits.require_memory(GRPOConfig(num_prompts=8))
    assert "more than" not in capsys.readouterr().out
