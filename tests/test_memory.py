"""The arithmetic of memory against models that were made and measured."""

import pytest
import torch
from torch.distributed._tools.mem_tracker import MemTracker
from transformers import DynamicCache, LlamaConfig, Qwen2Config

from grpo_course.loop import Batch, Rollout, Trainer, split
from grpo_course.sampling import Sampler
from grpo_course.text import memory
from grpo_course.text.memory import (
    activation_bytes,
    cache_bytes,
    estimate,
    print_estimate,
    rows_at_once,
    shape_of,
    sizes_of,
)
from grpo_course.text.scoring import response_log_probs
from grpo_course.text.tiny import MODELS, make_tiny_model, make_tokenizer
from grpo_course.text.training import GRPOConfig, presets_of

ROWS, POS = 3, 40


@pytest.fixture(scope="module", params=MODELS)
def made(request, tokenizer):
    return make_tiny_model(tokenizer, request.param, hidden_size=64, num_layers=3)


def tensor_bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def tokens(rows=ROWS, pos=POS):
    return torch.zeros(rows, pos, dtype=torch.long)


def test_weights_gradients_adam_and_cache_are_exact(made):
    shape, config = shape_of(made.config), GRPOConfig(num_prompts=1, num_responses=ROWS)
    parts = estimate(shape, config, POS - config.max_new_tokens)
    weights = tensor_bytes(made.parameters())
    assert parts["policy"] == parts["reference"] == parts["gradients"] == weights
    optimizer = torch.optim.AdamW(made.parameters())
    cache = made(tokens(), past_key_values=DynamicCache(), use_cache=True)
    cache.logits.sum().backward()
    optimizer.step()
    state = [v for s in optimizer.state.values() for k, v in s.items() if k != "step"]
    optimizer.zero_grad()
    assert parts["optimizer"] == tensor_bytes(state)
    layers = cache.past_key_values.layers
    held = tensor_bytes([t for layer in layers for t in (layer.keys, layer.values)])
    assert parts["cache while writing"] == cache_bytes(shape, ROWS, POS) == held


def kept_for_backward(model, forward, dtype=torch.float32):
    """Bytes that a forward pass keeps for the backward pass, without the weights."""
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
        kept = forward()  # noqa: F841  # what it returns must live
    return sum(seen.values())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activations_are_right_to_a_quarter(made, dtype):
    shape = shape_of(made.config)
    expected = activation_bytes(shape, ROWS * 4 * POS, dtype.itemsize)
    # bfloat16 copies of the weights are kept too, whatever the number of tokens.
    kept = kept_for_backward(made, lambda: made.base_model(tokens(pos=4 * POS)), dtype)
    copies = sum(p.numel() for p in made.base_model.parameters()) * dtype.itemsize
    kept -= copies if dtype == torch.bfloat16 else 0
    assert 0.75 < kept / expected < 1.25
    less = activation_bytes(shape, ROWS * 4 * POS, dtype.itemsize, checkpointing=True)
    assert less < 0.5 * expected


def test_learning_from_groups_reads_each_prompt_once(made):
    """To a third: two prompts of 160 tokens, eight responses of 20 to each."""
    asked, said = tokens(2, 160), tokens(16, 20).view(2, 8, 20)
    sampler = Sampler(20, eos=0, pad=0)
    kept = kept_for_backward(
        made, lambda: response_log_probs(made, asked, said, sampler)
    )
    config = GRPOConfig(num_prompts=2, num_responses=8, max_new_tokens=20)
    parts = estimate(shape_of(made.config), config, 160)
    expected = parts["activations"] + parts["logits"]
    assert 0.67 < kept / expected < 1.33, kept / expected


@torch.no_grad()
def test_scoring_is_right_to_a_third(made):
    """Twice the rows to be scored, so that what does not grow with them cancels."""
    shape, peaks, parts = shape_of(made.config), [], []
    for rows in (32, 64):
        with MemTracker() as tracker:
            cache = DynamicCache()
            made.base_model(
                tokens(rows, 4 * POS), past_key_values=cache, use_cache=True
            )
        peak = tracker.get_tracker_snapshot("peak")
        peaks.append(peak[torch.device("cpu")]["Total"])
        config = GRPOConfig(num_prompts=1, num_responses=rows, max_new_tokens=1)
        part = estimate(shape, config, 4 * POS - 1)
        parts.append(part["scoring"] - part["logits"])
    assert 0.67 < (peaks[1] - peaks[0]) / (parts[1] - parts[0]) < 1.33


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
def test_rows_are_those_of_one_forward_pass_of_the_loop(knobs, rows):
    knobs |= {"num_prompts": 4, "num_responses": 8, "old_log_probs_from": "policy"}
    config, shape = GRPOConfig(**knobs), (4, 8)
    rollout = Rollout(tokens(4, 3), torch.zeros(*shape, 5).long())
    batch = Batch(rollout, torch.zeros(shape), torch.ones(shape))
    loop = Trainer.__new__(Trainer)
    loop.config, loop.shuffle = config, torch.Generator()
    parts = [
        part.batch.rewards.numel()
        for seen in loop.inner_batches(batch)
        for part in split(seen, config)
    ]
    assert rows_at_once(config) == max(parts) == rows


def test_the_estimate_adds_up_and_leaves_out_what_is_not_kept(made):
    shape = shape_of(made.config)
    parts = estimate(shape, GRPOConfig(micro_batch_size=1), 30)
    held = sum(parts[k] for k in ("policy", "reference", "optimizer", "gradients"))
    assert held == 5 * 4 * shape.parameters
    learning = parts["activations"] + parts["logits"]
    writing = parts["cache while writing"] + parts["logits while writing"]
    most = max(learning, writing, parts["scoring"])
    assert parts["most at once"] == held + most
    none = estimate(shape, GRPOConfig(kl_penalty=0.0), 30)
    assert none["reference"] == none["scoring"] == 0
    lora = estimate(shape, GRPOConfig(lora_rank=4), 30)
    assert lora["optimizer"] == 2 * lora["gradients"] == 2 * 4 * 4 * shape.adapter
    assert lora["reference"] == 0 < shape.adapter


@pytest.mark.parametrize("architecture", MODELS)
def test_the_tiny_model_is_counted_before_it_is_made(architecture):
    config = GRPOConfig(architecture=architecture, vocab_size=263, hidden_size=32)
    model = make_tiny_model(make_tokenizer(["?"], 263), architecture, hidden_size=32)
    assert sizes_of(config)[0].parameters == model.num_parameters()


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
    preset = presets_of("gsm8k")[name]
    need = estimate(shape_of(config), preset, 320)["most at once"]
    assert 0.3 * most < need < most


def test_a_run_that_cannot_fit_is_refused(capsys, monkeypatch):
    print_estimate(GRPOConfig(num_prompts=8))
    assert "this machine has" not in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"needs about .* GB, and this machine has"):
        print_estimate(GRPOConfig(num_prompts=10**9))
    monkeypatch.setattr(memory, "memory_of", lambda device: 60e6)
    print_estimate(GRPOConfig(num_prompts=8))
    assert "--micro-batch-size 1" in capsys.readouterr().out
